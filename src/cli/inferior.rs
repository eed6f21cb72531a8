//! Support for `M-x sly` and `M-x slime`: Emacs names a file on standard input, the server writes
//! its port into the file, and Emacs connects to the port. The server ends when this Emacs ends.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tokio::net::TcpListener;

use crate::server::listen::bind_tcp;
use crate::value::Value;
use crate::value::sexp;
use crate::visible::visible_path;

/// Maximum number of bytes of standard input to search for the file name.
const LONGEST_SAYING: usize = 64 << 10;

/// Opens the listener that Emacs connects to.
pub(super) async fn listener() -> anyhow::Result<TcpListener> {
    bind_tcp("127.0.0.1:0").await.context("cannot listen on 127.0.0.1")
}

/// Writes the port to the file that Emacs names, and returns when standard input ends.
pub(super) async fn attend(port: u16) -> anyhow::Result<()> {
    let (done, ended) = tokio::sync::oneshot::channel();
    // Reading blocks for as long as Emacs lives.
    std::thread::spawn(move || {
        let outcome = listen(&mut std::io::stdin().lock(), port);
        // The receiver may be gone.
        let _ = done.send(outcome);
    });
    ended.await?
}

fn listen(input: &mut impl BufRead, port: u16) -> anyhow::Result<()> {
    let mut said = String::new();
    let mut told = false;
    loop {
        let mut line = Vec::new();
        // Reading from a closed terminal fails; this counts as the end too.
        if input.read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            return Ok(());
        }
        if told || said.len() > LONGEST_SAYING {
            continue;
        }
        said.push_str(&String::from_utf8_lossy(&line));
        if let Some(path) = port_file(&said) {
            write_port(&path, port)?;
            told = true;
        }
    }
}

/// Finds the file name in the text that Emacs sent. The text is either the name itself or the Lisp
/// form that SLY and SLIME send by default to start a server; in the form, the name is the last
/// absolute path. Returns `None` if the text is neither, or is not complete yet.
fn port_file(said: &str) -> Option<PathBuf> {
    let said = said.trim();
    if said.starts_with('/') && !said.contains('\n') {
        return Some(PathBuf::from(said));
    }
    last_path(&sexp::read(said).ok()?).map(PathBuf::from)
}

/// Returns the last string in the form that is an absolute path, if there is one.
fn last_path(form: &Value) -> Option<&str> {
    match form {
        Value::Str(text) if text.starts_with('/') => Some(text),
        Value::List(items) => items.iter().rev().find_map(last_path),
        _ => None,
    }
}

/// Writes the file atomically, since Emacs reads it as soon as it exists.
fn write_port(path: &Path, port: u16) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let draft = folder.join(format!(".contexture-port-{}", std::process::id()));
    let failed = || format!("cannot write the port into {}", visible_path(path));
    let mut file = std::fs::File::create(&draft).with_context(failed)?;
    file.write_all(format!("{port}\n").as_bytes()).with_context(failed)?;
    std::fs::rename(&draft, path).with_context(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_by_a_line_or_by_the_form_that_starts_a_server() {
        let check = |said: &str, expected: Option<&str>| {
            assert_eq!(port_file(said), expected.map(PathBuf::from), "{said}");
        };
        check("/tmp/sly.123\n", Some("/tmp/sly.123"));
        let form = "(progn (load \"/s/slynk-loader.lisp\" :verbose t)\n  (funcall \
                    (read-from-string \"slynk:start-server\")\n \"/tmp/sly.123\"))\n\n";
        check(form, Some("/tmp/sly.123"));
        check(&form[..60], None);
        check("\n", None);
        check("(quit)\n", None);
    }

    #[test]
    fn the_port_is_written_once_and_the_end_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("port");
        let said = format!("\n{}\n/none/other\n", path.display());
        listen(&mut said.as_bytes(), 4711).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "4711\n");
        assert!(listen(&mut "/none/other\n".as_bytes(), 1).is_err());
    }
}
