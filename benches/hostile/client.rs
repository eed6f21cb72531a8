//! A client over the Unix socket, which can also be impolite.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;

/// How long any answer may take; then the client leaves.
const PATIENCE: Duration = Duration::from_secs(100);

/// One connection.
pub(crate) struct Client {
    input: UnixStream,
    output: BufReader<UnixStream>,
    /// Port of the same server.
    pub(crate) port: u16,
}

impl Client {
    pub(crate) fn connect(socket: &Path, port: u16) -> anyhow::Result<Self> {
        let input = UnixStream::connect(socket)?;
        input.set_read_timeout(Some(PATIENCE))?;
        let output = BufReader::new(input.try_clone()?);
        Ok(Self { input, output, port })
    }

    /// Calls a method and gives its answer, which must not be an error.
    pub(crate) fn call(&mut self, method: &str, params: &str) -> anyhow::Result<String> {
        let answer = self.ask(method, params)?;
        ensure!(answer.starts_with("(:id 0 :result"), "{}", brief(&answer));
        Ok(answer)
    }

    /// Calls a method and gives its answer, whatever that is.
    pub(crate) fn ask(&mut self, method: &str, params: &str) -> anyhow::Result<String> {
        self.send(method, params)?;
        self.answer()
    }

    pub(crate) fn send(&mut self, method: &str, params: &str) -> anyhow::Result<()> {
        let line = format!("(:id 0 :method {method} :params {params})\n");
        Ok(self.input.write_all(line.as_bytes())?)
    }

    /// Sends bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(self.input.write_all(bytes)?)
    }

    /// The next answer; progress is passed over.
    pub(crate) fn answer(&mut self) -> anyhow::Result<String> {
        loop {
            let mut line = Vec::new();
            let count = self.output.read_until(b'\n', &mut line);
            let count = count.map_err(|_| anyhow::anyhow!("no answer in {PATIENCE:?}"))?;
            ensure!(count > 0, "the server closed the connection");
            if line.starts_with(b"(:id") {
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
        }
    }
}

/// How a call ended.
pub(crate) enum Ended {
    /// With an answer, or because the client left.
    Well(String),
    /// With a refusal, which says why.
    Refused(String),
}

/// How an answer ends its call.
pub(crate) fn ended(answer: &str) -> Ended {
    match answer.starts_with("(:id 0 :result") {
        true => Ended::Well("an answer".to_owned()),
        false => Ended::Refused(brief(answer)),
    }
}

/// The beginning of what an error says.
fn brief(answer: &str) -> String {
    let message = answer.split_once(":message \"").map_or(answer, |(_, message)| message);
    message.chars().take_while(|c| *c != '"').take(90).collect()
}
