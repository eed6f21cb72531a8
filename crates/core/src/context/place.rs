//! Names of managers that stand for a place: a project, a folder, a file or a buffer. This module
//! makes and reads all of them.
//!
//! A name says where a place is and, for a place in a project, the remote that the project comes
//! from, so that two projects never share a context by chance. Names are for programs; users see
//! the [`label`].

use super::manager::MAX_CAPACITY;

/// Name of the manager whose items apply everywhere.
pub const SHARED: &str = "*shared*";
/// Beginning of the name of a session's own manager.
const SESSION: &str = "*session ";
/// Text between a place and the remote of its project. No absolute path in normal form has it.
const REMOTE: &str = "//";
/// Text between the name of a buffer and its number.
const NUMBER: &str = "#";
/// Schemes with their usual ports, which are left out of a remote's normal form.
const USUAL_PORTS: [(&str, &str); 4] =
    [("ssh", "22"), ("https", "443"), ("http", "80"), ("git", "9418")];

/// Kind of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// The folder of a project, or a folder outside of any project, which counts as one. So whoever
    /// names the same folder has the same items, whatever a project is for that program.
    Project,
    /// A file.
    File,
    /// A buffer without a file.
    Buffer,
}

/// A place that a manager belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// Kind of the place.
    pub kind: PlaceKind,
    /// Absolute name of a file or folder, without a final slash; name and number of a buffer.
    pub name: &'a str,
    /// Remote of the project, in [normal form](normal_remote).
    pub remote: Option<&'a str>,
}

impl PlaceKind {
    const ALL: [Self; 3] = [Self::Project, Self::File, Self::Buffer];

    /// Returns the prefix of the names of managers that stand for places of this kind.
    fn prefix(self) -> &'static str {
        match self {
            Self::Project => "project:",
            Self::File => "file:",
            Self::Buffer => "buffer:",
        }
    }
}

impl<'a> Place<'a> {
    /// Creates a place without a remote. `name` may end with slashes.
    pub fn new(kind: PlaceKind, name: &'a str) -> Self {
        let name = if kind == PlaceKind::Buffer { name } else { name.trim_end_matches('/') };
        Self { kind, name, remote: None }
    }

    /// Returns the name of the place's manager.
    pub fn manager(&self) -> String {
        let Self { kind, name, remote } = self;
        let slash = if *kind == PlaceKind::Project && remote.is_none() { "/" } else { "" };
        let (mark, remote) = remote.map_or(("", ""), |remote| (REMOTE, remote));
        format!("{}{name}{slash}{mark}{remote}", kind.prefix())
    }

    /// Reads the name of a manager. Returns `None` if it stands for no place.
    pub fn of(manager: &'a str) -> Option<Self> {
        let found = |kind: PlaceKind| Some((kind, manager.strip_prefix(kind.prefix())?));
        let (kind, rest) = PlaceKind::ALL.into_iter().find_map(found)?;
        match rest.split_once(REMOTE).filter(|_| kind != PlaceKind::Buffer) {
            Some((name, remote)) => Some(Self { remote: Some(remote), ..Self::new(kind, name) }),
            None => Some(Self::new(kind, rest)),
        }
    }

    /// Returns the name that the manager had before the place had a remote.
    pub fn former_manager(&self) -> Option<String> {
        self.remote.map(|_| Self { remote: None, ..*self }.manager())
    }

    /// Returns whether both places are at the same spot, even if their remotes differ. Two buffers
    /// are at the same spot if they differ only in their numbers.
    pub fn is_at(&self, other: &Self) -> bool {
        self.kind == other.kind && self.spot() == other.spot()
    }

    /// Returns the prefix that the names of all managers at this spot share.
    pub fn beginning(&self) -> String {
        let mark = if self.kind == PlaceKind::Buffer { NUMBER } else { "" };
        format!("{}{}{mark}", self.kind.prefix(), self.spot())
    }

    fn spot(&self) -> &'a str {
        match self.kind {
            PlaceKind::Buffer => self.name.rsplit_once(NUMBER).map_or(self.name, |(name, _)| name),
            _ => self.name,
        }
    }

    /// Returns the name to show for the place; a file inside `root` is named relative to `root`.
    fn label(&self, root: Option<&str>) -> String {
        let last = self.name.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/");
        match self.kind {
            PlaceKind::Project => format!("project {last}"),
            PlaceKind::File => {
                let inside = root.and_then(|root| self.name.strip_prefix(root)?.strip_prefix('/'));
                format!("file {}", inside.unwrap_or(self.name))
            }
            PlaceKind::Buffer => format!("buffer {}", self.spot()),
        }
    }
}

/// Returns a buffer's name in the form for a [`Place`]: with a number, which distinguishes buffers
/// with the same name.
pub fn numbered(buffer: &str, number: &str) -> String {
    format!("{buffer}{NUMBER}{number}")
}

/// Returns the label of a manager, as users see it: `everywhere` for [`SHARED`], and its name for
/// any other manager that stands for no place. A file inside `root`, a project's folder, is named
/// relative to `root`.
pub fn label(manager: &str, root: Option<&str>) -> String {
    match Place::of(manager) {
        _ if manager == SHARED => "everywhere".to_owned(),
        Some(place) => place.label(root.map(|root| root.trim_end_matches('/'))),
        None => manager.to_owned(),
    }
}

/// Returns the name of the manager of the session with this number.
pub fn session_manager(session: u64) -> String {
    format!("{SESSION}{session}*")
}

/// Returns the capacity of a manager that nobody configured. Managers of places and sessions get
/// the largest capacity, so that a new item hardly ever evicts an earlier one. All other managers
/// get `others`.
pub fn capacity(manager: &str, others: usize) -> usize {
    let has_room = Place::of(manager).is_some() || manager.starts_with(SESSION);
    if has_room { others.max(MAX_CAPACITY) } else { others }
}

/// Returns the normal form of a remote's address, which is the same for all ways to write the
/// address: without scheme, user, password, usual port and `.git`, and with the host in lower case.
/// Returns `None` if nothing is left.
pub fn normal_remote(address: &str) -> Option<String> {
    let address: String = address.split_whitespace().collect::<Vec<_>>().join("%20");
    let (host, path) = match address.split_once("://") {
        Some((scheme, rest)) => {
            let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
            (without_port(&scheme.to_lowercase(), host_of(place)), path)
        }
        None => match address.split_once(':').filter(|(place, _)| !place.contains('/')) {
            Some((place, path)) => (host_of(place), path),
            None => (String::new(), &*address),
        },
    };
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let path = parts.join("/");
    let path = path.strip_suffix(".git").unwrap_or(&path).trim_end_matches('/');
    let normal = format!("{host}/{path}");
    Some(normal.trim_end_matches('/').to_owned()).filter(|normal| !normal.is_empty())
}

fn host_of(place: &str) -> String {
    place.rsplit('@').next().unwrap_or(place).to_lowercase()
}

fn without_port(scheme: &str, place: String) -> String {
    let scheme = scheme.rsplit('+').next().unwrap_or(scheme);
    let usual = USUAL_PORTS.iter().find(|(name, _)| *name == scheme).map(|(_, port)| *port);
    let host = usual.and_then(|port| place.strip_suffix(port)?.strip_suffix(':'));
    host.map_or(place.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(place: Place<'_>, manager: &str, shown: &str) {
        assert_eq!(place.manager(), manager);
        assert_eq!(Place::of(manager), Some(place));
        assert_eq!(label(manager, None), shown);
    }

    #[test]
    fn a_place_is_read_from_its_name() {
        let with = |kind, name, remote| Place { remote, ..Place::new(kind, name) };
        let remote = Some("github.com/o/app");
        check(
            with(PlaceKind::Project, "/u/my app/", remote),
            "project:/u/my app//github.com/o/app",
            "project my app",
        );
        check(with(PlaceKind::Project, "/u/app", None), "project:/u/app/", "project app");
        check(with(PlaceKind::Project, "/", None), "project:/", "project /");
        check(with(PlaceKind::Project, "/", remote), "project://github.com/o/app", "project /");
        check(with(PlaceKind::Project, "/u/ x", None), "project:/u/ x/", "project  x");
        check(with(PlaceKind::File, "/u/a#b.rs", None), "file:/u/a#b.rs", "file /u/a#b.rs");
        check(
            with(PlaceKind::File, "/u/a b", Some("/srv/x")),
            "file:/u/a b///srv/x",
            "file /u/a b",
        );
        let buffer = numbered("*a#//b*", "7.1");
        check(with(PlaceKind::Buffer, &buffer, None), "buffer:*a#//b*#7.1", "buffer *a#//b*");
    }

    #[test]
    fn a_place_knows_its_earlier_names_and_its_neighbours() {
        let remote = Some("h/o");
        let project = Place { remote, ..Place::new(PlaceKind::Project, "/p") };
        assert_eq!(project.former_manager().as_deref(), Some("project:/p/"));
        assert_eq!(Place::new(PlaceKind::File, "/p/x").former_manager(), None);
        assert!(project.is_at(&Place::new(PlaceKind::Project, "/p/")));
        assert!(!project.is_at(&Place::new(PlaceKind::Project, "/pq")));
        assert!(!project.is_at(&Place::new(PlaceKind::File, "/p")));
        let [one, two] = [numbered("*a*", "1"), numbered("*a*", "2")];
        let [one, two] = [&one, &two].map(|name| Place::new(PlaceKind::Buffer, name));
        assert!(one.is_at(&two) && one.beginning() == "buffer:*a*#");
        assert_eq!(project.beginning(), "project:/p");
    }

    #[test]
    fn labels_are_for_people() {
        assert_eq!(label("file:/u/app/src/x.rs//h/o/app", Some("/u/app/")), "file src/x.rs");
        assert_eq!(label("file:/u/apple/x.rs", Some("/u/app/")), "file /u/apple/x.rs");
        assert_eq!(label(SHARED, None), "everywhere");
        assert_eq!(label("NEWS", None), "NEWS");
    }

    #[test]
    fn places_have_room() {
        assert_eq!(capacity("project:/u/app/", 50), 1000);
        assert_eq!(capacity(&session_manager(3), 50), 1000);
        assert_eq!([capacity(SHARED, 50), capacity("NEWS", 7)], [50, 7]);
    }

    #[test]
    fn one_remote_has_one_name() {
        for address in [
            "git@GitHub.com:o/app.git",
            "github.com:o/app",
            "git@github.com:/o/app.git/",
            "https://github.com/o/app.git",
            "https://me:secret@github.com:443/o/app",
            "ssh://git@github.com:22/o//app.git",
            "git+ssh://git@github.com/o/app",
            "git://github.com:9418/o/app.git",
            " https://github.com/o/app/\n",
        ] {
            assert_eq!(normal_remote(address).as_deref(), Some("github.com/o/app"), "{address}");
        }
    }

    #[test]
    fn other_remotes_have_others() {
        for (address, expected) in [
            ("ssh://h:2222/O/App.git", "h:2222/O/App"),
            ("https://h:22/o/app", "h:22/o/app"),
            ("ssh://[::1]:22/~u/x", "[::1]/~u/x"),
            ("/srv/git/x.git", "/srv/git/x"),
            ("file:///srv/git/x.git", "/srv/git/x"),
            ("/srv/a b", "/srv/a%20b"),
            ("https://h", "h"),
        ] {
            assert_eq!(normal_remote(address).as_deref(), Some(expected), "{address}");
        }
        for nothing in ["", " ", "/", "https://"] {
            assert_eq!(normal_remote(nothing), None, "{nothing:?}");
        }
    }
}
