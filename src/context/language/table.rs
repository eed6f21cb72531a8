//! The table of languages, read once from the text compiled into the program.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Source of the table: one language per line. Its head explains the columns.
pub(super) const SOURCE: &str = include_str!("table.txt");

/// The table of all languages.
pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(SOURCE));

/// Maps every sign of a language to the language's name.
#[derive(Debug, Default)]
pub(super) struct Table {
    names: Signs,
    files: Signs,
    interpreters: Signs,
    modes: Signs,
}

type Signs = HashMap<&'static str, &'static str>;

impl Table {
    /// Returns the language with this name or alias, in lower case.
    pub(super) fn name(&self, name: &str) -> Option<&'static str> {
        self.names.get(name).copied()
    }

    /// Returns the language of files with this name, or with this extension if it begins with a
    /// dot.
    pub(super) fn file(&self, name: &str) -> Option<&'static str> {
        self.files.get(name).copied()
    }

    /// Returns the language that this program runs.
    pub(super) fn interpreter(&self, program: &str) -> Option<&'static str> {
        self.interpreters.get(program).copied()
    }

    /// Returns the language of this mode, in lower case and without `-mode`. Names and aliases are
    /// not repeated here.
    pub(super) fn mode(&self, mode: &str) -> Option<&'static str> {
        self.modes.get(mode).copied()
    }

    fn read(source: &'static str) -> Self {
        let mut table = Self::default();
        for [name, aliases, files, interpreters, modes] in rows(source) {
            table.names.insert(name, name);
            table.names.extend(aliases.split_whitespace().map(|sign| (sign, name)));
            table.files.extend(files.split_whitespace().map(|sign| (sign, name)));
            table.interpreters.extend(interpreters.split_whitespace().map(|sign| (sign, name)));
            table.modes.extend(modes.split_whitespace().map(|sign| (sign, name)));
        }
        table
    }
}

/// Returns the five columns of every line that is not a comment. Missing columns are empty.
pub(super) fn rows(source: &'static str) -> impl Iterator<Item = [&'static str; 5]> {
    source.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split('|').map(str::trim);
        std::array::from_fn(|_| columns.next().unwrap_or_default())
    })
}
