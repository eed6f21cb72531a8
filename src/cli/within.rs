//! The server within this process, for the project's own tests.

use std::os::unix::net::UnixStream;
use std::path::Path;

use clap::Parser;

use super::Cli;
use super::host::{Setup, runtime};
use crate::config::{Config, Folders};
use crate::rpc::ReplSettings;
use crate::server::auth::Admission;

/// Serves one client like `contexture --ephemeral serve --stdio`, with these arguments. Returns when
/// the client leaves, or when the server ends. All folders are below `home`; the variables of the
/// environment are those that are given.
///
/// # Errors
/// Fails if the arguments are wrong, or if the server cannot start.
pub fn serve_within(
    home: &Path,
    variables: &[(&str, &str)],
    arguments: &[&str],
    client: UnixStream,
) -> anyhow::Result<()> {
    let words = ["contexture", "--ephemeral", "serve", "--stdio"];
    let Cli { common, .. } = Cli::try_parse_from(words.iter().chain(arguments))?;
    let folders = Folders::below(home);
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let config = Config::load(&folders.config_file, variable, common.settings)?;
    let repl = ReplSettings::default();
    let setup = Setup { folders, config, state: None, repl, fixed_time: common.fixed_time };
    runtime()?.block_on(async {
        client.set_nonblocking(true)?;
        let (reader, writer) = tokio::net::UnixStream::from_std(client)?.into_split();
        let server = setup.start(None)?;
        tokio::select! {
            () = server.serve(reader, writer, Admission::Granted) => {}
            () = server.ending().cancelled() => {}
        }
        server.finish().await;
        Ok(())
    })
}
