//! The table of languages, read once from the text compiled into the program.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Source of the table: one language per line. Its head explains the columns.
pub(super) const SOURCE: &str = include_str!("table.txt");

/// The table of all languages.
pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(SOURCE));

/// Maps names, file names, interpreters and modes to the languages they stand for.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Names and aliases, in lower case.
    pub(super) names: Signs,
    /// Names of files, and extensions, which begin with a dot.
    pub(super) files: Signs,
    /// Programs that run the language.
    pub(super) interpreters: Signs,
    /// Modes in lower case and without `-mode`. Names and aliases are not repeated here.
    pub(super) modes: Signs,
}

/// Strings that stand for languages, each with the name of its language.
#[derive(Debug, Default)]
pub(super) struct Signs(HashMap<&'static str, &'static str>);

impl Signs {
    /// Returns the language that `sign` stands for, if any.
    pub(super) fn of(&self, sign: &str) -> Option<&'static str> {
        self.0.get(sign).copied()
    }

    fn put(&mut self, signs: &'static str, name: &'static str) {
        self.0.extend(signs.split_whitespace().map(|sign| (sign, name)));
    }
}

impl Table {
    fn read(source: &'static str) -> Self {
        let mut table = Self::default();
        for [name, aliases, files, interpreters, modes] in rows(source) {
            table.names.put(name, name);
            table.names.put(aliases, name);
            table.files.put(files, name);
            table.interpreters.put(interpreters, name);
            table.modes.put(modes, name);
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
