//! Tells by its name whether a file usually holds passwords, keys or tokens, and by its text whether
//! it has some. An agent or a model gets such a file only if the user marks it, or is asked. Must not
//! know who asks.

use std::path::Path;

/// Whole names of files, in lower case.
const NAMES: &[&str] = &[
    ".authinfo",
    ".authinfo.gpg",
    ".dockercfg",
    ".env",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".vault-token",
    ".yarnrc.yml",
    "_netrc",
    "application_default_credentials.json",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "kubeconfig",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "terraform.tfstate",
    "terraform.tfvars",
];
/// Ends of names, in lower case.
const ENDINGS: &[&str] = &[
    ".age",
    ".asc",
    ".gpg",
    ".jks",
    ".kdb",
    ".kdbx",
    ".key",
    ".keystore",
    ".p12",
    ".p8",
    ".pem",
    ".pfx",
    ".pgp",
    ".ppk",
];
/// Beginnings of names, in lower case, which are followed by the name of a variant.
const BEGINNINGS: &[&str] = &[".env.", "credentials.", "service-account", "terraform.tfstate."];
/// Ends of names that begin so and are nevertheless examples.
const EXAMPLES: &[&str] = &[".dist", ".example", ".sample", ".template"];
/// Folders whose files hold secrets, in lower case. `.git/config` may have a token in an address.
const FOLDERS: &[&str] =
    &[".aws", ".azure", ".docker", ".git", ".gnupg", ".kube", ".password-store", ".ssh"];

/// Returns whether a file of this name usually holds secrets. `path` must have no links.
pub(crate) fn holds_secrets(path: &Path) -> bool {
    let lower = |name: &std::ffi::OsStr| name.to_string_lossy().to_lowercase();
    let Some(name) = path.file_name().map(lower) else { return false };
    let is_named = NAMES.contains(&&*name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || (BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            && !EXAMPLES.iter().any(|ending| name.ends_with(ending)));
    let in_folder = || {
        let folders = path.ancestors().skip(1).filter_map(Path::file_name).map(lower);
        folders.into_iter().any(|folder| FOLDERS.contains(&&*folder))
    };
    is_named || in_folder()
}

/// Beginning and end of the line above a private key.
const PRIVATE_KEY: (&str, &str) = ("-----BEGIN ", "PRIVATE KEY");
/// Beginnings of tokens, each with the minimum number of letters, digits, `-` and `_` after it.
const TOKENS: &[(&str, usize)] = &[
    ("AKIA", 16),
    ("AIza", 35),
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
pub(crate) fn is_secret(path: Option<&Path>, text: &str) -> bool {
    let named = |path: &Path| {
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
    use super::*;

    #[test]
    fn names_tell_secrets() {
        for name in [
            ".env",
            ".ENV",
            ".env.production",
            "a/.git/config",
            "a/.git/modules/b/config",
            ".netrc",
            ".npmrc",
            "deploy.pem",
            "server.key",
            "x/id_ed25519",
            ".aws/credentials",
            ".ssh/config",
            "service-account-prod.json",
        ] {
            assert!(holds_secrets(Path::new("/p").join(name).as_path()), "{name}");
        }
        for name in [
            "env",
            ".env.example",
            "src/main.rs",
            ".gitignore",
            ".github/workflows/a.yml",
            "id_rsa.pub",
            "keys.rs",
            "src/credentials/mod.rs",
            "pem.rs",
        ] {
            assert!(!holds_secrets(Path::new("/p").join(name).as_path()), "{name}");
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
        assert!(is_secret(Some(Path::new("/p/notes.txt.gpg")), "decrypted"));
    }
}
