//! The command line: the commands of the program, and the options that all of them take.

mod acp;
mod backup;
mod call;
mod clock;
mod compact;
mod dashboard;
mod doctor;
mod emacs;
mod greeting;
mod hook;
mod host;
mod http;
mod hub;
mod import;
mod inferior;
mod manual;
mod map;
mod mcp;
mod methods;
mod misspelt;
mod owner;
mod receipt;
mod reference;
mod render;
mod schema;
mod serve;
mod setup;
mod sync;
mod trust;
mod within;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

use self::clock::FixedTime;
use crate::config::Settings;
use crate::visible::{shortened, visible_lines};

/// Maximum size of a message on standard error, in bytes. It may quote what another program sent.
const MOST_OF_A_COMPLAINT: usize = 16 << 10;

pub use self::within::serve_within;

/// Context engine for language models, for Emacs and other clients.
#[derive(Debug, Parser)]
#[command(
    name = "contexture",
    version,
    about,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Options common to all commands.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Common options")]
struct Common {
    /// Folder that holds the state
    #[arg(long, global = true, value_name = "DIR", env = "CONTEXTURE_STATE")]
    state: Option<PathBuf>,
    /// Keep no state: everything is lost when the program ends
    #[arg(long, global = true)]
    ephemeral: bool,
    /// Configuration file
    #[arg(long, global = true, value_name = "FILE", env = "CONTEXTURE_CONFIG")]
    config: Option<PathBuf>,
    /// Use this as the current time, in Unix seconds, for reproducible tests; @FILE reads it from a file each time
    #[arg(long, global = true, value_name = "SECONDS")]
    fixed_time: Option<FixedTime>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve clients over stdio, Unix sockets and TCP
    Serve(serve::Serve),
    /// Call a method of the running server, or of a server started for this call
    Call(call::CallCommand),
    /// Import the sessions that other agents recorded
    Import(import::ImportCommand),
    /// Compact a recorded session, and say what was left out
    Compact(compact::Compact),
    /// Show all sessions and their windows in a browser
    Dashboard(dashboard::Dashboard),
    /// Serve an agent that speaks the Model Context Protocol
    Mcp(mcp::Mcp),
    /// Answer an agent's hook event with what changed in its context since the last push
    Hook(hook::Hook),
    /// Add Contexture's server and hooks to the configuration of an agent
    Setup(setup::SetUp),
    /// Run an agent that speaks the Agent Client Protocol, and tell it with each prompt what
    /// changed in its context
    Acp(acp::Acp),
    /// Print the map of a project: the files and definitions that matter for a task
    Map(map::MapOf),
    /// Render files as context, without a server
    Render(render::RenderCommand),
    /// List the methods
    Methods(methods::Methods),
    /// Print the JSON Schema of the protocol
    Schema(schema::Schema),
    /// Check the set-up and say how to fix problems
    Doctor(doctor::Doctor),
    /// Write the state to one file
    Backup(backup::BackupCommand),
    /// Replace the state with a backup
    Restore(backup::RestoreCommand),
    /// Exchange sessions, memories and marks with another machine over ssh
    Sync(sync::Sync),
    /// Share projects with others on a PostgreSQL database
    Hub(hub::OnHub),
    /// Trust a project, so that its own templates are used
    Trust(trust::TrustCommand),
    /// Show the help of a command, or the manual at a topic
    Help(manual::Help),
}

/// The arguments of a hook, without those of the other commands. An agent's prompt waits for the
/// hook, and preparing to parse all commands would take longer than the rest of the hook's start.
#[derive(Debug, Parser)]
struct HookAlone {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    hook: hook::Hook,
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    // Errors in the arguments are reported by the complete parser below.
    if words.peek().is_some_and(|word| word == "hook")
        && let Ok(HookAlone { common, hook }) = HookAlone::try_parse_from(words)
    {
        hook.run(&common);
        return ExitCode::SUCCESS;
    }
    let Cli { common, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        // An agent takes any failure of its hook as a reason to stop.
        Err(error) if error.use_stderr() && std::env::args_os().any(|word| word == "hook") => {
            complain(&error.to_string());
            return ExitCode::SUCCESS;
        }
        Err(error) => error.exit(),
    };
    let outcome = match command {
        Command::Serve(serve) => serve.run(&common).map(|()| true),
        Command::Call(call) => call.run(&common),
        Command::Import(import) => import.run(&common),
        Command::Compact(compact) => compact.run().map(|()| true),
        Command::Dashboard(dashboard) => dashboard.run(&common).map(|()| true),
        Command::Mcp(mcp) => mcp.run(&common).map(|()| true),
        Command::Hook(hook) => {
            hook.run(&common);
            Ok(true)
        }
        Command::Setup(setup) => setup.run(&common).map(|()| true),
        Command::Acp(acp) => return acp.run(&common),
        Command::Map(map) => map.run(&common),
        Command::Render(render) => render.run(&common),
        Command::Methods(methods) => methods.run().map(|()| true),
        Command::Schema(schema) => schema.run().map(|()| true),
        Command::Doctor(doctor) => doctor.run(&common),
        Command::Backup(backup) => backup.run(&common).map(|()| true),
        Command::Restore(restore) => restore.run(&common).map(|()| true),
        Command::Sync(sync) => sync.run(&common).map(|()| true),
        Command::Hub(hub) => hub.run(&common),
        Command::Trust(trust) => trust.run(&common).map(|()| true),
        Command::Help(help) => help.run().map(|()| true),
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

/// Writes to standard output. Ignores a broken pipe.
fn say(text: &str) -> anyhow::Result<()> {
    match write_out(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => {
            written.map_err(|error| anyhow::anyhow!("cannot write to standard output: {error}"))
        }
    }
}

fn write_out(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Returns the current folder.
fn current_folder() -> anyhow::Result<PathBuf> {
    std::env::current_dir().context("cannot find the current folder")
}

/// Returns a path as text. Fails if the path is not UTF-8.
fn utf8(path: PathBuf) -> anyhow::Result<String> {
    let path = path.into_os_string().into_string();
    path.map_err(|path| anyhow::anyhow!("{path:?} is not UTF-8"))
}

/// Writes a message to standard error, without its middle if it is long. Ignores failures: there is no
/// other place to report them.
fn complain(message: &str) {
    let message = shortened(message, MOST_OF_A_COMPLAINT);
    let _ = writeln!(std::io::stderr(), "{}", visible_lines(&message));
}
