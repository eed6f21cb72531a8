//! Finds templates: in a trusted project, then in the user's configuration, then in the program.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Beneath, FileError, Identity, OpenedFile, Trust};

use crate::template::{
    BUILT_IN, LONGEST_NAME, MAX_TEMPLATE_BYTES, Template, TemplateError, TemplatePlace, bare_name,
    built_in, is_name,
};

/// Folder in a project that holds its templates.
pub const PROJECT_FOLDER: &str = ".contexture/templates";
/// Maximum number of files in a folder that are considered as templates.
const MAX_FILES: usize = 1_000;

/// Folders that are searched for templates.
#[derive(Debug, Clone, Default)]
pub struct TemplateFolders {
    /// Root of the project.
    pub project: Option<PathBuf>,
    /// Folder of the user's own templates.
    pub user: Option<PathBuf>,
    /// Projects whose templates may be used.
    pub trust: Arc<Trust>,
}

/// A template that was found but not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTemplate {
    /// Name of the template.
    pub name: String,
    /// Place where it was found.
    pub source: TemplatePlace,
    /// True if the template may be used. The templates of an untrusted project may not be used.
    pub is_trusted: bool,
}

/// Says which names templates may have, as the rest of a sentence about the name.
pub fn bad_name(name: &str) -> String {
    format!(
        "must have 1 to {LONGEST_NAME} letters, digits, spaces, dots, - and _, and not begin with \
         a dot, got {name:?}"
    )
}

/// Error from finding a template.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The name is not valid for a template.
    #[error("the name of a template {}", bad_name(.0))]
    BadName(String),
    /// There is no template of this name.
    #[error("no template {name:?}; the templates are {}", .known.join(", "))]
    Unknown {
        /// Requested name.
        name: String,
        /// Names of the templates that exist.
        known: Vec<String>,
    },
    /// Only an untrusted project has a template of this name.
    #[error(
        "the template {name:?} belongs to the project {}, which is not trusted; look at its \
         {PROJECT_FOLDER}, then trust the project with M-x contexture-trust-project, or in a \
         shell with contexture trust DIR",
        crate::visible::visible_path(project)
    )]
    Untrusted {
        /// Requested name.
        name: String,
        /// Folder of the project.
        project: PathBuf,
    },
    /// The template's file cannot be read.
    #[error("cannot read the template {}: {cause}", crate::visible::visible_path(path))]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        cause: String,
    },
    /// The template's file is too large.
    #[error(
        "the template {} has more than {MAX_TEMPLATE_BYTES} bytes; shorten it",
        crate::visible::visible_path(path)
    )]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
    },
    /// The template is not well-formed.
    #[error(transparent)]
    Malformed(#[from] TemplateError),
}

/// A project's folder, held open while its templates are searched.
struct Project {
    folder: Beneath,
    path: PathBuf,
    is_trusted: bool,
}

impl TemplateFolders {
    /// Returns the template of this name, with or without `.md`. Looks in the project if it is
    /// trusted, then in the user's folder, then in the program. Reads the file again each time.
    ///
    /// # Errors
    /// Any [`FindError`].
    pub fn find(&self, name: &str) -> Result<Template, FindError> {
        let bare = bare_name(name);
        if !is_name(bare) {
            return Err(FindError::BadName(name.to_owned()));
        }
        let project = self.project();
        let own = project.as_ref().and_then(|project| project.template(bare));
        if let Some(file) = own.as_ref().filter(|_| project.as_ref().is_some_and(|p| p.is_trusted))
        {
            return parsed(bare, TemplatePlace::Project, file);
        }
        // A template of the user may be a link to anywhere.
        let of_user = self.user.as_ref().map(|user| file_of(user, bare));
        if let Some(file) = of_user.and_then(|path| found(OpenedFile::at(&path), path)) {
            return parsed(bare, TemplatePlace::User, &file);
        }
        match (built_in(bare), own, project) {
            (Some(template), ..) => Ok(template?),
            (None, Some(_), Some(project)) => {
                Err(FindError::Untrusted { name: name.to_owned(), project: project.path })
            }
            _ => Err(FindError::Unknown { name: name.to_owned(), known: self.names() }),
        }
    }

    /// Lists all templates by name: for each name the template that [`TemplateFolders::find`]
    /// returns, followed by the project's own template if the project is not trusted.
    pub fn list(&self) -> Vec<ListedTemplate> {
        // A trusted template comes before an untrusted one of the same name.
        let key = |name: String, is_trusted: bool| (name, Reverse(is_trusted));
        let built_in =
            BUILT_IN.iter().map(|it| (key(it.name.to_owned(), true), TemplatePlace::BuiltIn));
        let mut found: BTreeMap<(String, Reverse<bool>), TemplatePlace> = built_in.collect();
        if let Some(user) = &self.user
            && let Ok(folder) = Beneath::new(user)
        {
            for name in names(&folder, Path::new(".")) {
                let source = TemplatePlace::User(shown(&file_of(user, &name)));
                found.insert(key(name, true), source);
            }
        }
        if let Some(project) = self.project() {
            for name in names(&project.folder, Path::new(PROJECT_FOLDER)) {
                let source = TemplatePlace::Project(shown(&project.file(&name)));
                found.insert(key(name, project.is_trusted), source);
            }
        }
        let listed =
            |((name, Reverse(is_trusted)), source)| ListedTemplate { name, source, is_trusted };
        found.into_iter().map(listed).collect()
    }

    fn names(&self) -> Vec<String> {
        self.list().into_iter().filter(|one| one.is_trusted).map(|one| one.name).collect()
    }

    /// Returns the project if its folder can be opened. A project that cannot be identified is not
    /// trusted.
    fn project(&self) -> Option<Project> {
        let path = self.project.clone()?;
        let folder = Beneath::new(&path).ok()?;
        let identity = Identity::of(&folder);
        let is_trusted = identity.is_ok_and(|identity| self.trust.holds(&identity));
        Some(Project { folder, path, is_trusted })
    }
}

/// Path of a template's file, and the opened file or the reason why it cannot be opened.
type FoundTemplate = (PathBuf, Result<OpenedFile, FileError>);

impl Project {
    fn file(&self, name: &str) -> PathBuf {
        file_of(&self.path.join(PROJECT_FOLDER), name)
    }

    fn template(&self, name: &str) -> Option<FoundTemplate> {
        let opened = self.folder.open(&file_of(Path::new(PROJECT_FOLDER), name));
        found(opened, self.file(name))
    }
}

fn found(opened: Result<OpenedFile, FileError>, path: PathBuf) -> Option<FoundTemplate> {
    match opened {
        Err(FileError::Missing { .. }) => None,
        opened => Some((path, opened)),
    }
}

fn parsed(
    name: &str,
    source: fn(String) -> TemplatePlace,
    (path, opened): &FoundTemplate,
) -> Result<Template, FindError> {
    let unreadable = |cause: String| FindError::Unreadable { path: path.clone(), cause };
    let opened = opened.as_ref().map_err(|error| unreadable(error.problem()))?;
    let text = opened.text(MAX_TEMPLATE_BYTES as u64).map_err(|error| match error {
        FileError::TooLarge { .. } => FindError::TooLarge { path: path.clone() },
        error => unreadable(error.problem()),
    })?;
    Ok(Template::parse(name, source(shown(path)), &text)?)
}

fn names(folder: &Beneath, within: &Path) -> Vec<String> {
    let files = folder.names(within, MAX_FILES).unwrap_or_default();
    let names = files.iter().filter_map(|file| file.strip_suffix(".md"));
    names.filter(|name| is_name(name)).map(str::to_owned).collect()
}

fn file_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.md"))
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join(name), text).unwrap();
    }

    fn folders(project: Option<&Path>, user: Option<&Path>) -> TemplateFolders {
        let owned = |path: Option<&Path>| path.map(Path::to_path_buf);
        TemplateFolders { project: owned(project), user: owned(user), trust: Arc::default() }
    }

    /// Returns the name, the source and the trust of each template whose name begins with `x`.
    fn rows(folders: &TemplateFolders) -> Vec<(String, &'static str, bool)> {
        let listed = folders.list().into_iter().filter(|one| one.name.starts_with('x'));
        listed.map(|one| (one.name, one.source.kind(), one.is_trusted)).collect()
    }

    #[test]
    fn a_projects_templates_count_once_it_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let (project, user) = (dir.path().join("p"), dir.path().join("u"));
        let folders = folders(Some(&project), Some(&user));
        write(&project.join(PROJECT_FOLDER), "x-own.md", "ours");
        write(&project.join(PROJECT_FOLDER), "x.md", "ours");
        write(&project.join(PROJECT_FOLDER), "explain.md", "ours");
        write(&user, "x.md", "mine");
        assert_eq!(
            rows(&folders),
            [
                ("x".to_owned(), "user", true),
                ("x".to_owned(), "project", false),
                ("x-own".to_owned(), "project", false)
            ]
        );
        assert_eq!(folders.find("x").unwrap().body, "mine");
        assert_eq!(folders.find("explain").unwrap().source.kind(), "built-in");
        let error = folders.find("x-own").unwrap_err();
        assert!(matches!(error, FindError::Untrusted { .. }), "{error}");
        assert!(error.to_string().contains("contexture trust DIR"), "{error}");
        let error = folders.find("none").unwrap_err().to_string();
        assert!(!error.contains("x-own"), "{error}");
        folders.trust.trust(&project, 1).unwrap();
        assert_eq!(
            rows(&folders),
            [("x".to_owned(), "project", true), ("x-own".to_owned(), "project", true)]
        );
        assert_eq!(folders.find("x").unwrap().body, "ours");
        folders.trust.revoke(&project).unwrap();
        assert_eq!(folders.find("x").unwrap().body, "mine");
    }

    #[test]
    fn only_regular_files_within_the_project_are_its_templates() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("p");
        let own = project.join(PROJECT_FOLDER);
        let folders = folders(Some(&project), None);
        write(dir.path(), "secret.md", "a secret");
        write(&own, "x.md", "ours");
        write(&own, "x-huge.md", &"x".repeat(MAX_TEMPLATE_BYTES + 1));
        symlink(dir.path().join("secret.md"), own.join("x-link.md")).unwrap();
        symlink("x.md", own.join("x-inside.md")).unwrap();
        symlink("/dev/zero", own.join("x-device.md")).unwrap();
        let fifo = own.join("x-fifo.md");
        crate::system::make_fifo(&fifo);
        folders.trust.trust(&project, 1).unwrap();
        assert_eq!(folders.find("x-inside").unwrap().body, "ours");
        for name in ["x-link", "x-device", "x-fifo"] {
            assert!(matches!(folders.find(name), Err(FindError::Unreadable { .. })), "{name}");
        }
        assert!(matches!(folders.find("x-huge"), Err(FindError::TooLarge { .. })));
        std::fs::rename(&own, dir.path().join("templates")).unwrap();
        symlink(dir.path().join("templates"), &own).unwrap();
        assert!(rows(&folders).is_empty());
        assert!(matches!(folders.find("x"), Err(FindError::Unreadable { .. })));
    }

    #[test]
    fn the_project_comes_before_the_user_and_that_before_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let (project, user) = (dir.path().join("p"), dir.path().join("u"));
        std::fs::create_dir(&project).unwrap();
        let folders = folders(Some(&project), Some(&user));
        folders.trust.trust(&project, 1).unwrap();
        let source = |name: &str| folders.find(name).unwrap().source.kind();
        assert_eq!(source("explain"), "built-in");
        write(&user, "explain.md", "mine");
        assert_eq!(source("explain.md"), "user");
        write(&project.join(PROJECT_FOLDER), "explain.md", "ours");
        assert_eq!(source("explain"), "project");
        assert_eq!(folders.find("explain").unwrap().body, "ours");
        write(&user, "notes.md", "{{ broken");
        assert!(
            folders.list().iter().any(|one| one.name == "notes" && one.source.kind() == "user")
        );
        let error = folders.find("notes").unwrap_err().to_string();
        assert!(error.starts_with("template notes: line 1, "), "{error}");
    }

    #[test]
    fn a_changed_file_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let folders = folders(None, Some(dir.path()));
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
        assert!(
            error.starts_with("no template \"goal\"; the templates are code-review, "),
            "{error}"
        );
        let error = TemplateFolders::default().find("../x").unwrap_err().to_string();
        assert!(error.starts_with("the name of a template must have 1 to 128 "), "{error}");
    }

    #[test]
    fn what_is_no_readable_file_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let folders = folders(None, Some(dir.path()));
        std::fs::create_dir(dir.path().join("a.md")).unwrap();
        assert!(matches!(folders.find("a"), Err(FindError::Unreadable { .. })));
        write(dir.path(), "b.md", &"x".repeat(MAX_TEMPLATE_BYTES + 1));
        assert!(matches!(folders.find("b"), Err(FindError::TooLarge { .. })));
    }
}
