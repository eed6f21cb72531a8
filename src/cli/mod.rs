//! The command line: what the program can be told to do.

mod backup;
mod call;
mod doctor;
mod host;
mod inferior;
mod methods;
mod render;
mod serve;
mod trust;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::Settings;
use crate::visible::visible_lines;

/// Keeps what a language model needs to see inside the model's window, for Emacs and others.
#[derive(Debug, Parser)]
#[command(name = "contexture", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, clap::Args)]
struct Common {
    /// The folder where the state is kept
    #[arg(
        long,
        global = true,
        help_heading = "Common options",
        value_name = "DIR",
        env = "CONTEXTURE_STATE"
    )]
    state: Option<PathBuf>,
    /// Keep no state: everything is gone when the program ends
    #[arg(long, global = true, help_heading = "Common options")]
    ephemeral: bool,
    /// The configuration file
    #[arg(
        long,
        global = true,
        help_heading = "Common options",
        value_name = "FILE",
        env = "CONTEXTURE_CONFIG"
    )]
    config: Option<PathBuf>,
    /// Give every item this time, in Unix seconds, so that tests can know it
    #[arg(long, global = true, help_heading = "Common options", value_name = "SECONDS")]
    fixed_time: Option<i64>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve clients over stdio, Unix sockets and TCP
    Serve(serve::Serve),
    /// Call a method of the running server, or of one started for this call
    Call(call::Call),
    /// Render files as context, without a server
    Render(render::Render),
    /// List the methods
    Methods(methods::Methods),
    /// Check the set-up and say what to do
    Doctor(doctor::Doctor),
    /// Write all of the state into one file
    Backup(backup::Backup),
    /// Put a backup in the place of the state
    Restore(backup::Restore),
    /// Trust a project, so that its own templates count
    Trust(trust::Trust),
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let Cli { common, command } = Cli::parse();
    let outcome = match command {
        Command::Serve(serve) => serve.run(&common).map(|()| true),
        Command::Call(call) => call.run(&common),
        Command::Render(render) => render.run(&common),
        Command::Methods(methods) => methods.run().map(|()| true),
        Command::Doctor(doctor) => doctor.run(&common),
        Command::Backup(backup) => backup.run(&common),
        Command::Restore(restore) => restore.run(&common),
        Command::Trust(trust) => trust.run(&common),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain(&format!("contexture: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard output. A reader that has gone is no error.
fn say(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Writes a message to standard error, where nothing else can be done if that fails.
fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "{}", visible_lines(message));
}
