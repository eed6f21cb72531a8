//! `contexture call`: calls one method from the shell.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::greeting::{Unanswered, checked, unknown};
use super::host::{Setup, runtime};
use super::misspelt::check_managers;
use super::serve::log_to_stderr;
use super::{Common, complain, current_folder, say};
use crate::rpc::{CalledMethod, find};
use crate::store::ownership::{FolderError, Owned, Owner, owner};
use crate::value::Value;
use crate::value::json::{from_json, to_json};
use crate::value::sexp;
use crate::visible::{visible_json, visible_path, visible_sexp};

/// Call a method of the running server, or of a server started for this call.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  contexture call add-file '(:path \"src/main.rs\" :start-line 1 \
    :end-line 9)'\n  contexture call list-items '{\"limit\": 3}' --json\n  echo '(:content \"(+ 1 2)\")' \
    | contexture call add-item -\n\nA :path is relative to the current folder. Text results are \
    printed verbatim."
)]
pub(super) struct CallCommand {
    /// Name of the method; `contexture methods` lists them
    method: String,
    /// Parameters as a plist or JSON object; `-` reads them from standard input
    params: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Unix socket of the server
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Maximum number of attempts to reach the owner of the state folder.
const ATTEMPTS: u32 = 100;
/// Pause between attempts to reach the owner of the state folder.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CallReply {
    id: Value,
    #[serde(default)]
    result: Value,
    error: Option<ReplyError>,
}

#[derive(serde::Deserialize)]
struct ReplyError {
    code: i64,
    message: String,
}

impl CallCommand {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<bool> {
        let setup = common.setup()?;
        // Without a running server, this process opens the state and may have damage to report.
        log_to_stderr();
        let mut params = read_params(self.params.as_deref())?;
        make_path_absolute(&mut params)?;
        if self.socket.is_none() {
            let list = || Self::of("list-managers").result(&setup, Value::Nil);
            check_managers(&self.method, &params, list)?;
        }
        let reply = self.reply(&setup, params)?;
        self.show(reply)
    }

    /// Creates a call of a method for another command, which passes the parameters to
    /// [`result`](Self::result).
    pub(super) fn of(method: &str) -> Self {
        Self { method: method.to_owned(), params: None, json: false, socket: None }
    }

    /// Like [`of`](Self::of), but asks the server that listens on `socket`.
    pub(super) fn to(method: &str, socket: PathBuf) -> Self {
        Self { socket: Some(socket), ..Self::of(method) }
    }

    /// Like [`of`](Self::of), with messages in JSON.
    pub(super) fn in_json(method: &str) -> Self {
        Self { json: true, ..Self::of(method) }
    }

    /// Calls the method, and returns its result. Fails with the message of the error if the server
    /// refuses the call.
    pub(super) fn result(&self, setup: &Setup, params: Value) -> anyhow::Result<Value> {
        let reply = self.reply(setup, params)?;
        reply.error.map_or(Ok(reply.result), |error| bail!(error.message))
    }

    fn reply(&self, setup: &Setup, mut params: Value) -> anyhow::Result<CallReply> {
        add_request_key(&self.method, &mut params);
        let request = Value::Map(vec![
            ("id".into(), Value::Int(1)),
            ("method".into(), Value::Str(self.method.clone())),
            ("params".into(), params),
        ]);
        let mut line = self.print(&request);
        line.push(b'\n');
        let runtime = runtime()?;
        let reply = runtime.block_on(self.ask(setup, line));
        runtime.shutdown_background();
        reply
    }

    async fn ask(&self, setup: &Setup, line: Vec<u8>) -> anyhow::Result<CallReply> {
        if let Some(socket) = &self.socket {
            return ask_socket(&unknown(socket), socket, &line, self.json).await;
        }
        let Some(folder) = &setup.state else {
            return ask_embedded(setup, None, &line, self.json).await;
        };
        let mut attempts = 1..ATTEMPTS;
        loop {
            let refused = match Owned::take(folder) {
                Ok(owned) => return ask_embedded(setup, Some(&owned), &line, self.json).await,
                Err(FolderError::Taken { .. }) => match self.ask_owner(folder, &line).await {
                    Ok(reply) => return Ok(reply),
                    Err(mute) if mute.is::<Unanswered>() => return Err(mute),
                    Err(refused) => refused,
                },
                Err(error) => return Err(error.into()),
            };
            // The owner may be starting or ending.
            if attempts.next().is_none() {
                return Err(refused);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn ask_owner(&self, folder: &Path, line: &[u8]) -> anyhow::Result<CallReply> {
        let owner = owner(folder).unwrap_or_default();
        let socket = owner.socket.as_deref().with_context(|| {
            format!(
                "the server that owns {} does not listen on a socket; stop that server and try again",
                visible_path(folder)
            )
        })?;
        ask_socket(&owner, socket, line, self.json).await
    }

    fn print(&self, value: &Value) -> Vec<u8> {
        let mut text = Vec::new();
        match self.json {
            true => to_json(value, &mut text),
            false => sexp::print_into(value, &mut text),
        }
        text
    }

    fn show(&self, reply: CallReply) -> anyhow::Result<bool> {
        if let Some(error) = reply.error {
            complain(&format!("contexture: {}: {} ({})", self.method, error.message, error.code));
            return Ok(false);
        }
        let mut text = match reply.result {
            Value::Str(text) if !self.json => text,
            value => {
                let printed = String::from_utf8(self.print(&value))?;
                let shown = if self.json { visible_json(&printed) } else { visible_sexp(&printed) };
                shown.into_owned()
            }
        };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        say(&text)?;
        Ok(true)
    }
}

fn read_params(given: Option<&str>) -> anyhow::Result<Value> {
    let text = match given {
        None => return Ok(Value::Nil),
        Some("-") => {
            std::io::read_to_string(std::io::stdin()).context("cannot read the parameters")?
        }
        Some(text) => text.to_owned(),
    };
    match text.trim_start().starts_with('{') {
        true => from_json(text.as_bytes()).context("cannot read the parameters"),
        false => sexp::read(&text).context("cannot read the parameters"),
    }
}

/// Adds a request key, so that the call can be repeated safely if the server ends before it
/// answers. Does nothing if the method takes no request key, or `params` already has one.
fn add_request_key(method: &str, params: &mut Value) {
    let name = "request-key";
    let takes_one = |method: CalledMethod| method.params().iter().any(|param| param.name == name);
    if params.get(name).is_some() || !find(method, &mut params.clone()).is_ok_and(takes_one) {
        return;
    }
    let now = jiff::Timestamp::now().as_nanosecond();
    let key = Value::Str(format!("call-{}-{now}", std::process::id()));
    params.put_first(name, key);
}

/// Makes a relative `path` in the parameters absolute: the server may run in a different folder
/// than the shell.
fn make_path_absolute(params: &mut Value) -> anyhow::Result<()> {
    if let Some(Value::Str(path)) = params.get("path")
        && !path.starts_with(['/', '~'])
    {
        let path = current_folder()?.join(path).to_string_lossy().into_owned();
        params.take_named("path");
        params.put_first("path", Value::Str(path));
    }
    Ok(())
}

async fn ask_socket(
    owner: &Owner,
    socket: &Path,
    line: &[u8],
    json: bool,
) -> anyhow::Result<CallReply> {
    let unreachable = |error| {
        let socket = visible_path(socket);
        anyhow!("cannot reach a server on {socket}: {error}; check that one is running")
    };
    match checked(owner, socket) {
        Ok(warning) => warning.iter().for_each(|warning| tracing::warn!("{warning}")),
        Err(Unanswered::Unreachable(error)) => return Err(unreachable(error)),
        Err(mute) => return Err(mute.into()),
    }
    let stream = UnixStream::connect(socket).await.map_err(unreachable)?;
    let (reader, writer) = stream.into_split();
    converse(reader, writer, line, json).await
}

async fn ask_embedded(
    setup: &Setup,
    owned: Option<&Owned>,
    line: &[u8],
    json: bool,
) -> anyhow::Result<CallReply> {
    let server = setup.start(owned)?;
    let (reader, writer) = tokio::io::split(server.memory());
    let reply = converse(reader, writer, line, json).await;
    server.finish().await;
    reply
}

async fn converse(
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    line: &[u8],
    json: bool,
) -> anyhow::Result<CallReply> {
    writer.write_all(line).await.context("cannot send the call to the server")?;
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = String::new();
        let unread = "cannot read the server's answer";
        if reader.read_line(&mut line).await.context(unread)? == 0 {
            bail!(
                "the server ended before it answered; if the call changes something, check whether \
                 it did before you try again"
            );
        }
        let value = match json {
            true => from_json(line.as_bytes()).context(unread)?,
            false => sexp::read(&line).context(unread)?,
        };
        if let Ok(reply) = value.decode::<CallReply>()
            && reply.id == Value::Int(1)
        {
            return Ok(reply);
        }
    }
}
