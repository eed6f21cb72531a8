//! A long session through the turn loop, with everything that can happen to one, and a crash in
//! the middle: nothing that was acknowledged is lost, and nothing is there twice.

use crate::support::*;

const TURNS: usize = 300;
/// The turn in whose midst the server is killed.
const KILLED_IN: usize = 157;

/// What the test knows of the session, beside the server.
#[derive(Default)]
struct Known {
    /// Every acknowledged message, by its place in the log: role and content.
    log: Vec<Option<(String, String)>>,
    /// The messages of the conversation.
    conversation: Vec<usize>,
    /// The conversation as it was at each checkpoint, in their order.
    checkpoints: Vec<(String, Vec<usize>)>,
    /// The conversation before the last rollback.
    before_rollback: Option<Vec<usize>>,
    summaries: usize,
    automatic: usize,
    turns: usize,
}

impl Known {
    fn acknowledge(&mut self, id: &str, role: &str, content: &str) {
        let number: usize = id.strip_prefix("msg-").unwrap().parse().unwrap();
        if self.log.len() < number {
            self.log.resize(number, None);
        }
        let place = &mut self.log[number - 1];
        assert!(place.is_none(), "{id} was given twice");
        *place = Some((role.to_owned(), content.to_owned()));
        self.conversation.push(number);
    }

    fn turn(&mut self, client: &mut Client, number: usize) {
        let content = question(number);
        let params = format!("(:content {} :coherence 0.9)", quoted(&content));
        let done = client.ok("process-turn", &params);
        if let Some(checkpoint) = done["checkpoint_created"].as_str() {
            self.checkpoints.push((checkpoint.to_owned(), self.conversation.clone()));
            self.automatic += 1;
        }
        self.acknowledge(done["id"].as_str().unwrap(), "user", &content);
        self.turns += 1;
        self.summaries += usize::from(done["summarization_triggered"] == true);
        let score = done["quality_score"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score), "{done}");
        assert!(done["token_count"].as_u64().is_some(), "{done}");
        let (calls, result, answer) = answers(number);
        let said = client.ok("add-message", &format!("(:messages ({calls} {result} {answer}))"));
        let ids = ids(&said["ids"]);
        assert!(said.get("without_call").is_none(), "{said}");
        self.acknowledge(&ids[0], "assistant", "");
        self.acknowledge(&ids[1], "tool", &output(number));
        self.acknowledge(&ids[2], "assistant", &conclusion(number));
    }

    fn checkpoint(&mut self, client: &mut Client, number: usize) {
        let taken = client.ok("checkpoint", &format!("(:message \"before step {number}\")"));
        let name = taken["checkpoint"].as_str().unwrap().to_owned();
        self.checkpoints.push((name, self.conversation.clone()));
    }

    fn rollback(&mut self, client: &mut Client) {
        let done = client.ok("rollback", "nil");
        let (name, then) = self.checkpoints.last().unwrap();
        assert_eq!(done["commit_restored"], name.as_str());
        let lost = self.conversation.len() - then.len();
        assert_eq!(done["messages_lost"], lost);
        self.before_rollback = Some(std::mem::replace(&mut self.conversation, then.clone()));
        self.check_conversation(client);
    }

    fn undo_rollback(&mut self, client: &mut Client) {
        client.ok("undo-rollback", "nil");
        self.conversation = self.before_rollback.take().unwrap();
        self.check_conversation(client);
        assert_eq!(client.fails("undo-rollback", "nil").kind(), "no-rollback");
    }

    #[track_caller]
    fn check_conversation(&self, client: &mut Client) {
        assert_eq!(numbers(&client.ok("get-messages", "nil")), self.conversation);
    }

    /// After a crash: what was acknowledged is there, and of what was on its way a beginning.
    fn take_up(&mut self, client: &mut Client, on_its_way: &[String]) {
        let held = client.ok("get-messages", "nil");
        let all = numbers(&held);
        assert!(all.starts_with(&self.conversation), "{all:?}");
        let more: Vec<Json> =
            held.as_array().unwrap().iter().skip(self.conversation.len()).cloned().collect();
        assert!(more.len() <= on_its_way.len());
        for (message, sent) in more.iter().zip(on_its_way) {
            assert_eq!(message["content"], sent.as_str());
            self.acknowledge(message["id"].as_str().unwrap(), "assistant", sent);
        }
    }
}

fn question(number: usize) -> String {
    format!(
        "question <{number}>: what does src/part{}.rs say about error E{number:04}?",
        number % 7
    )
}

fn output(number: usize) -> String {
    format!(
        "output <{number}>: {} of 12 tests failed in {number} ms. {}",
        number % 5,
        "x".repeat(90)
    )
}

fn conclusion(number: usize) -> String {
    format!(
        "conclusion <{number}>: we decided to keep limit {number} MiB; run `cargo test part{number}`"
    )
}

fn answers(number: usize) -> (String, String, String) {
    let calls = format!(
        "(:role :assistant :tool-calls ((:id \"call-{number}\" :name \"run\" :arguments \"{{}}\")))"
    );
    let result = format!(
        "(:role :tool :tool-call-id \"call-{number}\" :content {})",
        quoted(&output(number))
    );
    let answer = format!("(:role :assistant :content {})", quoted(&conclusion(number)));
    (calls, result, answer)
}

fn numbers(messages: &Json) -> Vec<usize> {
    let number = |message: &Json| {
        message["id"].as_str().unwrap().strip_prefix("msg-").unwrap().parse().unwrap()
    };
    messages.as_array().unwrap().iter().map(number).collect()
}

#[test]
fn three_hundred_turns_with_a_kill_in_the_middle_leave_a_complete_transcript() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"long\" :project \"/srv/long\")");
    client.ok("configure-session", "(:max-tokens 3000 :checkpoint-interval 9)");
    let mut known = Known::default();
    for number in 1..=TURNS {
        if number == KILLED_IN {
            client = crash(&home, client, &mut known);
        }
        known.turn(&mut client, number);
        match number % 60 {
            20 => known.checkpoint(&mut client, number),
            26 | 46 => known.rollback(&mut client),
            48 => known.undo_rollback(&mut client),
            33 => drop(client.ok("prune-context", "(:max-tokens 1200 :brief t)")),
            52 => drop(client.call("summarize-context", "(:keep-turns 2)")),
            _ => {}
        }
    }
    known.check_conversation(&mut client);
    assert!(known.summaries > 5, "{}", known.summaries);
    assert!(known.automatic > 15, "{}", known.automatic);
    check_checkpoints(&mut client, &known);
    check_transcripts(&mut client, &known);
    client.end();
    let mut client = home.stdio(&[]);
    known.check_conversation(&mut client);
    client.end();
    assert!(home.succeed(&["doctor"]).contains("contexture.db is sound"));
}

/// Kills the server with calls on their way, and starts another.
fn crash(home: &Home, mut client: Client, known: &mut Known) -> Client {
    let sent: Vec<String> = (0..40).map(|number| format!("on its way <{number}>")).collect();
    let first = 1_000_000;
    let mut lines = String::new();
    for (number, content) in sent.iter().enumerate() {
        let params = format!("(:role :assistant :content {})", quoted(content));
        let id = (first + number).to_string();
        lines += &request(Dialect::Native, &id, "add-message", &params);
    }
    client.write(lines.as_bytes());
    let mut answered = Vec::new();
    for _ in 0..7 {
        answered.push(client.line().unwrap());
    }
    client.process().kill();
    while let Some(line) = client.line() {
        answered.push(line);
    }
    let mut acknowledged = 0;
    for line in answered.iter().filter(|line| line.ends_with(')')) {
        let message = parse(Dialect::Native, line);
        let number = message["id"].as_u64().unwrap() as usize - first;
        assert_eq!(number, acknowledged, "answers come in order");
        let said = outcome(message).unwrap();
        known.acknowledge(said["id"].as_str().unwrap(), "assistant", &sent[number]);
        acknowledged += 1;
    }
    assert!(acknowledged >= 7);
    let mut client = home.stdio(&[]);
    assert_eq!(client.ok("current-session", "nil")["session"], "long");
    known.take_up(&mut client, &sent[acknowledged..]);
    client
}

fn check_checkpoints(client: &mut Client, known: &Known) {
    let listed = client.ok("list-checkpoints", "nil");
    let listed = listed.as_array().unwrap();
    let names: Vec<&str> = listed.iter().map(|row| row["checkpoint"].as_str().unwrap()).collect();
    let expected: Vec<&str> = known.checkpoints.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, expected);
    for row in listed.iter().filter(|row| row["automatic"] == true) {
        let turn = row["turn"].as_u64().unwrap();
        assert_eq!(row["message"], format!("Auto checkpoint at turn {turn}"));
    }
    // Each can still be gone back to.
    let (name, then) = &known.checkpoints[known.checkpoints.len() / 3];
    client.ok("rollback", &format!("(:checkpoint \"{name}\")"));
    assert_eq!(&numbers(&client.ok("get-messages", "nil")), then);
    client.ok("undo-rollback", "nil");
    known.check_conversation(client);
}

fn check_transcripts(client: &mut Client, known: &Known) {
    let log = client.ok("get-messages", "(:view :log)");
    let log = log.as_array().unwrap();
    assert_eq!(log.len(), known.log.len(), "every place of the log was acknowledged");
    for (message, said) in log.iter().zip(&known.log) {
        let (role, content) = said.as_ref().unwrap();
        assert_eq!(
            (&message["role"], &message["content"]),
            (&role[..].into(), &content[..].into())
        );
    }
    let users = known.log.iter().flatten().filter(|(role, _)| role == "user").count();
    assert_eq!(users, known.turns);

    let exported = client.ok("export-session", "(:format :markdown)");
    assert_eq!(exported["messages"], log.len());
    let markdown = exported["text"].as_str().unwrap();
    let mut rest = markdown;
    for (number, said) in (1..).zip(&known.log) {
        let (_, content) = said.as_ref().unwrap();
        let heading = format!(" (msg-{number}, ");
        assert_eq!(markdown.matches(&heading).count(), 1, "msg-{number}");
        rest = rest.split_once(&heading).unwrap_or_else(|| panic!("msg-{number}")).1;
        if !content.is_empty() {
            rest = rest.split_once(&**content).unwrap_or_else(|| panic!("msg-{number}")).1;
        }
    }

    let exported = client.ok("export-session", "(:format :json)");
    let text = exported["text"].as_str().unwrap();
    let messages = read_json(text)["messages"].as_array().unwrap().clone();
    assert_eq!(messages.len(), log.len());
    let params = format!("(:text {} :name \"again\")", quoted(text));
    let imported = client.ok("import-session", &params);
    assert_eq!(imported["messages"], log.len());
    assert_eq!(imported["project"], "/srv/long");
    for view in [":log", ":conversation", ":view"] {
        let of = |name: &str| format!("(:session \"{name}\" :view {view})");
        let original = client.ok("get-messages", &of("long"));
        assert_eq!(client.ok("get-messages", &of("again")), original, "{view}");
    }
    let again = client.ok("export-session", "(:session \"again\" :format :json)");
    assert_eq!(read_json(again["text"].as_str().unwrap())["messages"], Json::Array(messages));
    let budget = "(:max-tokens 2500 :items nil";
    let original = client.ok("build-context", &format!("{budget} :session \"long\")"));
    let copy = client.ok("build-context", &format!("{budget} :session \"again\")"));
    assert_eq!(original["parts"], copy["parts"]);
    client.ok("switch-session", "(:session \"long\")");
}
