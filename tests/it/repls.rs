//! REPLs of SLY and agent-q's calls beside other clients: whose session is whose.

use std::io::Write as _;
use std::net::TcpStream;

use crate::endpoint::{Answer, Body, Endpoint};
use crate::support::*;

/// A connection of SLY's with no Emacs behind it.
struct Sly {
    stream: TcpStream,
    calls: u64,
}

impl Sly {
    fn new(server: &Listening) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, calls: 0 }
    }

    fn say(&mut self, message: &str) {
        self.stream.write_all(framed(message).as_bytes()).unwrap();
    }

    /// The first message that begins so.
    #[track_caller]
    fn hear(&mut self, begin: &str) -> String {
        loop {
            let heard = read_payload(&mut self.stream).expect("the connection goes on");
            if heard.starts_with(begin) {
                return heard;
            }
        }
    }

    /// The answer to a form without what is around it.
    #[track_caller]
    fn eval(&mut self, form: &str) -> String {
        self.calls += 1;
        let id = 1000 + self.calls;
        self.say(&format!("(:emacs-rex {form} nil t {id})"));
        let end = format!(") {id})");
        loop {
            let heard = self.hear("(:return (");
            if let Some(answer) = heard.strip_suffix(&end) {
                return answer["(:return (".len()..].to_owned();
            }
        }
    }

    /// Begins a REPL on this channel.
    fn repl(&mut self, channel: u32) {
        self.eval(&format!("(slynk-mrepl:create-mrepl {channel})"));
        self.hear(&format!("(:channel-send {channel} (:prompt "));
    }

    /// Types something into the REPL of this number and channel; its prompt is the session's name.
    #[track_caller]
    fn types(&mut self, [repl, channel]: [u32; 2], text: &str) -> String {
        self.say(&format!("(:emacs-channel-send {repl} (:process {}))", quoted(text)));
        let prompt = self.hear(&format!("(:channel-send {channel} (:prompt "));
        prompt.split('"').nth(3).unwrap().to_owned()
    }
}

impl Sly {
    /// What the first REPL, on channel 7, shows for a command.
    #[track_caller]
    fn shows(&mut self, command: &str) -> String {
        self.say(&format!("(:emacs-channel-send 1 (:process {}))", quoted(command)));
        let mut shown = String::new();
        loop {
            let heard = self.hear("(:channel-send 7 (:");
            if heard.starts_with("(:channel-send 7 (:prompt ") {
                return shown;
            }
            shown += &heard;
        }
    }
}

fn said(client: &mut Client, session: &str) -> Vec<String> {
    let messages = client.ok("get-messages", &format!("(:session {session:?})"));
    let text = |message: &Json| message["content"].as_str().unwrap().to_owned();
    messages.as_array().into_iter().flatten().map(text).collect()
}

#[test]
fn a_repl_moves_nobody_to_its_session() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut client = server.tcp(Dialect::Native);
    client.ok("open-session", "(:name \"mine\")");
    client.ok("subscribe", "(:topics (:session-changed))");
    let (mut sly, mut other) = (Sly::new(&server), Sly::new(&server));
    sly.repl(7);
    other.repl(7);
    let (first, second) = (sly.types([1, 7], "one"), other.types([1, 7], "two"));
    assert_ne!(first, second);
    sly.repl(8);
    let third = sly.types([2, 8], "three");
    assert_eq!(client.ok("list-sessions", "(:current t)")[0]["session"], "mine");
    client.ok("add-message", "(:content \"for mine\")");
    assert_eq!(said(&mut client, "mine"), ["for mine"]);
    for (session, content) in [(&first, "one"), (&second, "two"), (&third, "three")] {
        assert_eq!(said(&mut client, session), [content]);
    }
    // Nor does it move by what others do.
    client.ok("open-session", &format!("(:create nil :name {second:?})"));
    assert_eq!(sly.types([1, 7], "four"), first);
    client.ok("configure-session", &format!("(:session {first:?} :name \"renamed\")"));
    assert_eq!(sly.types([1, 7], "five"), "renamed");
    assert_eq!(said(&mut client, "renamed"), ["one", "four", "five"]);
    client.ok("delete-session", "(:session \"renamed\")");
    let fourth = sly.types([1, 7], "six");
    assert_eq!(said(&mut client, &fourth), ["six"]);
    assert_eq!(client.ok("list-sessions", "(:current t)")[0]["session"], Json::from(second));
}

#[test]
fn an_interrupted_turn_leaves_its_session_free_for_the_next() {
    let home = Home::new();
    let answers =
        "[[answer]]\ntext = \"Nothing more com\"\nhang = true\n[[answer]]\ntext = \"ok\"\n";
    let script = home.write("answers.toml", answers);
    let config = format!(
        "[[providers]]\nname = \"p\"\nkind = \"scripted\"\nmodel = \"m\"\nscript = {script:?}\n"
    );
    std::fs::create_dir_all(home.path("config/contexture")).unwrap();
    std::fs::write(home.path("config/contexture/config.toml"), config).unwrap();
    let server = home.listening(&["--ephemeral"]);
    let mut sly = Sly::new(&server);
    sly.repl(7);
    for _ in 0..10 {
        sly.say("(:emacs-channel-send 1 (:process \"hi\"))");
        sly.hear("(:channel-send 7 (:write-string \"Nothing more com\"");
        sly.say("(:emacs-interrupt 1)");
        sly.say("(:emacs-channel-send 1 (:process \"again\"))");
        sly.hear("(:channel-send 7 (:evaluation-aborted ");
        sly.hear("(:channel-send 7 (:write-string \"ok\"");
        sly.hear("(:channel-send 7 (:prompt ");
    }
}

#[test]
fn what_is_evaluated_cancels_calls_of_its_own_connection_only() {
    let silent = Endpoint::new(|_, _| Answer::streaming(Body::Silent(b"\n".to_vec())));
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let provider =
        format!("(:name \"p\" :kind \"ollama\" :model \"m\" :base-url {:?})", silent.root);
    let mut local = server.unix(Dialect::Native);
    local.ok("configure-provider", &provider);
    local.ok("open-session", "(:name \"s\")");
    let (mut sly, mut other) = (Sly::new(&server), Sly::new(&server));
    sly.say("(:emacs-rex (contexture:chat :content \"hello\") nil t 77)");
    until("the model to be asked", || !silent.asked().is_empty());
    let form = "(slynk:interactive-eval \"(contexture:cancel :id 77)\")";
    assert_eq!(other.eval(form), r#":ok "(:cancelled nil)""#);
    assert_eq!(sly.eval("(contexture:ping)"), ":ok :pong");
    sly.say(&format!("(:emacs-rex {form} nil t 78)"));
    // Either may come first.
    let mut heard = [sly.hear("(:return ("), sly.hear("(:return (")];
    heard.sort_unstable();
    assert!(heard[0].starts_with("(:return (:abort ") && heard[0].ends_with(" 77)"), "{heard:?}");
    assert_eq!(heard[1], r#"(:return (:ok "(:cancelled t)") 78)"#);
}

#[test]
fn the_session_last_changed_stays_the_one_of_who_chose_none() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"mine\")");
    client.end();
    let server = home.listening(&[]);
    let mut sly = Sly::new(&server);
    sly.repl(7);
    sly.types([1, 7], "one");
    let mut client = server.tcp(Dialect::Native);
    assert_eq!(client.ok("list-sessions", "(:current t)")[0]["session"], "mine");
}

#[test]
fn calls_of_agent_q_are_about_the_session_of_their_connection() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut client = server.tcp(Dialect::Native);
    client.ok("open-session", "(:name \"mine\")");
    let (mut sly, mut other) = (Sly::new(&server), Sly::new(&server));
    // Nothing is there, and asking makes nothing.
    assert_eq!(sly.eval("(agent-q:agent-q-get-session-info)"), ":ok nil");
    assert_eq!(sly.eval("(agent-q:agent-q-get-conversation-history)"), ":ok nil");
    assert_eq!(sly.eval("(agent-q:agent-q-clear-context)"), ":ok t");
    assert!(sly.eval("(agent-q:agent-q-get-context-summary)").contains("\"No context\""));
    assert_eq!(client.ok("list-sessions", "nil").as_array().unwrap().len(), 1);
    // What is added first is of the conversation that follows, and the REPL's.
    assert_eq!(sly.eval("(agent-q:agent-q-add-context \"(+ 1 2)\" :type :code)"), ":ok t");
    sly.eval("(agent-q:agent-q-send \"hello\")");
    sly.repl(7);
    let own = sly.types([1, 7], "typed");
    assert_eq!(said(&mut client, &own), ["hello", "typed"]);
    assert!(sly.eval("(agent-q:agent-q-get-context-summary)").contains(":count 1"));
    assert!(sly.eval("(agent-q:agent-q-get-session-info)").contains(&quoted(&own)));
    assert_eq!(other.eval("(agent-q:agent-q-get-session-info)"), ":ok nil");
    // Sessions are switched here and nowhere else.
    let id = sly.eval("(agent-q:agent-q-create-session :name \"q\")");
    assert_eq!(sly.types([1, 7], "in q"), "q");
    assert_eq!(sly.eval(&format!("(agent-q:agent-q-switch-session {})", quoted(&own))), ":ok t");
    assert_eq!(sly.eval("(agent-q:agent-q-switch-session \"none\")"), ":ok nil");
    assert_eq!(sly.types([1, 7], "again"), own);
    let id = id.strip_prefix(":ok ").unwrap();
    assert_eq!(sly.eval(&format!("(agent-q:agent-q-switch-session {id})")), ":ok t");
    assert_eq!(sly.eval("(agent-q:agent-q-rename-session \"q2\")"), ":ok t");
    assert!(sly.eval("(agent-q:agent-q-get-session-info)").contains("\"q2\""));
    assert_eq!(sly.eval(&format!("(agent-q:agent-q-delete-session {id})")), ":ok t");
    assert_eq!(sly.eval("(agent-q:agent-q-get-session-info)"), ":ok nil");
    assert_eq!(said(&mut client, &own), ["hello", "typed", "again"]);
    assert_eq!(client.ok("list-sessions", "(:current t)")[0]["session"], "mine");
    assert!(said(&mut client, "mine").is_empty());
}

#[test]
fn a_repl_shows_the_items_of_the_project_that_its_directory_is_in() {
    let home = Home::new();
    home.write("app/.git/config", "");
    let root = home.file("app").canonicalize().unwrap();
    let project = format!("project:{}/", root.display());
    let server = home.listening(&["--ephemeral"]);
    let mut client = server.tcp(Dialect::Native);
    client.add(&project, "of the project");
    client.add("*shared*", "of all");
    let mut sly = Sly::new(&server);
    sly.eval(&format!("(slynk:set-default-directory {:?})", format!("{}/src/", root.display())));
    sly.repl(7);
    sly.say("(:emacs-channel-send 1 (:process \"/context\"))");
    let shown = sly.hear("(:channel-send 7 (:write-string ");
    assert!(shown.contains("2 items"), "{shown}");
    assert!(shown.contains(&format!("about {}", root.display())), "{shown}");
    let session = client.ok("list-sessions", "nil")[0].clone();
    assert_eq!(session["managers"][1], project.as_str());
    assert_eq!(session["project"], root.to_str().unwrap());
    // So do the conversations of agent-q's package, from before the first one begins.
    let mut other = Sly::new(&server);
    other.eval(&format!("(slynk:set-default-directory {:?})", root.display().to_string()));
    let counted = |other: &mut Sly| other.eval("(agent-q:agent-q-get-context-summary)");
    assert!(counted(&mut other).contains(":count 2"));
    let begun = ["add-context \"x\"", "new-conversation", "create-session :name \"q\""];
    for (call, count) in begun.into_iter().zip([3, 2, 2]) {
        other.eval(&format!("(agent-q:agent-q-{call})"));
        let shown = counted(&mut other);
        assert!(shown.contains(&format!(":count {count}")), "{call}: {shown}");
    }
    for session in client.ok("list-sessions", "nil").as_array().unwrap() {
        assert_eq!(session["project"], root.to_str().unwrap(), "{session}");
    }
}

#[test]
fn commands_about_a_session_open_none() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut client = server.tcp(Dialect::Native);
    let mut sly = Sly::new(&server);
    sly.repl(7);
    for command in ["/stats", "/explain", "/rollback"] {
        assert!(sly.shows(command).contains("no session is open yet"), "{command}");
    }
    assert_eq!(client.ok("list-sessions", "nil"), Json::Null);
    sly.types([1, 7], "one");
    assert!(!sly.shows("/stats").contains("no session is open yet"));
}

#[test]
fn commands_choose_the_session_its_context_its_model_and_its_tools() {
    let home = Home::new();
    home.write("other/.git/config", "");
    home.write("other/a.lisp", "1\n");
    let server = home.listening(&["--ephemeral"]);
    let mut client = server.tcp(Dialect::Native);
    let mut sly = Sly::new(&server);
    sly.eval(&format!("(slynk:set-default-directory {:?})", home.file("").display().to_string()));
    sly.repl(7);
    let first = sly.types([1, 7], "one");
    // Sessions are listed, begun, and gone back to.
    assert_eq!(sly.types([1, 7], "/session mine"), "mine");
    assert_eq!(sly.types([1, 7], "two"), "mine");
    let listed = sly.shows("/session");
    assert!(listed.contains("* mine, 1 message"), "{listed}");
    assert!(listed.contains(&format!("  {first}, 1 message")), "{listed}");
    assert_eq!(sly.types([1, 7], &format!("/session {first}")), first);
    assert_eq!(said(&mut client, "mine"), ["two"]);
    // Another place's items are shown to the model in place of this one's.
    client.add(&format!("project:{}/", home.file("other").canonicalize().unwrap().display()), "x");
    let shown = sly.shows("/context");
    let here = format!("about {}", home.file("").canonicalize().unwrap().display());
    assert!(shown.contains("0 items") && shown.contains(&here), "{shown}");
    assert!(sly.shows("/use other/a.lisp").contains("other"));
    assert!(sly.shows("/context").contains("1 item"));
    assert!(sly.shows("/use").contains("other"));
    assert!(sly.shows("/use nowhere").contains("there is no file or folder nowhere"));
    // What was added here can be undone.
    sly.shows("/add other/a.lisp");
    assert!(sly.shows("/undo").contains("undone"));
    assert!(sly.shows("/context").contains("1 item"));
    assert!(sly.shows("/redo").contains("redone"));
    assert!(sly.shows("/context").contains("2 items"));
    assert!(sly.shows("/template").contains("freeform-chat"));
    assert!(sly.shows("/template freeform-chat").contains("notes are now taken"));
    assert!(sly.shows("/template").contains("* freeform-chat"));
    assert!(sly.shows("/template off").contains("notes are no longer taken"));
    assert!(sly.shows("/model some-model").contains("uses some-model now"));
    assert!(sly.shows("/model").contains("some-model"));
    assert!(sly.shows("/tools").contains("no tools"));
    assert!(sly.shows("/tools on").contains("are now offered the server's tools"));
    let allowed = sly.shows("/tools allow search_session");
    assert!(allowed.contains("may now call search_session without asking"));
    assert!(sly.shows("/tools").contains("search_session, without asking"));
    let asked = sly.shows("/tools ask search_session");
    assert!(asked.contains("must now ask before they call search_session"));
    assert!(!sly.shows("/tools").contains("without asking"));
    assert!(sly.shows("/tools dance").contains("/tools takes"));
}

#[test]
fn retrying_takes_the_place_of_the_last_question() {
    let home = Home::new();
    let server = home.listening(&["--ephemeral"]);
    let mut client = server.tcp(Dialect::Native);
    let mut sly = Sly::new(&server);
    sly.repl(7);
    assert!(sly.shows("/retry").contains("nothing has been asked"));
    let session = sly.types([1, 7], "one");
    sly.types([1, 7], "two");
    sly.types([1, 7], "/retry");
    sly.types([1, 7], "/retry");
    let stats = client.ok("session-report", &format!("(:session {session:?})"));
    assert_eq!(stats["items"], 2, "{stats}");
    // A rollback goes to a checkpoint that the user took.
    sly.shows("/checkpoint mine");
    sly.types([1, 7], "three");
    assert!(sly.shows("/rollback").contains("messages-lost: 1"));
}
