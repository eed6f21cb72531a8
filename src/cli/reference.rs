//! The reference of the protocol as Markdown, made from its JSON Schema.

use std::fmt::Write;

use serde_json::{Map, Value as Json};

use crate::agent::tools::context::{self, ContextTool};
use crate::curation::strategy::{self, Strategy};
use crate::rpc::contract;
use crate::rpc::{Method, Param, default_limits, document, methods};

/// A part of the protocol's reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ReferencePart {
    /// The parameters that many methods take.
    Envelope,
    /// The methods with their parameters and results.
    Methods,
    /// The types that results and notifications share.
    Types,
    /// The kinds of errors.
    Errors,
    /// The topics of notifications.
    Notifications,
    /// The limits, with their defaults.
    Limits,
    /// The strategies for windows.
    Strategies,
    /// The server's tools for models.
    Tools,
}

/// Returns a part of the reference, as it appears in `docs/protocol.md`.
pub(super) fn markdown(part: ReferencePart) -> String {
    let document = document();
    let reference = Reference { types: &document["$defs"], document: &document };
    match part {
        ReferencePart::Envelope => reference.envelope(),
        ReferencePart::Methods => {
            methods().map(|it| reference.method(it)).collect::<Vec<_>>().join("\n")
        }
        ReferencePart::Types => reference.types(),
        ReferencePart::Errors => reference.errors(),
        ReferencePart::Notifications => reference.notifications(),
        ReferencePart::Limits => reference.limits(),
        ReferencePart::Strategies => strategies(),
        ReferencePart::Tools => tools(),
    }
}

/// Returns the table of strategies.
fn strategies() -> String {
    let row = |it: &&dyn Strategy| format!("| `:{}` | {} |\n", it.name(), it.keeps());
    let rows: String = strategy::ALL.iter().map(row).collect();
    format!("| strategy | keeps |\n| --- | --- |\n{rows}")
}

/// Returns the table of the server's tools.
fn tools() -> String {
    let row = |it: &ContextTool| {
        let arguments: Vec<_> = it.arguments().map(|name| format!("`{name}`")).collect();
        format!("| `{}` | {} | {} |\n", it.name, arguments.join(", "), it.description)
    };
    let rows: String = context::ALL.iter().map(row).collect();
    format!("| tool | arguments | what it does |\n| --- | --- | --- |\n{rows}")
}

/// Returns an amount with its unit, in the largest that has no fraction.
fn amount(name: &str, number: u64) -> String {
    match number {
        _ if !name.ends_with("bytes") => {
            let digits = number.to_string();
            let groups: Vec<&str> = digits
                .as_bytes()
                .rchunks(3)
                .rev()
                .map(|group| std::str::from_utf8(group).unwrap_or_default())
                .collect();
            groups.join(",")
        }
        number if number % (1 << 20) == 0 => format!("{} MiB", number >> 20),
        number if number % (1 << 10) == 0 => format!("{} KiB", number >> 10),
        number => format!("{number} bytes"),
    }
}

struct Reference<'a> {
    document: &'a Json,
    types: &'a Json,
}

impl Reference<'_> {
    fn method(&self, method: &Method) -> String {
        let mut text = format!("#### `{}`\n\n{}\n\n", method.name, method.doc);
        let contract = contract::described(method.name);
        if !contract.is_empty() {
            let _ = writeln!(text, "{contract}\n");
        }
        let schema = &self.document["methods"][method.name];
        let params = &schema["params"]["properties"];
        let param = |it: &&Param| self.param(it, &params[it.name.replace('-', "_")]);
        let (shared, own): (Vec<&Param>, Vec<&Param>) =
            method.params().iter().partition(|param| self.is_shared(param, params));
        text += &own.iter().map(param).collect::<String>();
        if !own.is_empty() {
            text.push('\n');
        }
        if !shared.is_empty() {
            let names: Vec<_> = shared.iter().map(|it| format!("`:{}`", it.name)).collect();
            let _ = writeln!(text, "[Also](#parameters-of-many-methods): {}.\n", names.join(", "));
        }
        let _ = writeln!(text, "Result ({}): {}", self.kind(&schema["result"]), method.result);
        if let Some(lists) = method.lists_in_pages() {
            let lists: Vec<_> = lists.iter().map(|path| format!("`:{path}`")).collect();
            let _ = writeln!(text, "\nIn [pages](#pages): {}.", lists.join(", "));
        }
        let brief: Vec<_> =
            method.left_out_by_brief().iter().map(|name| format!("`:{name}`")).collect();
        if !brief.is_empty() {
            let _ = writeln!(text, "\n`:brief` leaves out: {}.", brief.join(", "));
        }
        for (title, of) in [("Progress", "progress"), ("Errors also have", "error_data")] {
            if let Some(of) = schema.get(of) {
                let members = self.members(self.resolved(of));
                let _ = writeln!(text, "\n{title}:\n\n{}", members.trim_end());
            }
        }
        text
    }

    fn limits(&self) -> String {
        let defaults = default_limits();
        let mut text = "| in `:limits` | default | what |\n| --- | ---: | --- |\n".to_owned();
        for (name, of) in members(&self.types["Limits"]["properties"]) {
            let default = amount(name, defaults[name].as_u64().unwrap_or_default());
            let doc = of["description"].as_str().unwrap_or_default();
            let _ = writeln!(text, "| `:{}` | {default} | {doc} |", name.replace('_', "-"));
        }
        text
    }

    /// Returns whether a parameter has the same meaning in many methods.
    fn is_shared(&self, param: &Param, params: &Json) -> bool {
        let name = param.name.replace('-', "_");
        let shared = self.document["envelope"]["properties"].get(&name);
        shared.is_some_and(|shared| *shared == params[name])
    }

    /// Formats the parameters that many methods take.
    fn envelope(&self) -> String {
        self.members(&self.document["envelope"]).replace(", not always)", ")")
    }

    fn types(&self) -> String {
        let shown = members(self.types).filter(|(_, of)| {
            // A type that is only a part of another type has no section of its own.
            let is_part = of.get("x-part-of").is_some();
            of["properties"].is_object() && !is_part
        });
        shown.map(|(name, of)| self.section(name, of)).collect::<Vec<_>>().join("\n")
    }

    fn errors(&self) -> String {
        let mut text = "| kind | when | data |\n| --- | --- | --- |\n".to_owned();
        for (kind, of) in members(&self.document["errors"]["kinds"]) {
            let data = members(&of["data"]["properties"]).filter(|(name, _)| *name != "kind");
            let data = data.map(|(name, of)| format!("`:{}`: {}", kebab(name), described(of)));
            let data = data.collect::<Vec<_>>().join(" ");
            let _ = writeln!(text, "| `{kind}` | {} | {data} |", described(of));
        }
        text
    }

    fn notifications(&self) -> String {
        let topics = members(&self.document["notifications"]);
        let sections = topics.map(|(topic, of)| self.section(topic, self.resolved(of)));
        sections.collect::<Vec<_>>().join("\n")
    }

    fn section(&self, name: &str, of: &Json) -> String {
        format!("#### `{name}`\n\n{}\n\n{}", described(of), self.members(of))
    }

    /// Formats the members of an object as a list. Members that are always present come first.
    fn members(&self, of: &Json) -> String {
        let required: Vec<&str> =
            of["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let place = |name: &str| required.iter().position(|required| *required == name);
        let mut all: Vec<_> = members(&of["properties"]).collect();
        all.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        let line = |(name, of): (&String, &Json)| {
            let optional = if place(name).is_none() { ", not always" } else { "" };
            let kind = self.kind(of);
            let values = self.values(of);
            format!("- `:{}` ({kind}{optional}): {}{values}\n", kebab(name), described(of))
        };
        all.into_iter().map(line).collect()
    }

    /// Returns the type of the values that a schema allows, as the reference names it.
    fn kind(&self, schema: &Json) -> String {
        if let Some((name, target)) = self.target(schema) {
            let name = target["x-part-of"].as_str().unwrap_or(name);
            return match target["properties"].is_object() {
                true => format!("[`{name}`](#{})", name.to_lowercase()),
                false => self.kind(target),
            };
        }
        if let Some(branches) = schema["anyOf"].as_array() {
            let mut kinds: Vec<_> = branches.iter().map(|branch| self.kind(branch)).collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
        let types = match &schema["type"] {
            Json::Array(types) => types.iter().filter_map(Json::as_str).collect(),
            of => vec![of.as_str().unwrap_or(match constants(schema).is_empty() {
                true => "anything",
                false => "string",
            })],
        };
        let is_keyword = schema["format"] == "keyword" || !constants(schema).is_empty();
        let kinds: Vec<_> = types
            .into_iter()
            .map(|name| match name {
                "string" if is_keyword => "name".to_owned(),
                "array" => match self.kind(&schema["items"]) {
                    several if several.contains(" or ") => format!("list of ({several})"),
                    one => format!("list of {one}"),
                },
                "object" => "plist".to_owned(),
                "null" => "`nil`".to_owned(),
                name => name.to_owned(),
            })
            .collect();
        kinds.join(" or ")
    }

    fn param(&self, param: &Param, schema: &Json) -> String {
        let Param { name, doc, .. } = param;
        // A type from the reference says more than `plist` does.
        let own = self.kind(schema).replace(" or `nil`", "");
        let kind = if own.contains("](#") { &own } else { param.kind };
        let need = if param.required { ", required" } else { "" };
        let values = one_of(param.values.iter().copied());
        format!("- `:{name}` ({kind}{need}): {doc}{values}\n")
    }

    /// Returns a sentence with the values that a schema allows, or an empty text if it lists no
    /// values.
    fn values(&self, schema: &Json) -> String {
        let of = self.resolved(schema);
        let branches = of["anyOf"].as_array().into_iter().flatten();
        one_of(std::iter::once(of).chain(branches).flat_map(|of| constants(self.resolved(of))))
    }

    /// Returns the type to which a schema refers, or the schema itself if it refers to none.
    fn resolved<'s>(&'s self, schema: &'s Json) -> &'s Json {
        self.target(schema).map_or(schema, |(_, target)| target)
    }

    fn target(&self, schema: &Json) -> Option<(&str, &Json)> {
        let (_, name) = schema.get("$ref")?.as_str()?.rsplit_once('/')?;
        let (name, target) = self.types.as_object()?.get_key_value(name)?;
        Some((name, target))
    }
}

/// Returns the strings that a schema allows, whether it lists them under `enum`, `oneOf` or
/// `const`.
fn constants(schema: &Json) -> Vec<&str> {
    let variants = schema["oneOf"].as_array().into_iter().flatten().map(|one| &one["const"]);
    let listed = schema["enum"].as_array().into_iter().flatten();
    listed.chain(variants).chain(schema.get("const")).filter_map(Json::as_str).collect()
}

/// Returns a sentence that lists the names, or an empty text if there are none.
fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("`:{name}`")).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" One of {}.", names.join(", ")),
    }
}

fn members(of: &Json) -> impl Iterator<Item = (&String, &Json)> {
    of.as_object().into_iter().flat_map(Map::iter)
}

fn described(schema: &Json) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

fn kebab(name: &str) -> String {
    name.replace('_', "-")
}
