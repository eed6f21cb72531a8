//! Adds, corrects and removes entries in JSON with or without comments. All other bytes stay the
//! same.
//! Nothing here has side effects.

use std::ops::Range;

use jsonc_parser::ast::{Array, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::edit::{Edit, Splice};
use super::value::{
    Child, ENTRY, TAKEN, are_groups, bare, children, command, commands, hooks, quoted, render,
    same_hook, same_server, server_words,
};

/// A parsed text, with the data needed to edit it.
struct JsonDocument<'a> {
    text: &'a str,
    root: Value<'a>,
    commas: Vec<Range<usize>>,
    /// One step of indentation.
    step: String,
}

/// Returns the edit that adds the missing parts of `wanted`, a JSON object, and corrects the parts
/// that differ, other than numbers.
///
/// # Errors
/// The reason in words, if the text does not parse, or if something else is in the place of the
/// entries.
pub(super) fn add(text: &str, wanted: &str) -> Result<Edit, String> {
    let wanted = JsonDocument::parse(wanted)?;
    if text.trim().is_empty() {
        let new = render(&wanted.root, "", "  ", "\n") + "\n";
        return Ok(Edit::new(vec![Splice { range: text.len()..text.len(), text: new }]));
    }
    let have = JsonDocument::parse(text)?;
    let mut splices = Vec::new();
    have.merge(&have.root, &wanted.root, &mut splices)?;
    Ok(Edit::new(splices))
}

/// Returns the edit that removes the entries of `wanted`.
///
/// # Errors
/// The reason in words, if the text does not parse.
pub(super) fn remove(text: &str, wanted: &str) -> Result<Edit, String> {
    if text.trim().is_empty() {
        return Ok(Edit::default());
    }
    let (have, wanted) = (JsonDocument::parse(text)?, JsonDocument::parse(wanted)?);
    let mut splices = Vec::new();
    if have.strip(&have.root, &wanted.root, &mut splices) {
        let all = children(&have.root);
        have.take_out(&have.root, &(0..all.len()).collect::<Vec<_>>(), &mut splices);
    }
    Ok(Edit::new(splices))
}

/// Returns whether a JSON text is empty or an empty object, apart from white space.
pub(super) fn is_blank(text: &str) -> bool {
    let bare: String = text.split_whitespace().collect();
    matches!(&*bare, "" | "{}")
}

/// Returns the lines of `wanted` as they would be added, without indentation and commas.
pub(super) fn lines(wanted: &str) -> Vec<String> {
    let text = JsonDocument::parse(wanted).map(|it| render(&it.root, "", "  ", "\n"));
    let line = |line: &str| line.trim().trim_end_matches(',').to_owned();
    text.unwrap_or_default().lines().map(line).collect()
}

/// Returns the value that the names in `path` lead to, step by step, from the root of a JSON text;
/// `None` if there is no such value.
///
/// # Errors
/// The reason in words, if the text does not parse.
pub(super) fn find<'a>(text: &'a str, path: &[&str]) -> Result<Option<Value<'a>>, String> {
    let mut value = JsonDocument::parse(text)?.root;
    for name in path {
        let Value::Object(mut object) = value else { return Ok(None) };
        let last = object.properties.iter().rposition(|it| it.name.as_str() == *name);
        let Some(last) = last else { return Ok(None) };
        value = object.properties.swap_remove(last).value;
    }
    Ok(Some(value))
}

/// Adds splices that correct the commands of our hooks in `all`. Returns the groups in `wanted`
/// whose hooks are missing.
fn add_groups<'w, 'v>(
    all: &Array<'_>,
    wanted: &'w Array<'v>,
    splices: &mut Vec<Splice>,
) -> Vec<Child<'w, 'v>> {
    let mut missing = Vec::new();
    for group in &wanted.elements {
        let Some((ours, _)) = commands(group).next() else { continue };
        let mut found = all.elements.iter().flat_map(commands);
        match found.find(|(command, _)| same_hook(command, ours)) {
            Some((command, _)) if command == ours => {}
            Some((_, range)) => splices.push(Splice { range, text: quoted(ours) }),
            None => missing.push(Child::Element(group)),
        }
    }
    missing
}

impl<'a> JsonDocument<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let collect = CollectOptions { tokens: true, ..CollectOptions::default() };
        let parsed = parse_to_ast(text, &collect, &strict()).map_err(|wrong| wrong.to_string())?;
        let root = parsed.value.ok_or("it is empty")?;
        let tokens = parsed.tokens.unwrap_or_default();
        let commas = tokens.into_iter().filter(|it| matches!(it.token, Token::Comma));
        let commas = commas.map(|it| it.range.start..it.range.end).collect();
        let mut document = Self { text, root, commas, step: "  ".to_owned() };
        let first = children(&document.root).first().map(|child| document.indent(child.start));
        document.step = first.filter(|it| !it.is_empty()).unwrap_or("  ").to_owned();
        Ok(document)
    }

    /// Returns the white space at the beginning of the line that contains the byte `at`.
    fn indent(&self, at: usize) -> &'a str {
        let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        let rest = &self.text[line..];
        &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
    }

    fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    fn merge(
        &self,
        have: &Value<'a>,
        wanted: &Value<'_>,
        splices: &mut Vec<Splice>,
    ) -> Result<(), String> {
        match (have, wanted) {
            (Value::Object(all), Value::Object(wanted)) => {
                let mut missing = Vec::new();
                for property in &wanted.properties {
                    // Of several values with one name, agents take the last.
                    let name = property.name.as_str();
                    match all.properties.iter().rfind(|it| it.name.as_str() == name) {
                        Some(it) if is_taken(name, &it.value, &property.value) => {
                            return Err(format!("line {}: {TAKEN}", self.line(&it.value)));
                        }
                        Some(it) => self.merge(&it.value, &property.value, splices)?,
                        None => missing.push(Child::Property(property)),
                    }
                }
                self.insert(have, &missing, splices);
            }
            (Value::Array(all), Value::Array(wanted)) if are_groups(wanted) => {
                let missing = add_groups(all, wanted, splices);
                self.insert(have, &missing, splices);
            }
            _ if bare(have) == bare(wanted) => {}
            (Value::Array(_), Value::Array(_)) | (Value::StringLit(_), Value::StringLit(_)) => {
                self.replace(have, wanted, splices);
            }
            (Value::NumberLit(_), Value::NumberLit(_)) => {}
            _ => return Err(self.misfit(have)),
        }
        Ok(())
    }

    fn replace(&self, have: &Value<'a>, wanted: &Value<'_>, splices: &mut Vec<Splice>) {
        let range = have.range();
        let text = render(wanted, self.indent(range.start), &self.step, self.line_end());
        splices.push(Splice { range: range.start..range.end, text });
    }

    fn misfit(&self, have: &Value<'a>) -> String {
        format!(
            "line {}: this value has the wrong type, so no entry can be added; correct or remove it",
            self.line(have)
        )
    }

    /// Returns the number of the line in which a value begins.
    fn line(&self, have: &Value<'a>) -> usize {
        self.text[..have.range().start].matches('\n').count() + 1
    }

    /// Adds splices that put the children `new` at the end of an object or array.
    fn insert(&self, container: &Value<'a>, new: &[Child<'_, '_>], splices: &mut Vec<Splice>) {
        if new.is_empty() {
            return;
        }
        let (open, close) = (container.range().start + 1, container.range().end - 1);
        let base = self.indent(open - 1);
        let all = children(container);
        let (end, indent) = match all.last() {
            Some(last) if self.begins_line(last.start) => {
                (last.end, self.indent(last.start).to_owned())
            }
            Some(last) => (last.end, format!("{base}{}", self.step)),
            None => (open, format!("{base}{}", self.step)),
        };
        if !all.is_empty() && self.comma(end..close).is_none() {
            splices.push(Splice { range: end..end, text: ",".to_owned() });
        }
        let at = end + self.text[end..close].trim_end().len();
        let line_end = self.line_end();
        let mut text = String::new();
        for (index, child) in new.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let child = child.render(&indent, &self.step, line_end);
            text += &format!("{comma}{line_end}{indent}{child}");
        }
        if !self.text[at..close].contains('\n') {
            text += &format!("{line_end}{base}");
        }
        splices.push(Splice { range: at..at, text });
    }

    fn begins_line(&self, at: usize) -> bool {
        let line = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        self.text[line..at].trim().is_empty() && line > 0
    }

    /// Returns the first comma in the range `within`, which must contain no values; `None` if there
    /// is no comma.
    fn comma(&self, within: Range<usize>) -> Option<&Range<usize>> {
        self.commas.iter().find(|comma| within.contains(&comma.start))
    }

    /// Adds splices that remove our entries from the value `have`. If nothing else is in the value,
    /// returns true instead, and leaves the removal of the whole value to the caller.
    fn strip(&self, have: &Value<'a>, wanted: &Value<'_>, splices: &mut Vec<Splice>) -> bool {
        let mut below = Vec::new();
        let mut gone = Vec::new();
        match (have, wanted) {
            (Value::Object(all), Value::Object(wanted)) => {
                for (index, property) in all.properties.iter().enumerate() {
                    let name = property.name.as_str();
                    let is_gone = wanted.get(name).is_some_and(|wanted| match name == ENTRY {
                        true => !is_taken(name, &property.value, &wanted.value),
                        false => self.strip(&property.value, &wanted.value, &mut below),
                    });
                    gone.extend(is_gone.then_some(index));
                }
            }
            (Value::Array(all), Value::Array(wanted)) if !all.elements.is_empty() => {
                let ours: Vec<_> = wanted.elements.iter().flat_map(commands).collect();
                let is_ours = |it: &str| ours.iter().any(|(ours, _)| same_hook(it, ours));
                for (index, group) in all.elements.iter().enumerate() {
                    let is_gone = self.strip_group(group, &is_ours, &mut below);
                    gone.extend(is_gone.then_some(index));
                }
            }
            _ => return false,
        }
        if !gone.is_empty() && gone.len() == children(have).len() {
            return true;
        }
        self.take_out(have, &gone, &mut below);
        splices.append(&mut below);
        false
    }

    /// Adds splices that remove our hooks from a group. If the group has no other hooks, returns
    /// true instead, and leaves the removal of the whole group to the caller.
    fn strip_group(
        &self,
        group: &Value<'a>,
        is_ours: &dyn Fn(&str) -> bool,
        splices: &mut Vec<Splice>,
    ) -> bool {
        let Some(hooks) = hooks(group) else { return false };
        let ours = |hook: &Value<'_>| command(hook).is_some_and(|(it, _)| is_ours(it));
        let Value::Array(all) = hooks else { return false };
        let all = all.elements.iter().enumerate();
        let gone: Vec<_> = all.filter(|(_, hook)| ours(hook)).map(|(index, _)| index).collect();
        if !gone.is_empty() && gone.len() == children(hooks).len() {
            return true;
        }
        self.take_out(hooks, &gone, splices);
        false
    }

    /// Adds splices that remove the children with the indices `gone` from an object or array, with
    /// their commas and lines.
    fn take_out(&self, container: &Value<'a>, gone: &[usize], splices: &mut Vec<Splice>) {
        let all = children(container);
        let (open, close) = (container.range().start + 1, container.range().end - 1);
        let next = |index: usize| all.get(index + 1).map_or(close, |next| next.start);
        for &index in gone {
            let before = index.checked_sub(1).map_or(open, |index| all[index].end);
            let start = before + self.text[before..all[index].start].trim_end().len();
            let comma = self.comma(all[index].end..next(index));
            let mut end = comma.map_or(all[index].end, |comma| comma.end);
            let is_last = index + 1 == all.len();
            if is_last && gone.len() == all.len() && self.text[end..close].trim().is_empty() {
                end = close;
            }
            splices.push(Splice { range: start..end, text: String::new() });
        }
        // If no comma follows removed children at the end, the comma before them is removed too.
        let kept = (0..all.len()).rev().find(|index| !gone.contains(index));
        if let Some(kept) = kept.filter(|kept| kept + 1 < all.len()) {
            let last = all.last().map_or(close, |last| last.end);
            if let Some(comma) = self.comma(all[kept].end..all[kept + 1].start)
                && self.comma(last..close).is_none()
            {
                splices.push(Splice { range: comma.clone(), text: String::new() });
            }
        }
    }
}

/// Returns whether an entry has the name of ours, but is another program's.
fn is_taken(name: &str, have: &Value<'_>, wanted: &Value<'_>) -> bool {
    let is_entry = name == ENTRY && have.as_object().is_some();
    is_entry && !same_server(&server_words(have), &server_words(wanted))
}

/// Returns options of the parser that allow comments and trailing commas, and are strict otherwise.
fn strict() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}
