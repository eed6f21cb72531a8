//! `contexture doctor`: checks the set-up and reports problems with their remedies.

use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use super::backup::own;
use super::greeting::{Unanswered, checked, of_process};
use super::host::Setup;
use super::setup::check_agents;
use super::{Common, say};
use crate::config::Embeddings;
use crate::files::{Identity, Standing, Trust, Trusted, project_root, true_name};
use crate::provider::AnswerOrigin;
use crate::provider::settings::CheckedProvider;
use crate::server::listen::LONGEST_SOCKET_PATH;
use crate::store::Store;
use crate::store::ownership::{FolderError, Owned, Owner, check_owner, make_private};
use crate::store::recovery::TRUST_FILE;
use crate::store::recovery::{self, Files, OpenedStore};
use crate::visible::{visible_lines, visible_path};

/// Check the set-up and say how to fix problems.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  contexture doctor\n  contexture doctor --repair")]
pub(super) struct Doctor {
    /// Repair the state as far as possible; copies of the original files are kept
    #[arg(long)]
    repair: bool,
    /// Report as JSON: {"findings": [{"ok": BOOLEAN, "text": STRING}, …], "server": FINDING or null}
    #[arg(long)]
    json: bool,
}

/// The report as JSON.
#[derive(Serialize)]
struct DoctorReport {
    findings: Vec<FindingInJson>,
    /// The running server, or the process that has the folder without being one.
    server: Option<FindingInJson>,
}

#[derive(Serialize)]
struct FindingInJson {
    ok: bool,
    text: String,
}

/// Heading of the settings. Clients give the server models, and a context its own room.
const SETTINGS: &str = "settings of the server (contexture help \"settings of the server\"; Emacs \
                        tells it more models, and a context may have other limits):\n";
/// A socket name of the greatest length.
const LONGEST_SOCKET_NAME: &str = "0123456789abcdef.sock";
const DATABASE: &str = "contexture.db";

/// A line of the report: either something that is in order, or a problem with its remedy.
type DoctorFinding = Result<String, String>;
/// What was found, and what was found of the server that runs, if any.
type Found = (Vec<DoctorFinding>, Option<DoctorFinding>);

impl Doctor {
    pub(super) fn run(self, common: &Common) -> anyhow::Result<bool> {
        let setup = match common.setup() {
            Ok(setup) => setup,
            Err(error) => {
                let wrong = vec![Err(format!("configuration: {error:#}"))];
                return self.tell(&(wrong, None), "");
            }
        };
        let mut found = findings(&setup);
        if let Some(folder) = setup.state.as_ref().filter(|_| self.repair) {
            match repair(folder) {
                Ok(steps) => {
                    found = findings(&setup);
                    found.0.splice(..0, steps);
                }
                Err(error) => found.0.push(Err(format!("the state was not repaired: {error:#}"))),
            }
        }
        found.0.extend(agents(&setup));
        let mut settings = SETTINGS.to_owned();
        for setting in &setup.config.explained {
            let _ =
                writeln!(settings, "  {} = {} ({})", setting.name, setting.value, setting.source);
        }
        self.tell(&found, &settings)
    }

    /// Says what was found, in words or as JSON. Returns whether all is in order.
    fn tell(&self, (findings, server): &Found, settings: &str) -> anyhow::Result<bool> {
        let is_well = findings.iter().chain(server).all(Result::is_ok);
        let said = if self.json {
            let findings = findings.iter().map(in_json).collect();
            let report = DoctorReport { findings, server: server.as_ref().map(in_json) };
            format!("{}\n", serde_json::to_string(&report)?)
        } else {
            let lines: String = findings.iter().chain(server).map(line).collect();
            let version = env!("CARGO_PKG_VERSION");
            visible_lines(&format!("contexture {version}\n{lines}{settings}")).into_owned()
        };
        say(&said)?;
        Ok(is_well)
    }
}

fn findings(setup: &Setup) -> Found {
    let mut findings = vec![counter(setup), runtime_folder(setup)];
    findings.extend(setup.config.embeddings.as_ref().map(embeddings));
    let hub = setup.config.hub.as_ref();
    findings.extend(hub.map(|hub| {
        hub.password.check().map_err(|wrong| format!("[hub]: {wrong}"))?;
        Ok(format!("projects can be shared on the hub at {hub}"))
    }));
    findings.extend(setup.config.providers.iter().map(provider));
    let mut server = None;
    if let Some(folder) = &setup.state {
        let (of_state, running) = state(folder);
        findings.extend(of_state);
        findings.extend(trusted(folder));
        server = running;
    }
    (findings, server)
}

/// Checks the agents by running the commands that they are configured to start.
fn agents(setup: &Setup) -> Vec<DoctorFinding> {
    let home = &setup.folders.home;
    let folder = std::env::current_dir().ok().map(|folder| true_name(&folder));
    let project = folder.and_then(|folder| project_root(&folder)).filter(|root| root != home);
    check_agents(home, project)
}

fn counter(setup: &Setup) -> DoctorFinding {
    let counter = setup.config.tokenizer.counter();
    match counter.count("one two three") {
        0 => Err(format!(
            "the tokenizer {} counts no tokens; choose another with --tokenizer",
            counter.name()
        )),
        _ => Ok(format!("tokens are counted by {}", counter.name())),
    }
}

/// Checks the settings for embeddings. Sends nothing, and runs no command, since a command might
/// ask for a passphrase.
fn embeddings(settings: &Embeddings) -> DoctorFinding {
    let Embeddings { url, model, key, .. } = settings;
    key.check().map_err(|wrong| format!("[embeddings]: {wrong}"))?;
    Ok(format!("vectors of memories and messages are computed by {model} at {url}"))
}

fn provider(configured: &CheckedProvider) -> DoctorFinding {
    let CheckedProvider { name, model, from, .. } = configured;
    let key = match from {
        AnswerOrigin::Server { key, .. } => key.check(),
        AnswerOrigin::Script(_) | AnswerOrigin::Program => Ok(()),
    };
    let opened = || configured.open().map_err(|wrong| wrong.to_string());
    key.and_then(|()| opened()).map_err(|wrong| format!("[[providers]] {name:?}: {wrong}"))?;
    Ok(format!("provider {name} uses {model} from {from}"))
}

fn runtime_folder(setup: &Setup) -> DoctorFinding {
    let folder = &setup.folders.runtime;
    make_private(folder).map_err(|error| error.to_string())?;
    let bytes = folder.join(LONGEST_SOCKET_NAME).as_os_str().len();
    if bytes > LONGEST_SOCKET_PATH {
        return Err(format!(
            "a socket in {} would have a path of {bytes} bytes, and at most {LONGEST_SOCKET_PATH} \
             fit; name a shorter folder in XDG_RUNTIME_DIR, or run contexture serve --unix PATH",
            visible_path(folder)
        ));
    }
    Ok(format!("sockets are created in {}", visible_path(folder)))
}

fn state(folder: &Path) -> Found {
    if !folder.exists() {
        return (vec![state_to_be(folder)], None);
    }
    let mut findings = vec![Ok(format!("the state is kept in {}", visible_path(folder)))];
    let server = match Owned::take(folder) {
        Ok(_owned) => {
            findings.extend(database(folder));
            findings.push(Ok("no server is running".to_owned()));
            None
        }
        Err(FolderError::Taken { owner, .. }) => Some(running(&owner)),
        Err(error) => {
            let wrong = Err(format!("{error}; choose another folder with --state DIR"));
            return (vec![wrong], None);
        }
    };
    findings.extend(kept_beside(folder));
    (findings, server)
}

/// Returns a finding for each project in the list of trusted projects. If the list cannot be read,
/// returns one finding that says why.
fn trusted(folder: &Path) -> Vec<DoctorFinding> {
    let line = |trusted: Trusted| {
        let Identity { project, remote } = &trusted.identity;
        let remote = remote.as_ref().map(|remote| format!(" ({remote})")).unwrap_or_default();
        Ok(match trusted.standing() {
            Standing::Same => format!("{project}{remote} is trusted; its templates are used"),
            Standing::Other => format!(
                "{project}{remote} was trusted, but its Git remote has changed or cannot be read; \
                 run contexture trust {project:?} to trust it as it is, or contexture trust \
                 --revoke {project:?} to forget it"
            ),
            Standing::Gone => format!(
                "{project}{remote} was trusted, but the folder is gone; run contexture trust --revoke \
                 {project:?} to forget it"
            ),
        })
    };
    match Trust::open(folder.join(TRUST_FILE)) {
        Ok(trust) => trust.list().into_iter().map(line).collect(),
        Err(error) => vec![Err(error.to_string())],
    }
}

/// Says whether the state folder, which does not exist yet, can be created. It cannot if the
/// nearest existing path above it is a file. Does not create the folder.
fn state_to_be(folder: &Path) -> DoctorFinding {
    check_owner(folder).map_err(|error| error.to_string())?;
    let above = folder.ancestors().find(|above| above.exists());
    match above.filter(|above| !above.is_dir()) {
        None => {
            Ok(format!("the state will be kept in {}, which will be created", visible_path(folder)))
        }
        Some(file) => Err(format!(
            "the state cannot be kept in {}: {} is not a folder; choose another state folder with --state DIR",
            visible_path(folder),
            visible_path(file)
        )),
    }
}

/// Repairs the state by opening it as the server does when it starts, then reads the whole state
/// and checks the backups. Returns a finding for each repair, one for the state, and one for each
/// backup that is damaged.
fn repair(folder: &Path) -> anyhow::Result<Vec<DoctorFinding>> {
    if !folder.exists() {
        return Ok(vec![Ok("there is no state to repair".to_owned())]);
    }
    let owned = own(folder)?;
    let OpenedStore { mut store, mut findings } = recovery::open(folder, owned.relock())?;
    if recovery::check_file(&Files::new(folder)).is_err() {
        findings.extend(store.renew()?);
    }
    let mut steps: Vec<DoctorFinding> =
        findings.into_iter().map(|finding| Ok(format!("repair: {}", finding.text))).collect();
    if let Some(why) = store.refusal() {
        anyhow::bail!("the state is read-only for now: {why}");
    }
    recovery::check_file(&Files::new(folder))?;
    let sound = "repair: the database was read completely and is sound";
    steps.push(Ok(sound.to_owned()));
    for backup in recovery::backup::list(&Files::new(folder)) {
        if let Err(error) = recovery::backup::check(&backup.path) {
            steps.push(Err(format!("{error}; remove this backup")));
        }
    }
    Ok(steps)
}

/// Reports the last backup, the space that backups take, and the number of earlier states that
/// repairs and restores have kept.
fn kept_beside(folder: &Path) -> Vec<DoctorFinding> {
    let files = Files::new(folder);
    let backups = recovery::backup::list(&files);
    let mut findings = Vec::new();
    if let Some(last) = backups.last() {
        let at = jiff::Timestamp::from_second(last.at).unwrap_or_default();
        let bytes: u64 = backups.iter().map(|backup| backup.bytes).sum();
        let taken = match backups.len() {
            1 => format!("it takes {bytes} bytes"),
            count => format!("all {count} backups take {bytes} bytes"),
        };
        findings.push(Ok(format!("the last backup was made at {at}; {taken}")));
    }
    let damaged = std::fs::read_dir(files.damaged()).map_or(0, Iterator::count);
    if damaged > 0 {
        let kept = match damaged {
            1 => "the files of one state from before a repair or restore; remove them if you do \
                  not need them"
                .to_owned(),
            count => format!(
                "the files of {count} states from before repairs and restores; remove those that \
                 you do not need"
            ),
        };
        findings.push(Ok(format!("{} holds {kept}", visible_path(&files.damaged()))));
    }
    findings
}

/// Checks the state without changing it.
fn database(folder: &Path) -> Vec<DoctorFinding> {
    let files = Files::new(folder);
    if !files.database().exists() && files.marks().iter().all(|mark| !mark.exists()) {
        return vec![Ok(format!("{DATABASE} will be created when the server first starts"))];
    }
    match recovery::inspect(folder) {
        Ok(found) if found.is_empty() => vec![Ok(format!("{DATABASE} is sound"))],
        Ok(found) => {
            let advice = "run `contexture doctor --repair`, or just start the server; copies of \
                          the damaged files are kept";
            let told = found
                .into_iter()
                .map(|finding| Err(format!("a repair would report: {}", finding.text)));
            told.chain([Err(format!("{DATABASE} needs repair: {advice}"))]).collect()
        }
        Err(error) => vec![Err(error.to_string())],
    }
}

fn running(owner: &Owner) -> DoctorFinding {
    let process = of_process(owner);
    // With the id 0, `kill` would end the caller's own processes.
    let end = match owner.pid {
        0 => "end it".to_owned(),
        pid => format!("end it with `kill {pid}`"),
    };
    let Some(path) = &owner.socket else {
        return Err(format!("the server{process} does not listen on a socket; {end}"));
    };
    match checked(owner, path) {
        Ok(Some(warning)) => Err(warning),
        Ok(None) => {
            Ok(format!("a server is running{process} and answers on {}", visible_path(path)))
        }
        Err(Unanswered::Mute(mute)) => Err(mute),
        Err(Unanswered::Unreachable(_)) => {
            Err(format!("the server{process} does not answer on {}; {end}", visible_path(path)))
        }
    }
}

fn in_json(finding: &DoctorFinding) -> FindingInJson {
    let (Ok(text) | Err(text)) = finding;
    FindingInJson { ok: finding.is_ok(), text: visible_lines(text).into_owned() }
}

fn line(finding: &DoctorFinding) -> String {
    match finding {
        Ok(text) => format!("ok  {text}\n"),
        Err(text) => format!("BAD {text}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_is_known_is_to_be_killed() {
        let socket = Some("/nowhere/s.sock".into());
        let told = |pid, socket| running(&Owner { pid, socket }).unwrap_err();
        assert!(
            told(7, None)
                .ends_with("(process 7) does not listen on a socket; end it with `kill 7`")
        );
        assert_eq!(told(0, None), "the server does not listen on a socket; end it");
        assert_eq!(told(0, socket), "the server does not answer on /nowhere/s.sock; end it");
    }
}
