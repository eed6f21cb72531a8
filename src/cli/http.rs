//! The listener for agents that connect over HTTP from this machine, and the tokens of those who use
//! HTTP.

use std::net::Ipv4Addr;

use anyhow::{Context, anyhow};
use tokio::net::TcpListener;

use super::host::Setup;
use crate::mcp::{Dial, Dialing, http};
use crate::server::Server;
use crate::server::auth::{SecretHash, make_secret, read_secret};
use crate::server::listen::bind_tcp;
use crate::visible::visible_path;
use crate::web::{self, ServerNames};

/// Name of the file with the token of agents, in the state folder.
const TOKEN_FILE: &str = "http-token";

/// A listener for agents, and the token that agents must send.
pub(super) struct AgentListener {
    listener: TcpListener,
    token: SecretHash,
}

impl AgentListener {
    /// Listens on a port of the loopback address. If `port` is 0, the system picks a free port.
    pub(super) async fn listen(setup: &Setup, port: u16) -> anyhow::Result<Self> {
        // The secret file that the user chose takes the place of the token.
        let token = match &setup.config.secret_file {
            Some(path) => read_secret(Some(path), &[])?.context("the secret file has no token")?,
            None => token(setup, TOKEN_FILE, "--http")?,
        };
        Ok(Self { listener: listener(port, "--http").await?, token })
    }

    /// Returns the URL to which agents connect.
    pub(super) fn url(&self) -> anyhow::Result<String> {
        Ok(format!("http://{}{}", self.listener.local_addr()?, http::PATH))
    }

    /// Serves agents until the server ends.
    pub(super) async fn serve(self, server: Server) {
        let Ok(address) = self.listener.local_addr() else { return };
        let (guests, ending) = (server.guests().clone(), server.ending().clone());
        let names = ServerNames::of(address);
        let dial = move || InProcess(server.clone());
        let routes = http::routes(dial, &names, self.token, ending.clone());
        web::serve(self.listener, guests, names, routes, ending).await;
    }
}

/// Access to the server of this process.
struct InProcess(Server);

impl Dial for InProcess {
    fn dial(&self) -> Dialing<'_> {
        Box::pin(async { Ok(Box::new(self.0.memory()) as _) })
    }
}

/// Listens on a port of the loopback address, which the user chose with `option`.
pub(super) async fn listener(port: u16, option: &str) -> anyhow::Result<TcpListener> {
    bind_tcp((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| {
        anyhow!(
            "cannot listen on port {port} of 127.0.0.1: {error}; choose another port with {option}"
        )
    })
}

/// Reads a token from a file of the state folder. The first start creates the file, with a new token.
pub(super) fn token(setup: &Setup, file: &str, option: &str) -> anyhow::Result<SecretHash> {
    let path = setup.state.as_ref().map(|folder| folder.join(file)).with_context(|| {
        format!(
            "{option} needs a token, and without a state folder there is none; use --secret-file \
             to name a file that contains one"
        )
    })?;
    if !path.exists() {
        make_secret(&path).with_context(|| format!("cannot write {}", visible_path(&path)))?;
    }
    read_secret(Some(&path), &[])?.with_context(|| {
        format!("{} contains no token; write one into the file", visible_path(&path))
    })
}
