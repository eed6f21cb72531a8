//! The facts of the server that its Emacs package needs before it asks, as Emacs Lisp.

use serde_json::Value as Json;

use crate::agent::tools::context;
use crate::curation::strategy;
use crate::engine::SessionSettings;
use crate::provider::Family;
use crate::rpc::{Method, document, methods};

/// Method with a request key to which Emacs gives none: the method also reads, and a repeated call
/// changes nothing more.
const READS_TOO: &str = "configure-session";

/// Longest line of the file, in columns.
const COLUMNS: usize = 78;

const BEGIN: &str = r#";;; contexture-generated.el --- What the server and Emacs both know  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture schema --emacs' prints this file, and `make docs' writes it.
;; Change the server, not this file.

;;; Code:
"#;

const END: &str = "\n(provide 'contexture-generated)\n;;; contexture-generated.el ends here\n";

/// Returns the file `contexture-generated.el`.
pub(super) fn generated() -> String {
    let takes_key = |method: &&Method| method.params().iter().any(|it| it.name == "request-key");
    let changing = methods().filter(takes_key).filter(|method| method.name != READS_TOO);
    let newest_first = methods().filter(|method| method.has_newest_page_first());
    let described = |name: &str, what: &str| format!("({name:?} . {what:?})");
    let strategies = strategy::ALL.iter().map(|it| described(it.name(), it.keeps()));
    let tools = context::ALL.iter().map(|it| described(it.name, it.description));
    let document = document();
    let exports = documented(&document, "ExportFormat").map(|(name, what)| described(name, what));
    let formats =
        documented(&document, "RenderFormat").map(|(name, what)| format!("({name} . {what:?})"));
    let SessionSettings { archive_pruned, versioning, manage, .. } = SessionSettings::default();
    let switches =
        [("archive-pruned", archive_pruned), ("versioning", versioning), ("manage", manage)];
    let switch = |(name, on)| format!(":{name} {}", if on { "t" } else { "nil" });
    let kind = |family: &Family| format!("({:?} . {:?})", family.name(), family.usual_url());
    let local = Family::ALL.iter().filter(|family| family.is_local());
    let local = local.map(|family| format!("{:?}", family.name()));
    let kinds = Family::ALL.iter().map(kind).chain(["(\"scripted\")".to_owned()]);
    [
        BEGIN.to_owned(),
        constant(
            "contexture--changing-methods",
            names(changing),
            "Methods whose calls carry a request key, so that no call is applied twice.\n\
             These are the server's methods that change something, with the contract's\n\
             names for some.  `configure-session' is left out: it also reads settings,\n\
             and a repeated call of it changes nothing more.",
        ),
        constant(
            "contexture--newest-first-methods",
            names(newest_first),
            "Methods whose pages go from the end of the list, the newest entries, back.",
        ),
        constant(
            "contexture--strategies",
            strategies,
            "What can choose the messages that are sent, with what it prefers.\n\
             The first does so by default.",
        ),
        constant(
            "contexture--switches",
            switches.map(switch).into_iter(),
            "The settings of conversations that are on or off, with their defaults.",
        ),
        constant(
            "contexture--formats",
            formats,
            "Formats in which contexts are rendered; the first is the default.",
        ),
        constant(
            "contexture--exports",
            exports,
            "Formats in which conversations are exported; the first is the default.",
        ),
        constant("contexture--server-tools", tools, "Tools that the server has for models."),
        constant(
            "contexture-provider--kinds",
            kinds,
            "Kinds of providers, with their usual addresses.",
        ),
        constant(
            "contexture-provider--local",
            local,
            "Kinds of providers that run here.\n\
             They want no key, and are told how large a window to load.",
        ),
        END.to_owned(),
    ]
    .concat()
}

/// Returns the values of a type of the schema, each with what it is.
fn documented<'a>(document: &'a Json, kind: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let values = document["$defs"][kind]["oneOf"].as_array().into_iter().flatten();
    values.filter_map(|value| Some((value["const"].as_str()?, value["description"].as_str()?)))
}

/// Returns the names of methods, with those that the contract has for them.
fn names(methods: impl Iterator<Item = &'static Method>) -> impl Iterator<Item = String> {
    methods
        .flat_map(|method| std::iter::once(method.name).chain(method.contract_names()))
        .map(str::to_owned)
}

/// Returns the definition of a constant that is a list.
fn constant(name: &str, elements: impl Iterator<Item = String>, doc: &str) -> String {
    let mut text = format!("\n(defconst {name}\n  '(");
    let mut column = "  '(".len();
    for (index, element) in elements.enumerate() {
        if index > 0 {
            let fits = column + 1 + element.len() <= COLUMNS;
            text += if fits { " " } else { "\n    " };
            column = if fits { column + 1 } else { "    ".len() };
        }
        column += element.len();
        text += &element;
    }
    text + &format!(")\n  {doc:?})\n").replace("\\n", "\n")
}
