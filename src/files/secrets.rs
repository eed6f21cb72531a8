//! Tells by its name whether a file usually holds passwords, keys or tokens. An agent or a model gets
//! such a file only if the user marks it, or is asked. Must not know who asks.

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
const ENDINGS: &[&str] =
    &[".asc", ".jks", ".kdb", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx", ".ppk", ".p8"];
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
}
