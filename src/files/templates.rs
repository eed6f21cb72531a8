//! Where templates lie: in the project, then with the user's configuration, then in the program.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::template::{
    BUILT_IN, MAX_TEMPLATE_BYTES, Source, Template, TemplateError, bare_name, built_in, is_name,
};

/// Where a project keeps its templates.
pub const PROJECT_FOLDER: &str = ".contexture/templates";

/// The folders in which templates are looked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TemplateFolders {
    /// The project's root.
    pub project: Option<PathBuf>,
    /// The folder of the user's own templates.
    pub user: Option<PathBuf>,
}

/// Why there is no template.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The name can be no template's.
    #[error("a template's name has letters, digits, spaces, dots, - and _, got {0:?}")]
    BadName(String),
    /// No place has one of this name.
    #[error("no template {name:?}; there are {}", .known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// Its file cannot be read.
    #[error("cannot read the template {}: {cause}", crate::visible::visible_path(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Its file is too large.
    #[error(
        "the template {} has more than {MAX_TEMPLATE_BYTES} bytes",
        crate::visible::visible_path(path)
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not well-formed.
    #[error(transparent)]
    Malformed(#[from] TemplateError),
}

/// A folder, and how a file in it is told of.
type Place = (PathBuf, fn(String) -> Source);

impl TemplateFolders {
    /// The template of this name, with or without `.md`: the project's before the user's, and
    /// that before the one in the program. Reads the file anew each time.
    ///
    /// # Errors
    /// Every [`FindError`].
    pub fn find(&self, name: &str) -> Result<Template, FindError> {
        let bare = bare_name(name);
        if !is_name(bare) {
            return Err(FindError::BadName(name.to_owned()));
        }
        for (folder, source) in self.places() {
            let path = folder.join(format!("{bare}.md"));
            let text = match read(&path) {
                Err(FindError::Unreadable { cause, .. })
                    if cause.kind() == io::ErrorKind::NotFound =>
                {
                    continue;
                }
                read => read?,
            };
            return Ok(Template::parse(bare, source(shown(&path)), &text)?);
        }
        match built_in(bare) {
            Some(template) => Ok(template?),
            None => Err(FindError::Unknown { name: name.to_owned(), known: self.names() }),
        }
    }

    /// The names of all templates with where each is found, by name.
    pub fn list(&self) -> BTreeMap<String, Source> {
        let mut found: BTreeMap<String, Source> =
            BUILT_IN.iter().map(|built_in| (built_in.name.to_owned(), Source::BuiltIn)).collect();
        for (folder, source) in self.places().into_iter().rev() {
            for path in markdown_files(&folder) {
                let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                if is_name(name) {
                    found.insert(name.to_owned(), source(shown(&path)));
                }
            }
        }
        found
    }

    fn names(&self) -> Vec<String> {
        self.list().into_keys().collect()
    }

    /// The folders, that which wins first.
    fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        if let Some(project) = &self.project {
            places.push((project.join(PROJECT_FOLDER), Source::Project));
        }
        if let Some(user) = &self.user {
            places.push((user.clone(), Source::User));
        }
        places
    }
}

fn read(path: &Path) -> Result<String, FindError> {
    let unreadable = |cause| FindError::Unreadable { path: path.to_owned(), cause };
    let file = std::fs::metadata(path).map_err(unreadable)?;
    if !file.is_file() {
        let cause = io::Error::other("it is no regular file");
        return Err(FindError::Unreadable { path: path.to_owned(), cause });
    }
    if file.len() > MAX_TEMPLATE_BYTES as u64 {
        return Err(FindError::TooLarge { path: path.to_owned() });
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    #[test]
    fn the_project_comes_before_the_user_and_that_before_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let (project, user) = (dir.path().join("p"), dir.path().join("u"));
        let folders = TemplateFolders { project: Some(project.clone()), user: Some(user.clone()) };
        let source = |name: &str| folders.find(name).unwrap().source.kind();
        assert_eq!(source("explain"), "built-in");
        write(&user, "explain.md", "mine");
        assert_eq!(source("explain.md"), "user");
        write(&project.join(PROJECT_FOLDER), "explain.md", "ours");
        assert_eq!(source("explain"), "project");
        assert_eq!(folders.find("explain").unwrap().body, "ours");
        write(&user, "notes.md", "{{ broken");
        assert_eq!(folders.list()["notes"].kind(), "user");
        let error = folders.find("notes").unwrap_err().to_string();
        assert!(error.starts_with("template notes: line 1, "), "{error}");
    }

    #[test]
    fn a_changed_file_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let folders = TemplateFolders { project: None, user: Some(dir.path().to_owned()) };
        write(dir.path(), "a.md", "one");
        let first = folders.find("a").unwrap();
        write(dir.path(), "a.md", "two");
        let second = folders.find("a").unwrap();
        assert_ne!(first.hash, second.hash);
        assert_eq!(second.body, "two");
    }

    #[test]
    fn errors_list_what_exists() {
        let error = TemplateFolders::default().find("goal").unwrap_err().to_string();
        assert!(error.starts_with("no template \"goal\"; there are code-review, "), "{error}");
        let error = TemplateFolders::default().find("../x").unwrap_err().to_string();
        assert!(error.starts_with("a template's name has"), "{error}");
    }

    #[test]
    fn what_is_no_readable_file_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let folders = TemplateFolders { project: None, user: Some(dir.path().to_owned()) };
        std::fs::create_dir(dir.path().join("a.md")).unwrap();
        assert!(matches!(folders.find("a"), Err(FindError::Unreadable { .. })));
        write(dir.path(), "b.md", &"x".repeat(MAX_TEMPLATE_BYTES + 1));
        assert!(matches!(folders.find("b"), Err(FindError::TooLarge { .. })));
    }
}
