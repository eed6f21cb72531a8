//! `contexture dashboard`: serves the dashboard to a browser, as a bridge to the server of the state
//! folder.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::host::{Setup, runtime};
use super::http::{listener, token};
use super::mcp::ServerReach;
use super::owner;
use super::serve::{log_to_stderr, port};
use super::{Common, complain, say};
use crate::dashboard::{self, Pass};
use crate::server::guests::Guests;
use crate::server::stdio;
use crate::web::{self, PageOrigin, ServerNames};

/// Name of the file with the token for embedded elements, in the state folder.
const READER_FILE: &str = "dashboard-token";
/// Programs that open an address in the user's browser: one for most systems, one for macOS.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

/// Show all sessions and their windows in a browser.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints an address and opens it. The address works once; press RET for another one. \
    The dashboard\nis on this machine only, and ends with this command. It joins the server that Emacs \
    uses; if there\nis none, it acts as that server."
)]
pub(super) struct Dashboard {
    /// Port of 127.0.0.1 to serve on; by default a free one
    #[arg(long, value_name = "PORT", value_parser = port, default_value = "0")]
    port: u16,
    /// Print the address, and open no browser
    #[arg(long)]
    no_open: bool,
    /// Origin under which a tunnel, a container or another system reaches this port
    #[arg(long, value_name = "ORIGIN")]
    public_url: Option<PageOrigin>,
    /// Origin of a web page that may embed elements and read with the token of the state folder; repeatable
    #[arg(long, value_name = "ORIGIN")]
    embed_origin: Vec<PageOrigin>,
}

impl Dashboard {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<()> {
        log_to_stderr();
        let setup = common.setup()?;
        let runtime = runtime()?;
        let served = runtime.block_on(self.serve(setup));
        // A blocked read from standard input must not keep the process alive.
        runtime.shutdown_timeout(Duration::ZERO);
        served
    }

    async fn serve(self, setup: Setup) -> anyhow::Result<()> {
        let _too_large = owner::survive_full_files()?;
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut hung_up = signal(SignalKind::hangup())?;
        let listener = listener(self.port, "--port").await?;
        let reader = match self.embed_origin.is_empty() {
            true => None,
            false => Some(token(&setup, READER_FILE, "--embed-origin")?),
        };
        let names =
            ServerNames::of(listener.local_addr()?).with(self.public_url, self.embed_origin);
        let pass = Arc::new(Pass::new(names.preferred(), reader)?);
        let address = names.preferred().to_string();
        let (reach, ending) = (ServerReach::new(setup), CancellationToken::new());
        let routes = dashboard::routes(Arc::clone(&reach), Arc::clone(&pass), ending.clone());
        let serving = web::serve(listener, Guests::default(), names, routes, ending.clone());
        let served = tokio::select! {
            () = serving => Ok(()),
            Err(error) = invite(&pass, &address, !self.no_open) => Err(error),
            _ = terminated.recv() => Ok(()),
            _ = interrupted.recv() => Ok(()),
            _ = hung_up.recv() => Ok(()),
        };
        ending.cancel();
        reach.end().await;
        served
    }
}

/// Prints an address with a one-time token, and another one for each line of standard input. Fails if
/// an address cannot be printed; never returns otherwise.
async fn invite(pass: &Pass, address: &str, opens: bool) -> anyhow::Result<()> {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut lines = BufReader::new(stdio::input()?).lines();
    loop {
        let url = format!("{address}/?token={}", pass.ticket().context("no random bytes")?);
        say(&format!("{url}\n"))?;
        if opens {
            open(&url).await;
        }
        // Without standard input, the dashboard goes on.
        if !matches!(lines.next_line().await, Ok(Some(_))) {
            std::future::pending::<()>().await;
        }
    }
}

/// Opens an address in the user's browser, or says that nothing can.
async fn open(url: &str) {
    for program in OPENERS {
        let opened = Command::new(program).arg(url).stdin(std::process::Stdio::null()).output();
        if opened.await.is_ok_and(|output| output.status.success()) {
            return;
        }
    }
    complain("no browser could be opened; open this address yourself");
}
