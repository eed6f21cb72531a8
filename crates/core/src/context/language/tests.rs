//! Tests of the table itself, of each way to tell a language, and of the precedence among these
//! ways.

use std::collections::{HashMap, HashSet};

use super::table::{SOURCE, rows};
use super::*;
use crate::context::testing::{With, code, item};

#[track_caller]
fn check<'a>(items: impl IntoIterator<Item = (Item, &'a str)>) {
    for (item, expected) in items {
        assert_eq!(of_item(&item), expected, "{:?} {:?}", item.metadata, item.content);
    }
}

#[track_caller]
fn check_lookup(
    lookup: impl Fn(&str) -> Option<&'static str>,
    expected: &[(&str, Option<&'static str>)],
) {
    for (sign, language) in expected {
        assert_eq!(lookup(sign), *language, "{sign}");
    }
}

#[test]
fn the_table_gives_every_sign_to_one_language() {
    let mut names = HashSet::new();
    let mut signs: [HashMap<&str, &str>; 4] = Default::default();
    for [name, aliases, files, interpreters, modes] in rows(SOURCE) {
        assert!(names.insert(name), "{name} has two lines");
        assert_eq!(of_name(name), Some(Cow::Borrowed(name)));
        let names_too = format!("{name} {aliases}").leak();
        for (kind, column) in [&*names_too, files, interpreters, modes].into_iter().enumerate() {
            for sign in column.split_whitespace() {
                let other = signs[kind].insert(sign, name);
                assert_eq!(other, None, "{sign} is given to {name} too");
            }
        }
    }
    assert!(names.len() >= 80, "{} languages", names.len());
    for (mode, name) in &signs[3] {
        assert!(signs[0].get(mode).is_none_or(|n| n == name), "{mode}: {name}, {}", signs[0][mode]);
    }
}

#[test]
fn the_table_has_five_columns_and_harmless_names() {
    for line in SOURCE.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.matches('|').count() <= 4, "{line}");
        assert_eq!(line, line.trim_end());
    }
    for [name, aliases, _, _, modes] in rows(SOURCE) {
        assert!(!name.is_empty() && name.len() <= LONGEST_NAME);
        let harmless = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+#-".contains(c);
        assert!(name.chars().all(harmless), "{name}");
        for word in aliases.split_whitespace().chain(modes.split_whitespace()) {
            assert_eq!(word, word.to_lowercase());
            assert!(!word.ends_with("-mode") || word == "org-mode", "{word}");
        }
    }
}

#[test]
fn files_are_known_by_name_then_by_the_longest_extension() {
    check_lookup(
        of_path,
        &[
            ("src/a.rs", Some("rust")),
            ("/home/me/.emacs", Some("elisp")),
            ("init.el", Some("elisp")),
            ("a.lisp", Some("lisp")),
            ("a.cl", Some("lisp")),
            ("system.asd", Some("lisp")),
            ("Makefile", Some("makefile")),
            ("sub/Dockerfile", Some("dockerfile")),
            ("Dockerfile.dev", Some("dockerfile")),
            ("CMakeLists.txt", Some("cmake")),
            ("notes.txt", Some("text")),
            (".bashrc", Some("bash")),
            ("Cargo.toml", Some("toml")),
            ("Cargo.lock", Some("toml")),
            ("go.mod", Some("gomod")),
            ("view.html.erb", Some("erb")),
            ("CITATION.cff", Some("yaml")),
            ("MAIN.PY", Some("python")),
            ("a.C", Some("cpp")),
            ("a.c", Some("c")),
            ("a.unknown", None),
            ("rs", None),
            ("rs.d/plain", None),
            ("", None),
            ("ends.with.", None),
            ("ä.ö.rs", Some("rust")),
        ],
    );
}

#[test]
fn modes_are_known_with_and_without_their_suffixes() {
    check_lookup(
        of_mode,
        &[
            ("emacs-lisp-mode", Some("elisp")),
            ("lisp-interaction-mode", Some("elisp")),
            ("lisp-mode", Some("lisp")),
            ("Lisp", Some("lisp")),
            ("rust-ts-mode", Some("rust")),
            ("rustic-mode", Some("rust")),
            ("c++-mode", Some("cpp")),
            ("c++-ts-mode", Some("cpp")),
            ("sh-mode", Some("sh")),
            ("bash-ts-mode", Some("bash")),
            ("typescript-ts-mode", Some("typescript")),
            ("tsx-ts-mode", Some("tsx")),
            ("js-mode", Some("javascript")),
            ("js-json-mode", Some("json")),
            ("LaTeX-mode", Some("latex")),
            ("nxml-mode", Some("xml")),
            ("mhtml-mode", Some("html")),
            ("cperl-mode", Some("perl")),
            ("tuareg-mode", Some("ocaml")),
            ("org-mode", Some("org")),
            ("makefile-gmake-mode", Some("makefile")),
            ("conf-toml-mode", Some("toml")),
            ("text-mode", Some("text")),
            ("fundamental-mode", None),
            ("dired-mode", None),
            ("", None),
        ],
    );
}

#[test]
fn contents_are_known_by_mode_line_or_shebang() {
    check_lookup(
        content::language,
        &[
            ("#!/bin/sh\nls", Some("sh")),
            ("#! /bin/bash -e\r\nls", Some("bash")),
            ("#!/usr/bin/env python3\n", Some("python")),
            ("#!/usr/bin/env -S python3 -u\n", Some("python")),
            ("#!/usr/bin/env -Spython3.11 -u", Some("python")),
            ("#!/usr/bin/env -i -u HOME LANG=C perl5 -w\n", Some("perl")),
            ("#!/usr/local/bin/guile-3.0 \\\n", Some("scheme")),
            ("#!/usr/bin/sbcl --script\n", Some("lisp")),
            ("\u{feff}#!/usr/bin/env node\n", Some("javascript")),
            ("#!/usr/bin/env\n", None),
            ("#!\n", None),
            ("#!/opt/unheard-of\n", None),
            (";; -*- mode: lisp; package: cl-user -*-\n", Some("lisp")),
            (";;; -*- Lisp -*-", Some("lisp")),
            (";;; x.el --- y  -*- lexical-binding: t; -*-\n", None),
            ("# -*- coding: utf-8; Mode: Python -*-\n", Some("python")),
            (
                "#!/bin/sh\n:; exec emacs -Q --script \"$0\" # -*- mode: emacs-lisp -*-\n",
                Some("elisp"),
            ),
            ("/* -*- c++ -*-", Some("cpp")),
            ("-*-", None),
            ("-*--*-", None),
            ("# vim: ft=ruby\n", Some("ruby")),
            ("x = 1\n# vim: set sw=2 filetype=python :\n", Some("python")),
            ("that is vim:ft=ruby? no, notvim:ft=ruby", None),
            ("\n\n# -*- python -*-", None),
            ("", None),
        ],
    );
    let long = format!("{}\n# vim: ft=lua\n", "x\n".repeat(10_000));
    assert_eq!(content::language(&long), Some("lua"));
    assert_eq!(content::language(&"é".repeat(4000)), None);
}

#[test]
fn metadata_outranks_the_name_which_outranks_the_content_which_outranks_the_type() {
    let script = "#!/bin/sh\n";
    check([
        (code(1, script).in_file("a.rs").with("language", "emacs-lisp-mode"), "elisp"),
        (code(1, script).in_file("a.rs").with("language", "fundamental-mode"), "rust"),
        (code(1, script).in_file("a.rs"), "rust"),
        (code(1, script).in_file("a.unknown"), "sh"),
        (code(1, "(+ 1 2)"), "lisp"),
        (item(1, Kind::Error, "oops"), "lisp"),
        (item(1, Kind::ReplHistory, "> 1"), "lisp"),
        (item(1, Kind::Text, "prose"), "text"),
        (item(1, Kind::File, "data"), "text"),
        (item(1, Kind::Custom, "data"), "text"),
    ]);
}

#[test]
fn a_named_language_is_known_or_made_harmless() {
    let named = |name: &str| code(1, "").with("language", name);
    check([
        (named("Rust"), "rust"),
        (named("rs"), "rust"),
        (named("C++"), "cpp"),
        (named("c#"), "csharp"),
        (named("klingon"), "klingon"),
        (named("klingon-ts-mode"), "klingon"),
        (named("a\n```\nb`c d"), "abcd"),
        (named(&"x".repeat(100)), &"x".repeat(40)),
        (named("語"), "lisp"),
        (named(""), "lisp"),
    ]);
}
