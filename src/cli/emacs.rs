//! The facts of the server that its Emacs package needs before it asks, as Emacs Lisp.

use crate::engine::SessionSettings;
use crate::provider::Family;
use crate::rpc::{Method, methods};

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
    let text = |name: &&'static str| format!("{name:?}");
    let strategies: Vec<String> = values("build-window", "strategy").iter().map(text).collect();
    let exports: Vec<String> = values("export-session", "format").iter().map(text).collect();
    let formats = values("render-items", "format").iter().map(|name| (*name).to_owned());
    let SessionSettings { archive_pruned, versioning, manage, .. } = SessionSettings::default();
    let switches =
        [("archive-pruned", archive_pruned), ("versioning", versioning), ("manage", manage)];
    let switch = |(name, on)| format!(":{name} {}", if on { "t" } else { "nil" });
    let kind = |family: &Family| format!("({:?} . {:?})", family.name(), family.usual_url());
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
            strategies.into_iter(),
            "What can choose the messages that are sent; the first does so by default.",
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
            exports.into_iter(),
            "Formats in which conversations are exported; the first is the default.",
        ),
        constant(
            "contexture-provider--kinds",
            kinds,
            "Kinds of providers, with their usual addresses.",
        ),
        END.to_owned(),
    ]
    .concat()
}

/// Returns the values that a parameter may have.
fn values(method: &str, param: &str) -> &'static [&'static str] {
    let params = methods().find(|it| it.name == method).map_or(&[][..], Method::params);
    params.iter().find(|it| it.name == param).map_or(&[], |param| &param.values)
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
