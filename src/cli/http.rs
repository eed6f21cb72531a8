//! The listener for agents that connect over HTTP from this machine, and its token.

use std::net::Ipv4Addr;

use anyhow::{Context, anyhow};
use tokio::net::TcpListener;

use super::host::Setup;
use crate::mcp::{Dial, Dialing, http};
use crate::server::Server;
use crate::server::auth::{SecretHash, make_secret, read_secret};
use crate::visible::visible_path;

/// Name of the file with the token, in the state folder.
const TOKEN_FILE: &str = "http-token";

/// A listener for agents, and the token that agents must send.
pub(super) struct Agents {
    listener: TcpListener,
    token: SecretHash,
}

impl Agents {
    /// Listens on a port of the loopback address. If `port` is 0, the system picks a free port.
    pub(super) async fn listen(setup: &Setup, port: u16) -> anyhow::Result<Self> {
        let token = token(setup)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| {
            anyhow!(
                "cannot listen on port {port} of 127.0.0.1: {error}; choose another port with \
                 --http"
            )
        })?;
        Ok(Self { listener, token })
    }

    /// Returns the URL to which agents connect.
    pub(super) fn url(&self) -> anyhow::Result<String> {
        Ok(format!("http://{}{}", self.listener.local_addr()?, http::PATH))
    }

    /// Serves agents until the server ends.
    pub(super) async fn serve(self, server: Server) {
        let (guests, ending) = (server.guests().clone(), server.ending().clone());
        let dial = move || InProcess(server.clone());
        http::serve(self.listener, guests, dial, self.token, ending).await;
    }
}

/// Access to the server of this process.
struct InProcess(Server);

impl Dial for InProcess {
    fn dial(&self) -> Dialing<'_> {
        Box::pin(async { Ok(Box::new(self.0.memory()) as _) })
    }
}

/// Reads the token from the secret file that the user chose, or else from the state folder, where
/// the first start creates a file with a new token.
fn token(setup: &Setup) -> anyhow::Result<SecretHash> {
    let chosen = setup.config.secret_file.clone();
    let own = setup.state.as_ref().map(|folder| folder.join(TOKEN_FILE));
    let path = chosen.or(own).context(
        "--http needs a token, and without a state folder there is none; use --secret-file to \
         name a file that contains one",
    )?;
    if setup.config.secret_file.is_none() && !path.exists() {
        make_secret(&path).with_context(|| format!("cannot write {}", visible_path(&path)))?;
    }
    read_secret(Some(&path), &[])?.with_context(|| {
        format!("{} contains no token; write one into the file", visible_path(&path))
    })
}
