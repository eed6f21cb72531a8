//! Adds the entry of the server to Codex's TOML, and removes it. All other bytes stay the same.
//! Nothing here has side effects.

use std::ops::Range;

use toml_edit::{Array, Document, DocumentMut, Item, Table, TableLike};

use super::edit::Edit;
use super::value::{ENTRY, TAKEN, same_server};

const SERVERS: &str = "mcp_servers";

/// Returns the edit that adds the entry with the command `words`, or corrects the command of an
/// existing entry.
///
/// # Errors
/// The reason in words, if `words` is empty, or the text does not parse or cannot take another
/// table.
pub(super) fn add(text: &str, words: &[String]) -> Result<Edit, String> {
    let mut document = parse(text)?;
    let Some((program, args)) = words.split_first() else {
        return Err("the command is empty".to_owned());
    };
    if let Some(entry) = entry(&mut document) {
        let have = words_of(entry);
        if !same_server(&have, words) {
            return Err(format!("{SERVERS}: {TAKEN}"));
        }
        if have == words {
            return Ok(Edit::default());
        }
        entry.insert("command", toml_edit::value(program));
        entry.insert("args", toml_edit::value(args.iter().collect::<Array>()));
        return Ok(Edit::between(text, &document.to_string()));
    }
    let new = format!("{text}{}", block(text, words));
    parse(&new).map_err(|_| {
        format!("{SERVERS} is not a table that can be extended; add the entry by hand")
    })?;
    Ok(Edit::between(text, &new))
}

/// Returns the edit that removes the entry, unless it is another program's than that of `words`.
///
/// # Errors
/// The reason in words, if the text does not parse.
pub(super) fn remove(text: &str, words: &[String]) -> Result<Edit, String> {
    let mut document = parse(text)?;
    if !entry(&mut document).is_some_and(|entry| same_server(&words_of(entry), words)) {
        return Ok(Edit::default());
    }
    let mut is_empty = false;
    if let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) {
        servers.remove(ENTRY);
        is_empty = servers.is_empty();
    }
    let servers = document.get(SERVERS).and_then(Item::as_table);
    if is_empty && servers.is_some_and(Table::is_implicit) {
        document.remove(SERVERS);
    }
    // Removing the entry from the document would also remove the comments above it. Removing only
    // its lines is better, unless another table is between them.
    let whole = document.to_string();
    let after = without_lines(text).filter(|after| same_values(after, &whole));
    Ok(Edit::between(text, &after.unwrap_or(whole)))
}

/// Returns the text without the lines from the entry's first to its last, and without a blank line
/// above them; `None` if there is no entry.
fn without_lines(text: &str) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let all = extent(document.get(SERVERS)?.get(ENTRY)?)?;
    let start = text[..all.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[all.end..].find('\n').map_or(text.len(), |line| all.end + line + 1);
    let above = &text[..start];
    let blank = ["\r\n", "\n"].into_iter().find(|end| above.ends_with(&format!("\n{end}")));
    let above = blank.and_then(|blank| above.strip_suffix(blank)).unwrap_or(above);
    Some(format!("{above}{}", &text[end..]))
}

/// Returns the byte range of an item with everything in it; `None` if nothing of it has a place in
/// the text.
fn extent(item: &Item) -> Option<Range<usize>> {
    let below = item.as_table_like().into_iter().flat_map(|table| table.iter());
    let all = below.filter_map(|(_, item)| extent(item)).chain(item.span());
    all.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end))
}

fn same_values(one: &str, other: &str) -> bool {
    let read = |text: &str| ::toml::from_str::<::toml::Table>(text).ok();
    read(one).is_some_and(|one| Some(one) == read(other))
}

/// The command of an entry as words, the variables that the agent sets, and whether the agent is told
/// not to start it.
pub(super) type ServerEntry = (Vec<String>, Vec<(String, String)>, bool);

/// Returns what the entry tells the agent to start; the command is empty if there is no entry or no
/// command.
///
/// # Errors
/// The reason in words, if the text does not parse.
pub(super) fn server(text: &str) -> Result<ServerEntry, String> {
    let mut document = parse(text)?;
    let Some(entry) = entry(&mut document) else { return Ok(ServerEntry::default()) };
    let words = words_of(entry);
    let env = entry.get("env").and_then(Item::as_table_like);
    let env = env.into_iter().flat_map(|env| env.iter());
    let env = env.filter_map(|(name, value)| Some((name.to_owned(), value.as_str()?.to_owned())));
    let is_off = entry.get("enabled").and_then(Item::as_bool) == Some(false);
    Ok((words, env.collect(), is_off))
}

/// Returns the words of the command that an entry has; empty if it has none.
fn words_of(entry: &dyn TableLike) -> Vec<String> {
    let Some(program) = entry.get("command").and_then(Item::as_str) else { return Vec::new() };
    let args = entry.get("args").and_then(Item::as_array).into_iter().flatten();
    let args = args.filter_map(|arg| arg.as_str().map(str::to_owned));
    std::iter::once(program.to_owned()).chain(args).collect()
}

/// Returns whether `text`, Codex's configuration, says that Codex trusts a hook in the file with
/// the path `file`.
pub(super) fn trusts(text: &str, file: &str) -> bool {
    let Ok(document) = Document::parse(text) else { return false };
    let states = document.get("hooks").and_then(|hooks| hooks.get("state"));
    let mut states = states.and_then(Item::as_table_like).into_iter().flat_map(|all| all.iter());
    states.any(|(key, state)| {
        let rest = key.strip_prefix(file);
        rest.is_some_and(|rest| rest.starts_with(':')) && state.get("trusted_hash").is_some()
    })
}

/// Returns the entry as a table to append to `text`, with the line ends that must come between.
pub(super) fn block(text: &str, words: &[String]) -> String {
    let args: Array = words.iter().skip(1).collect();
    let program = toml_edit::Value::from(words.first().map_or("", String::as_str));
    let gap = match text {
        "" => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let block = format!("{gap}[{SERVERS}.{ENTRY}]\ncommand = {program}\nargs = {args}\n");
    if text.contains("\r\n") { block.replace('\n', "\r\n") } else { block }
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    // The reason in full would quote the file, which may hold keys.
    text.parse().map_err(|wrong: toml_edit::TomlError| {
        let at = wrong.span().map_or(0, |span| span.start);
        let line = text[..at].matches('\n').count() + 1;
        format!("line {line}: {}", wrong.message())
    })
}

fn entry(document: &mut DocumentMut) -> Option<&mut dyn TableLike> {
    let servers = document.get_mut(SERVERS)?.as_table_like_mut()?;
    servers.get_mut(ENTRY)?.as_table_like_mut()
}
