//! Commands about the conversation: its session, model, template and tools, and the place whose
//! items the model sees.

use super::lisp::{items, refusal, string_at, text, texts, value_at};
use super::session::{self, ReplSession, SessionSlot};
use super::{ReplShared, absolute, readable};
use crate::value::Value;
use crate::visible::visible;
use crate::wire::message::WireError;

type SaidOnConnection = Result<String, WireError>;

/// Lists the sessions, the one with the latest message first, or switches to the session with this
/// name or id. Begins a new session if there is none.
pub(super) async fn session(
    shared: &ReplShared,
    place: &SessionSlot,
    name: &str,
) -> SaidOnConnection {
    if name.is_empty() {
        let here = place.known().map(|session| session.id);
        let rows = items(shared.call("list-sessions", []).await?);
        return Ok(lines(&rows, |row| {
            let is_here = string_at(row, "id") == here.as_deref();
            let name = string_at(row, "session").unwrap_or_default();
            let messages = row.get("messages").map(readable::plain).unwrap_or_default();
            let noun = if messages == "1" { "message" } else { "messages" };
            format!("{} {}, {messages} {noun}", mark(is_here), visible(name))
        }));
    }
    if place.switch(shared, name).await? {
        return Ok(format!("; this is now the session {}\n", visible(name)));
    }
    place.open(shared, text(name)).await?;
    Ok(format!("; the session {} begins\n", visible(name)))
}

/// Shows the model the items of the file or folder `named` instead of those that it saw so far; it
/// keeps seeing the session's own items. Without a name, says whose items the model sees.
pub(super) async fn place(
    shared: &ReplShared,
    session: ReplSession,
    named: &str,
) -> SaidOnConnection {
    if named.is_empty() {
        let names = session.managers.iter().map(String::as_str);
        return Ok(shown_managers(names, &session.manager));
    }
    let path = absolute(&shared.directory(), named);
    let kind = path.clone();
    let is_folder =
        tokio::task::spawn_blocking(move || kind.metadata().map(|metadata| metadata.is_dir()));
    let Ok(Ok(is_folder)) = is_folder.await else {
        return Err(refusal(format!("there is no file or folder {}", visible(named))));
    };
    let folder = if is_folder { &*path } else { path.parent().unwrap_or(&path) };
    let file = if is_folder { Value::Nil } else { text(path.to_string_lossy()) };
    let place = [("directory", text(folder.to_string_lossy())), ("filename", file)];
    let managers = session::layers(shared, place).await?;
    let params = [("session", text(session.name)), ("managers", managers.clone())];
    shared.call("configure-session", params).await?;
    let managers = items(managers);
    Ok(shown_managers(managers.iter().filter_map(Value::as_text), &session.manager))
}

fn shown_managers<'a>(names: impl Iterator<Item = &'a str>, own: &'a str) -> String {
    let names = names.filter(|name| *name != own).chain([own]);
    let names: Vec<_> = names.map(visible).collect();
    format!("; the model sees the items of {}\n", names.join(", "))
}

/// Lists the models that can be chosen, or chooses one.
pub(super) async fn model(
    shared: &ReplShared,
    session: ReplSession,
    name: &str,
) -> SaidOnConnection {
    if name.is_empty() {
        let chosen = settings(shared, &session).await?.get("model").map(readable::plain);
        let rows = items(shared.call("list-providers", []).await?);
        let list = lines(&rows, |row| {
            let field = |name| visible(string_at(row, name).unwrap_or_default());
            format!("  {}: {}", field("name"), field("model"))
        });
        return Ok(match chosen {
            Some(model) if model != "no" => format!("; this session uses {model}\n{list}"),
            _ => list,
        });
    }
    let params = [("session", text(session.name)), ("model", text(name))];
    shared.call("configure-session", params).await?;
    Ok(format!("; this session uses {} now\n", visible(name)))
}

/// Lists the templates, or chooses the template for note-taking; `off` turns note-taking off.
pub(super) async fn template(
    shared: &ReplShared,
    session: ReplSession,
    name: &str,
) -> SaidOnConnection {
    let of_session = ("session", text(&*session.name));
    match name {
        "" => {
            let settings = settings(shared, &session).await?;
            let is_on = settings.get("manage") == Some(&Value::Bool(true));
            let chosen = string_at(&settings, "template").filter(|_| is_on);
            let project = shared.directory().to_string_lossy().into_owned();
            let params = [("project", text(project))];
            let rows = items(shared.call("list-templates", params).await?);
            Ok(lines(&rows, |row| {
                let field = |name| visible(string_at(row, name).unwrap_or_default());
                let is_chosen = string_at(row, "name") == chosen && chosen.is_some();
                format!("{} {}: {}", mark(is_chosen), field("name"), field("description"))
            }))
        }
        "off" => {
            shared.call("configure-session", [of_session, ("manage", Value::Nil)]).await?;
            Ok("; notes are no longer taken\n".to_owned())
        }
        name => {
            let params = [of_session, ("template", text(name)), ("manage", Value::Bool(true))];
            shared.call("configure-session", params).await?;
            Ok(format!("; notes are now taken with the template {}\n", visible(name)))
        }
    }
}

/// Lists the tools that models may call, changes this list, or changes which tools need permission.
pub(super) async fn tools(
    shared: &ReplShared,
    session: ReplSession,
    text_given: &str,
) -> SaidOnConnection {
    let settings = settings(shared, &session).await?;
    let allowed: Vec<String> = names(&settings, "allowed-tools");
    let of_session = ("session", text(&*session.name));
    let (setting, value, now) = match *text_given.split_whitespace().collect::<Vec<_>>() {
        [] => {
            let offered = names(&settings, "tools");
            let brought = items(shared.call("list-tools", []).await?);
            let brought = brought.iter().filter_map(|row| string_at(row, "name"));
            let all = offered.iter().map(String::as_str).chain(brought);
            let line = |name: &str| {
                let is_allowed = allowed.iter().any(|known| known == name);
                let how = if is_allowed { ", without asking" } else { "" };
                format!("  {}{how}\n", visible(name))
            };
            let list: String = all.map(line).collect();
            let none = "; models are offered no tools; /tools on offers the server's tools\n";
            return Ok(if list.is_empty() { none.to_owned() } else { list });
        }
        ["on"] => ("tools", Value::Bool(true), "models are now offered the server's tools".into()),
        ["off"] => ("tools", Value::Nil, "models are no longer offered the server's tools".into()),
        [what @ ("allow" | "ask"), name] => {
            let others = allowed.iter().map(String::as_str).filter(|known| *known != name);
            let now = match what {
                "allow" => format!("models may now call {} without asking", visible(name)),
                _ => format!("models must now ask before they call {}", visible(name)),
            };
            let all = others.chain((what == "allow").then_some(name));
            ("allowed-tools", texts(all), now)
        }
        _ => return Err(refusal("/tools takes on, off, allow NAME or ask NAME")),
    };
    shared.call("configure-session", [of_session, (setting, value)]).await?;
    Ok(format!("; {now}\n"))
}

async fn settings(shared: &ReplShared, session: &ReplSession) -> Result<Value, WireError> {
    shared.call("configure-session", [("session", text(&*session.name))]).await
}

fn names(settings: &Value, field: &str) -> Vec<String> {
    let names = items(value_at(settings, field));
    names.iter().filter_map(Value::as_text).map(|name| name.replace('-', "_")).collect()
}

fn mark(is_chosen: bool) -> char {
    if is_chosen { '*' } else { ' ' }
}

fn lines(rows: &[Value], line: impl Fn(&Value) -> String) -> String {
    rows.iter().map(|row| line(row) + "\n").collect()
}
