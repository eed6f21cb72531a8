//! Tells by its name whether a file usually holds passwords, keys or tokens, and by its text whether
//! it has some. An agent or a model gets such a file only if the user marks it, or is asked. Must not
//! know who asks.

use std::path::Path;

use crate::system::note_disk;

/// Globs for names of files, in lower case, each with a star at its beginning or end at most. Emacs has
/// the same globs, endings and folders, for its own tools.
const NAMES: &[&str] = &[
    "*.age",
    "*.asc",
    "*.env",
    "*.gpg",
    "*.jks",
    "*.kdb",
    "*.kdbx",
    "*.key",
    "*.keystore",
    "*.kubeconfig",
    "*.ovpn",
    "*.p12",
    "*.p8",
    "*.pem",
    "*.pfx",
    "*.pgp",
    "*.pkcs12",
    "*.ppk",
    "*.tfvars",
    "*.tfvars.json",
    "*_dsa",
    "*_ecdsa",
    "*_ed25519",
    "*_key",
    "*_rsa",
    ".boto",
    ".dev.vars*",
    ".dockercfg",
    ".env*",
    ".flaskenv",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".mylogin.cnf",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".sentryclirc",
    ".terraformrc",
    ".vault-token",
    ".vault_pass*",
    ".yarnrc.yml",
    "_netrc",
    "application_default_credentials.json",
    "auth.json",
    "authinfo",
    "credentials",
    "credentials.*",
    "kubeconfig",
    "kubeconfig.yaml",
    "kubeconfig.yml",
    "local.settings.json",
    "netrc",
    "rclone.conf",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "service-account*",
    "terraform.tfstate",
    "terraform.tfstate.*",
    "wp-config.php",
];
/// Ends of the names of examples, which hold no secrets.
const EXAMPLES: &[&str] = &[".dist", ".example", ".sample", ".template"];
/// Ends that editors and people add to the names of copies, which hold what the file holds.
const COPIES: &[&str] = &["~", "#", ".bak", ".old", ".orig", ".save", ".swp"];
/// Folders whose files hold secrets, like [`NAMES`]. `.git/config` may have a token in an address, and
/// so may the file `config` of a repository without a work tree, whose folder is called `NAME.git`.
const FOLDERS: &[&str] =
    &["*.git", ".aws", ".azure", ".docker", ".gnupg", ".kube", ".password-store", ".ssh"];

/// Returns whether a file of this name usually holds secrets. `path` must have no links.
pub fn holds_secrets(path: &Path) -> bool {
    let lower = |name: &std::ffi::OsStr| name.to_string_lossy().to_lowercase();
    let Some(name) = path.file_name().map(lower) else { return false };
    let name = original(&name);
    // Some editors put a dot before the names of copies.
    let bare = name.strip_prefix('.').unwrap_or(name);
    let is_named = !EXAMPLES.iter().any(|ending| name.ends_with(ending))
        && NAMES.iter().any(|glob| fits(glob, name) || fits(glob, bare));
    let in_folder = || {
        let folders = path.ancestors().skip(1).filter_map(Path::file_name).map(lower);
        folders.into_iter().any(|folder| FOLDERS.iter().any(|glob| fits(glob, &folder)))
    };
    is_named || in_folder()
}

/// Returns the name of the file of which `name` is a copy, such as `.env` for `#.env#` and `.env.~3~`.
fn original(name: &str) -> &str {
    let mut name = name.strip_prefix('#').unwrap_or(name);
    while let Some(shorter) = COPIES.iter().find_map(|ending| name.strip_suffix(ending)) {
        let numbered = shorter.trim_end_matches(|c: char| c.is_ascii_digit());
        name = numbered.strip_suffix(".~").unwrap_or(shorter);
    }
    name
}

fn fits(glob: &str, name: &str) -> bool {
    match (glob.strip_prefix('*'), glob.strip_suffix('*')) {
        (Some(ending), _) => name.ends_with(ending),
        (_, Some(beginning)) => name.starts_with(beginning),
        _ => name == glob,
    }
}

/// Beginning and end of the line above a private key.
const PRIVATE_KEY: (&str, &str) = ("-----BEGIN ", "PRIVATE KEY");
/// Beginnings of tokens, each with the minimum number of letters, digits, `-` and `_` after it. Those
/// with `LS0t` are private keys in Base64, as in a configuration of Kubernetes, and `eyJhbGciOi` is a
/// JSON Web Token.
const TOKENS: &[(&str, usize)] = &[
    ("AKIA", 16),
    ("AIza", 35),
    ("LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRV", 20),
    ("LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtF", 20),
    ("LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRV", 20),
    ("LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0", 20),
    ("LS0tLS1CRUdJTiBQUklWQVRFIEtF", 20),
    ("LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRV", 20),
    ("eyJhbGciOi", 20),
    ("ghp_", 36),
    ("gho_", 36),
    ("ghs_", 36),
    ("github_pat_", 22),
    ("glpat-", 20),
    ("npm_", 36),
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk_live_", 16),
    ("xoxb-", 20),
    ("xoxp-", 20),
];

/// Returns whether a text with this name, if it has one, looks like a secret. The name need not be
/// free of links.
pub fn is_secret(path: Option<&Path>, text: &str) -> bool {
    let named = |path: &Path| {
        note_disk();
        holds_secrets(path) || path.canonicalize().is_ok_and(|path| holds_secrets(&path))
    };
    path.is_some_and(named) || has_secret(text)
}

/// Returns whether a text has a private key, or a token in a form that nothing else has.
fn has_secret(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_key = |at: usize| {
        let line = text[at..].lines().next().unwrap_or_default();
        (at == 0 || bytes[at - 1] == b'\n') && line.contains(PRIVATE_KEY.1)
    };
    let is_token = |at: usize, (beginning, least): (&str, usize)| {
        let of_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let begins = at == 0 || !of_token(&bytes[at - 1]);
        let rest = &bytes[at + beginning.len()..];
        begins && rest.iter().take_while(|byte| of_token(byte)).count() >= least
    };
    memchr::memmem::find_iter(bytes, PRIVATE_KEY.0).any(is_key)
        || TOKENS
            .iter()
            .any(|token| memchr::memmem::find_iter(bytes, token.0).any(|at| is_token(at, *token)))
}

#[cfg(test)]
mod tests {
    use base64::Engine;

    use super::*;

    /// Names of files, each after `secret` or `open`. The tests of Emacs read them, too.
    const TOLD: &str = include_str!("../../../../tests/outside/secret-names.txt");
    const EMACS: &str = include_str!("../../../../elisp/contexture.el");

    #[test]
    fn names_tell_secrets() {
        let mut counts = [0, 0];
        for line in TOLD.lines() {
            let (kind, name) = line.split_once(' ').unwrap();
            let is_secret = kind == "secret";
            counts[usize::from(is_secret)] += 1;
            assert_eq!(holds_secrets(&Path::new("/p").join(name)), is_secret, "{name}");
        }
        assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
    }

    #[test]
    fn emacs_knows_the_same_names() {
        for (list, ours) in [
            ("secret-names", NAMES),
            ("secret-examples", EXAMPLES),
            ("secret-copies", COPIES),
            ("secret-folders", FOLDERS),
        ] {
            let head = format!("(defconst contexture--{list}\n  '(");
            let (_, rest) = EMACS.split_once(&head).expect(list);
            let (theirs, _) = rest.split_once(')').unwrap();
            let theirs: Vec<_> = theirs.split('"').skip(1).step_by(2).collect();
            assert_eq!(theirs, ours, "{list}");
        }
    }

    #[test]
    fn texts_tell_secrets() {
        // Put together here, so that this file does not look like a secret itself.
        let token = ["ghp", "_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
        let key = ["-----BEGIN OPENSSH ", "PRIVATE KEY-----\nx\n"].concat();
        for text in [&format!("TOKEN={token}\n"), &token, &key, &format!("# mine\n{key}")] {
            assert!(is_secret(None, text), "{text}");
        }
        for text in [&token[..20], &format!("x{token}"), &format!("a {key}"), "ghp_", "sk-ant-"] {
            assert!(!is_secret(None, text), "{text}");
        }
        for name in ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "] {
            let pem = format!("-----BEGIN {name}PRIVATE KEY-----\n{}", "MIIE".repeat(8));
            let coded = base64::engine::general_purpose::STANDARD.encode(pem);
            assert!(is_secret(None, &format!("    client-key-data: {coded}\n")), "{coded}");
        }
        let certificate = base64::engine::general_purpose::STANDARD
            .encode(format!("-----BEGIN CERTIFICATE-----\n{}", "MIIE".repeat(8)));
        assert!(!is_secret(None, &format!("certificate-authority-data: {certificate}\n")));
        assert!(is_secret(Some(Path::new("/p/notes.txt.gpg")), "decrypted"));
    }
}
