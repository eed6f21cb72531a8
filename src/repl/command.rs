//! Commands: lines that begin with a slash.

use super::lisp::{items, refusal, string_at, text, texts};
use super::session::{ReplSession, SessionSlot};
use super::{ReplShared, absolute, readable, talk};
use crate::value::Value;
use crate::visible::visible;
use crate::wire::message::WireError;

/// The commands, each with its name, arguments and description.
pub(super) const COMMANDS: [(&str, &str, &str); 17] = [
    ("/context", "", "Show what is in the context."),
    ("/add", "FILE[:LINE[-LINE]]", "Add a file, or lines of it, to the context."),
    ("/drop", "ctx-N…", "Remove items from the context."),
    ("/clear", "", "Remove from the context the items that were added here."),
    ("/undo", "", "Undo the last change to the items that were added here."),
    ("/redo", "", "Redo the change that was undone last."),
    ("/use", "[FILE]", "Show the model the items of another file or folder."),
    ("/session", "[NAME]", "List the sessions, or continue one."),
    ("/model", "[NAME]", "List the models, or choose one for this session."),
    ("/template", "[NAME|off]", "List the templates, or choose one for taking notes."),
    (
        "/tools",
        "[on|off|allow NAME|ask NAME]",
        "List the tools that models may call, or choose them.",
    ),
    ("/retry", "", "Go back to the last question, and ask it again."),
    ("/stats", "", "Show how full the model's window is."),
    ("/explain", "", "Explain why each part of the last window was kept or left out."),
    ("/checkpoint", "[MESSAGE]", "Take a checkpoint of the session."),
    ("/rollback", "[chk-N]", "Go back to a checkpoint, by default your last one."),
    ("/help", "", "List the commands."),
];

/// Commands about what a session already holds. These commands never open a session.
const OPEN_NONE: &[&str] = &["/stats", "/explain", "/rollback"];

/// A parsed command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplCommand<'a> {
    pub(super) name: &'a str,
    rest: &'a str,
}

/// Parses a command. Returns `None` for other texts, such as paths or several lines.
pub(super) fn of(typed: &str) -> Option<ReplCommand<'_>> {
    let line = typed.trim();
    let name = line.split_whitespace().next()?;
    let word = name.strip_prefix('/')?;
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    (is_word && !line.contains('\n')).then(|| ReplCommand { name, rest: line[name.len()..].trim() })
}

/// Runs a command and returns the text to show.
pub(super) async fn run(
    shared: &ReplShared,
    command: ReplCommand<'_>,
    place: &SessionSlot,
) -> Result<String, WireError> {
    let ReplCommand { name, rest } = command;
    match name {
        "/help" => return Ok(help()),
        "/session" => return talk::session(shared, place, rest).await,
        name if !COMMANDS.iter().any(|(known, ..)| *known == name) => {
            return Err(refusal(format!("there is no command {name}; /help lists the commands")));
        }
        _ => {}
    }
    let session = if OPEN_NONE.contains(&name) {
        let Some(row) = place.row(shared).await else {
            return Ok("no session is open yet; a question opens one\n".to_owned());
        };
        ReplSession::of(&row)
    } else {
        place.session(shared).await?
    };
    match name {
        "/use" => return talk::place(shared, session, rest).await,
        "/model" => return talk::model(shared, session, rest).await,
        "/template" => return talk::template(shared, session, rest).await,
        "/tools" => return talk::tools(shared, session, rest).await,
        _ => {}
    }
    let about = session.project.as_deref().map_or("no project".into(), visible);
    let managers = ("managers", texts(session.managers.iter().map(String::as_str)));
    let manager = ("manager", text(session.manager));
    let session = ("session", text(session.name));
    match name {
        "/context" => {
            let summary = {
                let count = ("count-only", Value::Bool(true));
                shared.call("list-items", [managers.clone(), count]).await?
            };
            let lines = brief(shared, managers).await?;
            let lines = lines.iter().map(readable::item).collect::<String>();
            let preview = string_at(&summary, "preview").unwrap_or("No context");
            Ok(format!("{preview}\n{lines}; this conversation is about {about}\n"))
        }
        "/add" => add(shared, rest, manager).await,
        "/drop" if rest.is_empty() => Err(refusal("name the items to remove, such as /drop ctx-3")),
        "/drop" => {
            let listed = brief(shared, managers).await?;
            let mut answers = String::new();
            for (manager, ids) in held(rest, &listed, manager.1) {
                let params = [("ids", texts(ids)), ("manager", manager)];
                answers += &readable::answer(&shared.call("remove-items", params).await?);
            }
            Ok(answers)
        }
        "/clear" => Ok(readable::answer(
            &shared.call("remove-items", [manager, ("all", Value::Bool(true))]).await?,
        )),
        "/undo" => Ok(readable::answer(&shared.call("undo", [manager]).await?)),
        "/redo" => Ok(readable::answer(&shared.call("redo", [manager]).await?)),
        "/stats" => Ok(readable::answer(&shared.call("session-report", [session]).await?)),
        "/explain" => {
            let latest = ("reports", Value::Int(1));
            let report = shared.call("session-report", [session, latest]).await?;
            match report.get("reports") {
                Some(Value::List(reports)) if !reports.is_empty() => {
                    Ok(reports.iter().map(readable::answer).collect())
                }
                _ => Ok("no window has been built for this session yet; ask a question first\n"
                    .to_owned()),
            }
        }
        "/checkpoint" => {
            let message = if rest.is_empty() { Value::Nil } else { text(rest) };
            let params = [session, ("message", message)];
            Ok(readable::answer(&shared.call("checkpoint", params).await?))
        }
        _ => {
            let checkpoint = match rest {
                "" => last_checkpoint(shared, session.clone()).await?,
                named => text(named),
            };
            let params = [session, ("checkpoint", checkpoint)];
            Ok(readable::answer(&shared.call("rollback", params).await?))
        }
    }
}

/// Returns the id of the last checkpoint that the user took, or else of the last checkpoint of any
/// kind; `nil` if there is none.
async fn last_checkpoint(
    shared: &ReplShared,
    session: (&'static str, Value),
) -> Result<Value, WireError> {
    let checkpoints = ("checkpoints", Value::Bool(true));
    let listed = items(shared.call("list-operations", [session, checkpoints]).await?);
    let is_own = |row: &&Value| {
        let message = string_at(row, "message").unwrap_or_default();
        row.get("automatic") != Some(&Value::Bool(true)) && !message.starts_with("Before: ")
    };
    let last = listed.iter().find(is_own).or(listed.first());
    Ok(last.and_then(|row| row.get("checkpoint")).cloned().unwrap_or_default())
}

/// Returns all items of the managers in `managers` (a parameter with its name), without the items'
/// contents.
async fn brief(
    shared: &ReplShared,
    managers: (&'static str, Value),
) -> Result<Vec<Value>, WireError> {
    Ok(items(shared.call("list-items", [managers, ("brief", Value::Bool(true))]).await?))
}

/// Groups the typed ids by the managers that hold the items. Ids that are not listed go to the
/// manager `own`, which then refuses them.
fn held<'a>(typed: &'a str, listed: &[Value], own: Value) -> Vec<(Value, Vec<&'a str>)> {
    let mut held: Vec<(Value, Vec<&str>)> = Vec::new();
    for id in typed.split_whitespace() {
        let row = listed.iter().find(|row| string_at(row, "id") == Some(id));
        let manager = row.and_then(|row| row.get("manager")).unwrap_or(&own);
        match held.iter_mut().find(|(known, _)| known == manager) {
            Some((_, ids)) => ids.push(id),
            None => held.push((manager.clone(), vec![id])),
        }
    }
    held
}

async fn add(
    shared: &ReplShared,
    named: &str,
    manager: (&'static str, Value),
) -> Result<String, WireError> {
    let (file, lines) = file_and_lines(named);
    if file.is_empty() {
        return Err(refusal("name a file, such as /add src/main.lisp or /add src/main.lisp:10-20"));
    }
    let path = absolute(&shared.directory(), file);
    let path = ("path", text(path.to_string_lossy()));
    let [start, end] = lines.map_or([Value::Nil, Value::Nil], |lines| lines.map(Value::Int));
    let params = [path, manager, ("start-line", start), ("end-line", end)];
    let added = shared.call("add-file", params).await?;
    Ok(readable::item(&added))
}

/// Splits a name such as `a.lisp:3-7` or `a.lisp:3` into the file and its first and last line;
/// without lines, they are `None`.
fn file_and_lines(named: &str) -> (&str, Option<[i64; 2]>) {
    let found = named.rsplit_once(':').and_then(|(file, lines)| {
        let (start, end) = lines.split_once('-').unwrap_or((lines, lines));
        Some((file, Some([start.parse().ok()?, end.parse().ok()?])))
    });
    found.unwrap_or((named, None))
}

fn help() -> String {
    let line =
        |(name, rest, doc): &(&str, &str, &str)| format!("{:<38}{doc}\n", format!("{name} {rest}"));
    let commands: String = COMMANDS.iter().map(line).collect();
    format!("{commands}Anything else is sent to the model.\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_single_words_after_a_slash() {
        let check = |typed: &str, expected: Option<(&str, &str)>| {
            assert_eq!(
                of(typed).map(|ReplCommand { name, rest }| (name, rest)),
                expected,
                "{typed}"
            );
        };
        check("/add  a b.lisp ", Some(("/add", "a b.lisp")));
        check("  /help", Some(("/help", "")));
        check("/dance", Some(("/dance", "")));
        for turn in ["/usr/bin/x is broken", "/", "/ x", "a /help", "/help\nme", "/a.b", "", "//x"]
        {
            check(turn, None);
        }
    }

    #[test]
    fn files_may_have_lines() {
        assert_eq!(file_and_lines("a.lisp:3-7"), ("a.lisp", Some([3, 7])));
        assert_eq!(file_and_lines("a.lisp:3"), ("a.lisp", Some([3, 3])));
        assert_eq!(file_and_lines("a:b"), ("a:b", None));
        assert_eq!(file_and_lines("C-a:3-x"), ("C-a:3-x", None));
    }
}
