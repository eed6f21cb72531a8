//! What the tests share: a home of its own for each, the program run in it, and clients.
//!
//! Nothing here sleeps for a fixed time: whoever waits, waits for an event with a deadline.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use contexture_program::internals::cli::serve_within;
use contexture_program::internals::value::Value;
use contexture_program::internals::value::json::{from_json, to_json};
use contexture_program::internals::value::sexp;
pub(crate) use contexture_program::internals::wire::dialect::Dialect;

pub(crate) type Json = serde_json::Value;

/// How long anything may take before a test fails; far more than it does take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Somebody else than root, for servers that root cannot run: PostgreSQL, and sshd without folders of
/// the system's own.
pub(crate) struct Account {
    /// Name, unless nobody can log in there.
    pub(crate) name: Option<String>,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

impl Account {
    /// The first account with a shell, if this is root.
    pub(crate) fn instead_of_root() -> Option<Self> {
        let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let account = |line: &str| {
            let [name, _, user, group, _, _, shell] = line.split(':').collect::<Vec<_>>()[..]
            else {
                return None;
            };
            let (user, group) = (user.parse().ok()?, group.parse().ok()?);
            let can_log_in = user != 0 && shell.ends_with("sh") && Path::new(shell).exists();
            can_log_in.then(|| Self { name: Some(name.to_owned()), user, group })
        };
        let nobody = Self { name: None, user: 65534, group: 65534 };
        is_root.then(|| accounts.lines().find_map(account).unwrap_or(nobody))
    }

    /// Lets the account have a folder with all that is in it.
    pub(crate) fn own(&self, folder: &Path) {
        let to = format!("{}:{}", self.user, self.group);
        assert!(Command::new("chown").args(["-R", &to]).arg(folder).status().unwrap().success());
    }

    /// Lets a command run as the account, if there is one.
    pub(crate) fn run<'a>(account: Option<&Self>, command: &'a mut Command) -> &'a mut Command {
        if let Some(account) = account {
            command.uid(account.user).gid(account.group);
        }
        command
    }
}

/// Folders that a test has to itself, in place of the user's.
pub(crate) struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("ctx").tempdir().unwrap();
        for folder in ["run", "files", "home"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A place in the folder for files that are to be added.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path("files").join(name)
    }

    /// Writes a file that is to be added, with the folders above it, and gives its name.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state/contexture")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.state().join("contexture.db")
    }

    /// Removes the marks beside the database, so that what a test wrote into it is not taken for
    /// damage.
    pub(crate) fn forget_what_is_beside(&self) {
        for name in ["contexture.mark-1", "contexture.mark-2"] {
            let _ = std::fs::remove_file(self.state().join(name));
        }
    }

    /// Makes a backup, and puts it where the server puts its own.
    pub(crate) fn back_up(&self) {
        let mut client = self.stdio(&["--backups-kept", "0"]);
        let made = client.ok("backup", "nil")["path"].as_str().unwrap().to_owned();
        client.end();
        std::fs::rename(made, self.state().join("backups/latest.db")).unwrap();
    }

    /// Changes a letter of a text in the database.
    pub(crate) fn damage(&self, text: &str) {
        let mut bytes = std::fs::read(self.database()).unwrap();
        let at = bytes.windows(text.len()).position(|part| part == text.as_bytes()).unwrap();
        bytes[at] ^= 1;
        std::fs::write(self.database(), bytes).unwrap();
    }

    /// The program, in this home, with tokens estimated because the exact tables load slowly.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_contexture"));
        command.args(args).env_clear().current_dir(self.path("files"));
        command.env("HOME", self.path("home")).env("CONTEXTURE_TOKENIZER", "estimate");
        for (name, folder) in [
            ("XDG_STATE_HOME", "state"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_RUNTIME_DIR", "run"),
            ("XDG_DATA_HOME", "data"),
        ] {
            command.env(name, self.path(folder));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs the program to its end, which must be a good one, and gives its standard output.
    #[track_caller]
    pub(crate) fn succeed(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the program to its end, which must be a bad one, and gives its standard error.
    #[track_caller]
    pub(crate) fn fail(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{args:?} succeeded: {said}");
        said
    }

    /// A server over stdio, spoken to in the native dialect.
    pub(crate) fn stdio(&self, args: &[&str]) -> Client {
        let mut all = vec!["serve", "--stdio"];
        all.extend(args);
        Client::over_stdio(self.command(&all), Dialect::Native)
    }

    /// A program that serves over stdio and keeps nothing.
    pub(crate) fn ephemeral_program(&self, args: &[&str]) -> Client {
        let mut all = vec!["--ephemeral"];
        all.extend(args);
        self.stdio(&all)
    }

    /// A server that keeps nothing, in this process.
    pub(crate) fn ephemeral(&self, args: &[&str]) -> Client {
        let (near, far) = UnixStream::pair().unwrap();
        let home = self.path("");
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let serving = std::thread::spawn(move || {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let variables = [("CONTEXTURE_TOKENIZER", "estimate")];
            let served = serve_within(&home, &variables, &args, far);
            served.map_err(|error| error.to_string())
        });
        let reader = near.try_clone().unwrap();
        let mut client = Client::new(None, Writer::Unix(near), reader, Dialect::Native);
        client.serving = Some(serving);
        client
    }

    /// A server in the background that listens on a Unix socket and on TCP.
    pub(crate) fn listening(&self, args: &[&str]) -> Listening {
        let socket = self.path("s.sock");
        let mut all = vec!["serve", "--tcp", "127.0.0.1:0", "--unix", socket.to_str().unwrap()];
        all.extend(args);
        let mut process = Process::start(self.command(&all));
        let mut stdout = BufReader::new(process.child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let port = line.trim_end().parse();
        let port = port.unwrap_or_else(|_| panic!("no port: {line:?} {}", process.end_and_log()));
        Listening { process, socket, port, stdout }
    }
}

/// A process that does not outlive the test.
pub(crate) struct Process {
    pub(crate) child: Child,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        Self { child: command.spawn().unwrap() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it ends by itself.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut ended = None;
        until("the process to end", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }

    /// Ends it and gives what it logged.
    pub(crate) fn end_and_log(&mut self) -> String {
        self.kill();
        let mut log = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut log);
        }
        log
    }

    /// The most memory that it ever held, in bytes; 0 where only Linux tells.
    pub(crate) fn peak_memory(&self) -> u64 {
        if !cfg!(target_os = "linux") {
            return 0;
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib << 10
    }
}

pub(crate) fn make_fifo(path: impl AsRef<std::ffi::OsStr>) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A server in the background.
pub(crate) struct Listening {
    pub(crate) process: Process,
    pub(crate) socket: PathBuf,
    pub(crate) port: u16,
    pub(crate) stdout: BufReader<std::process::ChildStdout>,
}

impl Listening {
    pub(crate) fn unix(&self, dialect: Dialect) -> Client {
        Client::over_unix(&self.socket, dialect)
    }

    pub(crate) fn tcp(&self, dialect: Dialect) -> Client {
        Client::over_tcp(("127.0.0.1", self.port), dialect)
    }
}

/// A payload with its length before it.
pub(crate) fn framed(payload: &str) -> String {
    format!("{:06x}{payload}", payload.len())
}

/// Reads one payload; `None` at the end.
pub(crate) fn read_payload(reader: &mut impl Read) -> Option<String> {
    let mut header = [0; 6];
    reader.read_exact(&mut header).ok()?;
    let digits = std::str::from_utf8(&header).expect("a header is hex digits");
    let length = usize::from_str_radix(digits, 16);
    let mut payload = vec![0; length.unwrap_or_else(|_| panic!("no header: {digits:?}"))];
    reader.read_exact(&mut payload).ok()?;
    Some(String::from_utf8(payload).expect("the server writes UTF-8"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Unix,
    Tcp,
}

/// An error reply.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Json,
}

impl Failure {
    /// The `:kind` of an error of the application's own. A plist of keywords alone reads as a list
    /// of names, so both forms are understood.
    pub(crate) fn kind(&self) -> &str {
        self.detail("kind")
    }

    /// The `:param` of an error about parameters.
    pub(crate) fn param(&self) -> &str {
        self.detail("param")
    }

    fn detail(&self, name: &str) -> &str {
        match &self.data {
            Json::Array(flat) => {
                let at = flat.iter().step_by(2).position(|key| key == name);
                at.and_then(|at| flat[2 * at + 1].as_str()).unwrap_or_default()
            }
            data => data[name].as_str().unwrap_or_default(),
        }
    }
}

/// One end of a conversation. A thread reads what comes, so the server never waits for the test.
pub(crate) struct Client {
    pub(crate) process: Option<Process>,
    /// The server, if it runs in this process.
    serving: Option<JoinHandle<Result<(), String>>>,
    pub(crate) dialect: Dialect,
    writer: Option<Writer>,
    lines: Receiver<String>,
    set_aside: Vec<Json>,
    last_id: i64,
}

enum Writer {
    Stdin(ChildStdin),
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Writer {
    fn as_write(&mut self) -> &mut dyn Write {
        match self {
            Self::Stdin(stdin) => stdin,
            Self::Unix(stream) => stream,
            Self::Tcp(stream) => stream,
        }
    }
}

impl Client {
    pub(crate) fn over_stdio(mut command: Command, dialect: Dialect) -> Self {
        command.stdin(Stdio::piped());
        let mut process = Process::start(command);
        let writer = Writer::Stdin(process.child.stdin.take().unwrap());
        let reader = process.child.stdout.take().unwrap();
        Self::new(Some(process), writer, reader, dialect)
    }

    pub(crate) fn over_unix(path: &Path, dialect: Dialect) -> Self {
        let mut stream = None;
        until("the socket to answer", || {
            stream = UnixStream::connect(path).ok();
            stream.is_some()
        });
        let stream = stream.unwrap();
        Self::new(None, Writer::Unix(stream.try_clone().unwrap()), stream, dialect)
    }

    pub(crate) fn over_tcp(address: impl ToSocketAddrs, dialect: Dialect) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::new(None, Writer::Tcp(stream.try_clone().unwrap()), stream, dialect)
    }

    fn new(
        process: Option<Process>,
        writer: Writer,
        reader: impl Read + Send + 'static,
        dialect: Dialect,
    ) -> Self {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            if dialect.is_framed() {
                let mut reader = BufReader::new(reader);
                while let Some(payload) = read_payload(&mut reader) {
                    if sender.send(payload).is_err() {
                        return;
                    }
                }
                return;
            }
            for line in BufReader::new(reader).split(b'\n') {
                let Ok(line) = line else { return };
                let line = String::from_utf8(line).expect("the server writes UTF-8");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let writer = Some(writer);
        let (serving, set_aside) = (None, Vec::new());
        Self { process, serving, dialect, writer, lines, set_aside, last_id: 0 }
    }

    /// Calls a method with a plist and gives its result, which must be one.
    #[track_caller]
    pub(crate) fn ok(&mut self, method: &str, params: &str) -> Json {
        match self.call(method, params) {
            Ok(result) => result,
            Err(error) => panic!("{method} {}: {error:?}", beginning(params)),
        }
    }

    /// Calls a method with a plist and gives its error, which must be one.
    #[track_caller]
    pub(crate) fn fails(&mut self, method: &str, params: &str) -> Failure {
        match self.call(method, params) {
            Ok(result) => panic!(
                "{method} {} succeeded: {}",
                beginning(params),
                beginning(&result.to_string())
            ),
            Err(error) => error,
        }
    }

    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: &str) -> Result<Json, Failure> {
        let id = self.send(method, params);
        self.reply(id)
    }

    /// Adds a text to a manager and gives its id.
    #[track_caller]
    pub(crate) fn add(&mut self, manager: &str, content: &str) -> String {
        let params = format!("(:manager {} :content {})", quoted(manager), quoted(content));
        self.ok("add-context", &params)["id"].as_str().unwrap().to_owned()
    }

    /// The manager of the layer of the project in a folder.
    #[track_caller]
    pub(crate) fn layer(&mut self, folder: &Path) -> String {
        let layers = self.ok("open-layers", &format!("(:directory {folder:?})"));
        layers["layers"][1]["manager"].as_str().unwrap().to_owned()
    }

    /// The contents that a manager holds, oldest first.
    #[track_caller]
    pub(crate) fn contents(&mut self, manager: &str) -> Vec<String> {
        let items = self.ok("get-context", &format!("(:manager {})", quoted(manager)));
        let items = items.as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["content"].as_str().unwrap().to_owned()).collect()
    }

    /// Sends a call and does not wait for its answer.
    pub(crate) fn send(&mut self, method: &str, params: &str) -> i64 {
        self.last_id += 1;
        let line = request(self.dialect, &self.last_id.to_string(), method, params);
        self.write(line.as_bytes());
        self.last_id
    }

    /// Numbers further calls from here, beyond numbers that are in use otherwise.
    pub(crate) fn number_from(&mut self, id: i64) {
        self.last_id = id;
    }

    /// Sends bytes as they are; whether they could be sent.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        let writer = writer.as_write();
        writer.write_all(bytes).and_then(|()| writer.flush()).is_ok()
    }

    #[track_caller]
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        assert!(self.try_write(bytes), "the server does not read any more");
    }

    /// Ends what the server reads; answers may still come.
    pub(crate) fn close(&mut self) {
        match self.writer.take() {
            Some(Writer::Unix(stream)) => drop(stream.shutdown(Shutdown::Write)),
            Some(Writer::Tcp(stream)) => drop(stream.shutdown(Shutdown::Write)),
            Some(Writer::Stdin(_)) | None => {}
        }
    }

    /// The next line, whatever it is; `None` at the end.
    #[track_caller]
    pub(crate) fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came for {PATIENCE:?}"),
        }
    }

    /// The next message.
    #[track_caller]
    pub(crate) fn message(&mut self) -> Json {
        let line = self.line().expect("the server ended the conversation");
        parse(self.dialect, &line)
    }

    /// The answer to a call; what comes before it is set aside.
    #[track_caller]
    pub(crate) fn reply(&mut self, id: i64) -> Result<Json, Failure> {
        let answers = |message: &Json| message["id"] == id && message.get("method").is_none();
        let message = match self.set_aside.iter().position(answers) {
            Some(index) => self.set_aside.remove(index),
            None => loop {
                let message = self.message();
                if answers(&message) {
                    break message;
                }
                self.set_aside.push(message);
            },
        };
        outcome(message)
    }

    /// The parameters of the next notification of this method.
    #[track_caller]
    pub(crate) fn notification(&mut self, method: &str) -> Json {
        self.told(|message| message["method"] == method)["params"].take()
    }

    /// The next notification of any method.
    #[track_caller]
    pub(crate) fn any_notification(&mut self) -> Json {
        self.told(|message| message.get("method").is_some())
    }

    #[track_caller]
    fn told(&mut self, is_it: impl Fn(&Json) -> bool) -> Json {
        if let Some(index) = self.set_aside.iter().position(&is_it) {
            return self.set_aside.remove(index);
        }
        loop {
            let message = self.message();
            if is_it(&message) {
                return message;
            }
            self.set_aside.push(message);
        }
    }

    /// How many notifications of this method came so far beside the answers that were read.
    pub(crate) fn set_aside(&self, method: &str) -> usize {
        self.set_aside.iter().filter(|message| message["method"] == method).count()
    }

    pub(crate) fn process(&mut self) -> &mut Process {
        self.process.as_mut().unwrap()
    }

    /// Ends a server over stdio as its client's end does, and waits.
    #[track_caller]
    pub(crate) fn end(mut self) {
        self.close();
        while self.line().is_some() {}
        if let Some(serving) = self.serving.take() {
            return serving.join().unwrap().unwrap();
        }
        let status = self.process().wait();
        assert!(status.success(), "{status}: {}", self.process().end_and_log());
    }
}

impl Drop for Client {
    /// Ends a server in this process: the thread that reads would keep the stream open.
    fn drop(&mut self) {
        if let (Some(_), Some(Writer::Unix(stream))) = (&self.serving, &self.writer) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// A result or an error of a message.
pub(crate) fn outcome(mut message: Json) -> Result<Json, Failure> {
    match message.get_mut("error") {
        Some(error) => Err(Failure {
            code: error["code"].as_i64().unwrap(),
            message: error["message"].as_str().unwrap().to_owned(),
            data: error["data"].take(),
        }),
        None => Ok(message["result"].take()),
    }
}

/// A call as one line of the dialect; `id` and `params` are s-expressions.
pub(crate) fn request(dialect: Dialect, id: &str, method: &str, params: &str) -> String {
    match dialect {
        Dialect::Native => format!("(:id {id} :method {method} :params {params})\n"),
        Dialect::Json => {
            let params = json_object(&sexp::read(params).unwrap());
            format!("{{\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
        }
        Dialect::Epc => framed(&format!("(call {id} {method} {params})\n")),
        Dialect::Slynk => {
            framed(&format!("(:emacs-rex (contexture:{method} '{params}) nil t {id})\n"))
        }
    }
}

/// A plist as a JSON object, even if it could be taken for a list of names.
fn json_object(plist: &Value) -> String {
    let Value::List(flat) = plist else { return "null".to_owned() };
    let mut members = Vec::new();
    for pair in flat.chunks_exact(2) {
        let Value::Keyword(name) = &pair[0] else { panic!("{plist:?} is no plist") };
        let value = match &**name {
            "metadata" => json_object(&pair[1]),
            _ if pair[1] == Value::Keyword("false".into()) => "false".to_owned(),
            // `nil` turns a switch off in Lisp; `null` would leave it out in JSON.
            "pinned" | "live" | "frozen" if pair[1] == Value::Nil => "false".to_owned(),
            _ => json_text(&pair[1]),
        };
        members.push(format!("\"{}\":{value}", name.replace('-', "_")));
    }
    format!("{{{}}}", members.join(","))
}

fn json_text(value: &Value) -> String {
    let mut out = Vec::new();
    to_json(value, &mut out);
    String::from_utf8(out).unwrap()
}

/// A line of the server as JSON.
#[track_caller]
pub(crate) fn parse(dialect: Dialect, line: &str) -> Json {
    let value = match dialect {
        Dialect::Native => sexp::read(line).unwrap_or_else(|error| panic!("{error}: {line}")),
        Dialect::Json => from_json(line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}")),
        Dialect::Epc | Dialect::Slynk => return parse_framed(line),
    };
    read_json(&json_text(&value))
}

/// An answer of EPC or Slynk in the form of the others. Errors have no codes there.
#[track_caller]
fn parse_framed(payload: &str) -> Json {
    let value = sexp::read(payload).unwrap_or_else(|error| panic!("{error}: {payload}"));
    let Value::List(mut parts) = value else { panic!("{payload}") };
    if parts[0] == Value::Keyword("return".into()) {
        let Value::List(outcome) = parts.remove(1) else { panic!("{payload}") };
        let kind = if outcome[0] == Value::Keyword("ok".into()) { "return" } else { "abort" };
        parts = vec![Value::Symbol(kind.into()), parts.remove(1), outcome[1].clone()];
    }
    let json = |value: &Value| read_json(&json_text(value));
    let value = json(&parts[2]);
    match &parts[0] {
        Value::Symbol(head) if &**head == "return" => {
            serde_json::json!({"id": json(&parts[1]), "result": value})
        }
        Value::Symbol(head) if &**head == "call" => {
            serde_json::json!({"method": value, "params": json(&parts[3])[0]})
        }
        _ => serde_json::json!({"id": json(&parts[1]), "error": {"code": 0, "message": value}}),
    }
}

/// A JSON text, however deep.
#[track_caller]
pub(crate) fn read_json(text: &str) -> Json {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut reader).unwrap()
}

/// A string as an s-expression on one line.
pub(crate) fn quoted(text: &str) -> String {
    sexp::print(&Value::Str(text.to_owned()))
}

/// The beginning of a text that may be long.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(1000)]
}

/// Looks until it is so, with a deadline and short naps.
#[track_caller]
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The names in a list of ids.
pub(crate) fn ids(list: &Json) -> Vec<String> {
    let list = list.as_array().cloned().unwrap_or_default();
    list.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// Whether nothing is said: what `nil` is in JSON.
pub(crate) fn is_nil(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// A generator of numbers that are the same in every run (xorshift64*).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
