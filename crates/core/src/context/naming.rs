//! Names files in one text or list: relative to the project that the text is for, else absolute, so
//! that one name never means two files. Pure.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use super::item::{Item, Metadata, inside};
use super::place::{Place, PlaceKind};
use contexture_value::Value;

/// Metadata name for the root of the project to which a file's name is relative when it is shown.
const PROJECT: &str = "project";

/// How the files of some items are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Naming {
    /// Folder to which names are relative, without a final slash.
    root: Option<String>,
    /// Relative names that clients gave, of which nobody knows the folder.
    given: HashSet<String>,
}

impl Naming {
    /// Returns the naming for items that are shown for these managers, from general to specific.
    /// The root is the last project among the managers; if there is none, the only project that
    /// the items name.
    pub fn of<'a>(
        managers: impl IntoIterator<Item = &'a str>,
        items: impl IntoIterator<Item = &'a Item>,
    ) -> Self {
        let of_project = |name: &'a str| Place::of(name).filter(|it| it.kind == PlaceKind::Project);
        let root = managers.into_iter().filter_map(of_project).last();
        let (mut projects, mut given) = (BTreeSet::new(), HashSet::new());
        for metadata in items.into_iter().map(|item| &item.metadata) {
            match metadata.filename() {
                Some(name) if name.starts_with('/') => projects.extend(project_around(metadata)),
                Some(name) => drop(given.insert(name.to_owned())),
                None => {}
            }
        }
        let only = projects.first().filter(|_| projects.len() == 1).copied();
        let root = root.map(|place| place.name).or(only).map(str::to_owned);
        Self { root, given }
    }

    /// Returns the metadata of an item as they are shown: `project` is the folder to which the
    /// file's name is relative, or absent if the name is absolute.
    pub fn shown<'a>(&self, metadata: &'a Metadata) -> Cow<'a, Metadata> {
        let Some(name) = metadata.filename().filter(|name| name.starts_with('/')) else {
            return Cow::Borrowed(metadata);
        };
        let is_free =
            |root: &&str| inside(name, root).is_some_and(|relative| !self.given.contains(relative));
        match (self.root.as_deref().filter(is_free), project_around(metadata)) {
            (root, project) if root == project => Cow::Borrowed(metadata),
            (root, _) => {
                let mut shown = metadata.clone();
                match root {
                    Some(root) => shown.set(PROJECT, Value::Str(root.to_owned())),
                    None => shown.remove(PROJECT),
                }
                Cow::Owned(shown)
            }
        }
    }

    /// Returns an item with its metadata as they are [shown](Self::shown).
    pub fn item<'a>(&self, item: &'a Item) -> Cow<'a, Item> {
        match self.shown(&item.metadata) {
            Cow::Borrowed(_) => Cow::Borrowed(item),
            Cow::Owned(metadata) => Cow::Owned(Item { metadata, ..item.clone() }),
        }
    }
}

/// Returns the project that the metadata name, without a final slash, if the file is inside it.
fn project_around(metadata: &Metadata) -> Option<&str> {
    let project = metadata.text(PROJECT)?.trim_end_matches('/');
    inside(metadata.filename()?, project).map(|_| project)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::testing::{With, code};

    fn names(managers: &[&str], files: &[(&str, &str)]) -> Vec<String> {
        let item = |(number, (file, project)): (usize, &(&str, &str))| {
            code(number as u64, "").in_file(file).with(PROJECT, project)
        };
        let items: Vec<Item> = files.iter().enumerate().map(item).collect();
        let naming = Naming::of(managers.iter().copied(), &items);
        let shown = items.iter().map(|item| naming.item(item).into_owned());
        shown.map(|item| item.metadata.display_name().unwrap().to_owned()).collect()
    }

    #[test]
    fn names_are_relative_to_the_project_of_the_context() {
        let layers = ["*shared*", "project:/w/a/", "file:/w/a/x"];
        let files = [("/w/a/s/x", "/w/a"), ("/w/b/s/x", "/w/b/"), ("/w/a/sub/y", "/w/a/sub")];
        assert_eq!(names(&layers, &files), ["s/x", "/w/b/s/x", "sub/y"]);
        let remote = ["project:/w/a//github.com/x/a"];
        assert_eq!(names(&remote, &files), ["s/x", "/w/b/s/x", "sub/y"]);
    }

    #[test]
    fn without_a_project_names_are_relative_to_the_only_one_of_the_items() {
        let one = [("/w/a/x", "/w/a"), ("/w/a/y", "/w/a/")];
        assert_eq!(names(&["*shared*"], &one), ["x", "y"]);
        let two = [("/w/a/x", "/w/a"), ("/w/b/x", "/w/b"), ("x", "/w/a")];
        assert_eq!(names(&["*shared*"], &two), ["/w/a/x", "/w/b/x", "x"]);
    }

    #[test]
    fn a_name_that_somebody_gave_stays_free() {
        let files = [("/w/a/x", "/w/a"), ("x", "/elsewhere")];
        assert_eq!(names(&["project:/w/a/"], &files), ["/w/a/x", "x"]);
    }
}
