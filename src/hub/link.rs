//! The connection to the database of a hub. What comes from there is not trusted: its size and its
//! time are limited, and its words are shown as data.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::AbortHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, NoTls, Row, Statement};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::either::Either;

use crate::provider::secret::{KeySource, Secret};
use crate::provider::tls;
use crate::visible::{shortened, visible_lines};

/// Maximum size of what one connection takes from a database, in bytes.
const LARGEST_ANSWER: u64 = 64 << 20;
/// Maximum size of what an error of the database may say, in bytes.
const LONGEST_ERROR: usize = 300;
/// Port of PostgreSQL, if the address names none.
const PORT: u16 = 5432;
/// Request for TLS: its length and its number.
const ASK_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
/// Version of the tables.
const VERSION: i32 = 1;

/// Where a hub is, and how to log in there.
#[derive(Debug, Clone)]
pub(crate) struct HubAddress {
    config: Config,
    /// Source of the password.
    pub password: KeySource,
    /// Maximum time for an answer to a search.
    pub time: Duration,
}

impl std::fmt::Display for HubAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let user = self.config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        let host = match self.host() {
            (Host::Tcp(name), port) => format!("{name}:{port}"),
            (Host::Unix(folder), _) => crate::visible::visible_path(folder),
        };
        write!(f, "{user}{host}/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl HubAddress {
    /// Reads an address such as `postgres://ann@db.example.org/team`.
    ///
    /// # Errors
    /// The reason why it is none. It does not repeat the address, which may have a password.
    pub(crate) fn new(url: &str, password: KeySource, time: Duration) -> Result<Self, String> {
        let such = "such as \"postgres://ann@db.example.org/team\"";
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(format!("url must begin with postgres://, {such}"));
        }
        let config: Config = url.parse().map_err(|_| format!("url must be an address, {such}"))?;
        if config.get_password().is_some() {
            return Err(
                "url must not contain a password; use password-env or password-command".to_owned()
            );
        }
        let is_whole = config.get_hosts().len() == 1
            && config.get_ports().len() <= 1
            && config.get_user().is_some()
            && config.get_dbname().is_some();
        if !is_whole {
            return Err(format!("url must name a user, one host and a database, {such}"));
        }
        let address = Self { config, password, time };
        if address.is_open() && address.config.get_ssl_mode() == SslMode::Disable {
            return Err("url must not turn off TLS for a server on another machine".to_owned());
        }
        Ok(address)
    }

    fn host(&self) -> (&Host, u16) {
        let port = self.config.get_ports().first().copied().unwrap_or(PORT);
        (&self.config.get_hosts()[0], port)
    }

    /// Returns whether others could read what is sent, so that it must be encrypted.
    fn is_open(&self) -> bool {
        match self.host().0 {
            Host::Unix(_) => false,
            Host::Tcp(name) => !matches!(&**name, "localhost" | "127.0.0.1" | "::1"),
        }
    }
}

/// A connection. It ends when this is dropped, whatever the database does.
pub(crate) struct HubLink {
    pub(super) client: Client,
    task: AbortHandle,
    password: Option<Secret>,
}

impl Drop for HubLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits at most this time.
pub(crate) async fn within<T>(
    time: Duration,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    let late = |_| Err(format!("the hub did not answer within {} s", time.as_secs_f32()));
    tokio::time::timeout(time, work).await.unwrap_or_else(late)
}

impl HubLink {
    /// Connects. Each statement may take `time` at most.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) async fn open(to: &HubAddress, time: Duration) -> Result<Self, String> {
        let password = to.password.fetch("[hub] password-command").await?;
        within(time, Self::connect(to, password, time)).await
    }

    async fn connect(
        to: &HubAddress,
        password: Option<Secret>,
        time: Duration,
    ) -> Result<Self, String> {
        let failed = |what: String| cleaned(password.as_ref(), "cannot connect to the hub", &what);
        let mut config = to.config.clone();
        config.application_name("contexture");
        if let Some(password) = &password {
            config.password(password.reveal());
        }
        let secure = to.is_open() || config.get_ssl_mode() == SslMode::Require;
        config.ssl_mode(SslMode::Disable);
        let (host, port) = to.host();
        let connected = async {
            let socket = socket(host, port).await?;
            match secure {
                true => Ok(Either::Left(encrypted(socket, host).await?)),
                false => Ok(Either::Right(socket)),
            }
        };
        let connected = connected.await.map_err(|error: io::Error| failed(error.to_string()))?;
        // What is beyond the limit is as if it had not come.
        let (read, write) = tokio::io::split(connected);
        let limited = tokio::io::join(read.take(LARGEST_ANSWER), write);
        let connected = config.connect_raw(limited, NoTls).await;
        let (client, connection) = connected.map_err(|error| failed(told(&error)))?;
        let task = tokio::spawn(async move {
            let _ = connection.await;
        });
        let link = Self { client, task: task.abort_handle(), password: password.clone() };
        let settings = format!(
            "SET search_path = pg_catalog, pg_temp; SET statement_timeout = {}",
            time.as_millis()
        );
        link.client.batch_execute(&settings).await.map_err(|error| failed(told(&error)))?;
        Ok(link)
    }

    /// Refuses a database without the tables of this version.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let sql = "SELECT version FROM contexture.hub";
        let version = match self.client.query_opt(sql, &[]).await {
            Ok(row) => row.map(|row| get::<i32>(&row, 0)).transpose()?,
            Err(error) if error.as_db_error().is_some() => None,
            Err(error) => return Err(self.failed(&error)),
        };
        match version {
            Some(VERSION) => Ok(()),
            Some(other) => Err(format!(
                "the hub's tables have version {other}, and this program needs {VERSION}"
            )),
            None => Err("the database has no tables of a hub that this user may read; its owner \
                         runs `contexture hub setup`"
                .to_owned()),
        }
    }

    /// Returns what went wrong, for people.
    pub(super) fn failed(&self, error: &tokio_postgres::Error) -> String {
        cleaned(self.password.as_ref(), "the hub failed", &told(error))
    }

    pub(super) async fn prepared(&self, sql: &str) -> Result<Statement, String> {
        self.client.prepare(sql).await.map_err(|error| self.failed(&error))
    }
}

/// Returns a value of a row, which may have any type.
pub(super) fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    at: usize,
) -> Result<T, String> {
    row.try_get(at).map_err(|_| "the hub gave something else than was asked for".to_owned())
}

/// Returns what a database or the system says, without the password, short and visible.
fn cleaned(password: Option<&Secret>, failed: &str, what: &str) -> String {
    let what = password.map_or(what.to_owned(), |password| password.hidden_in(what));
    let what = shortened(&what, LONGEST_ERROR);
    visible_lines(&format!("{failed}: {what}")).into_owned()
}

/// Returns what an error says, in the words of the database if it has some.
fn told(error: &tokio_postgres::Error) -> String {
    if let Some(said) = error.as_db_error() {
        return said.message().to_owned();
    }
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

type Socket = Either<TcpStream, UnixStream>;

async fn socket(host: &Host, port: u16) -> io::Result<Socket> {
    match host {
        Host::Tcp(name) => {
            let stream = TcpStream::connect((&**name, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Either::Left(stream))
        }
        Host::Unix(folder) => {
            let stream = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await;
            stream.map(Either::Right)
        }
    }
}

/// Encrypts a connection, as those to servers of models are. Nothing of the user's was sent before.
async fn encrypted(mut socket: Socket, host: &Host) -> io::Result<TlsStream<Socket>> {
    let name = match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(_) => "localhost".to_owned(),
    };
    let name = ServerName::try_from(name).map_err(io::Error::other)?;
    socket.write_all(&ASK_FOR_TLS).await?;
    if socket.read_u8().await? != b'S' {
        return Err(io::Error::other("the server speaks no TLS"));
    }
    let config = tls().map_err(|error| io::Error::other(error.to_string()))?;
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}
