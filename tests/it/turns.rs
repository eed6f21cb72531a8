//! A long session through the turn loop, with everything that can happen to one, and a crash in
//! the middle: nothing that was acknowledged is lost, and nothing is there twice.

use crate::support::*;
use crate::tiers::rounds;

fn turns() -> usize {
    rounds(120, 300)
}
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
        client.ok("undo", "(:session \"long\")");
        self.conversation = self.before_rollback.take().unwrap();
        self.check_conversation(client);
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
fn many_turns_with_a_kill_in_the_middle_leave_a_complete_transcript() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"long\" :project \"/srv/long\")");
    client.ok("configure-session", "(:max-tokens 3000 :checkpoint-interval 9)");
    let mut known = Known::default();
    for number in 1..=turns() {
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
    assert!(known.summaries > turns() / 60, "{}", known.summaries);
    assert!(known.automatic > turns() / 20, "{}", known.automatic);
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
    assert_eq!(client.ok("list-sessions", "(:current t)")[0]["session"], "long");
    known.take_up(&mut client, &sent[acknowledged..]);
    client
}

fn check_checkpoints(client: &mut Client, known: &Known) {
    let listed = client.ok("list-operations", "(:session \"long\" :checkpoints t)");
    let listed = listed.as_array().unwrap();
    let names = listed.iter().rev().map(|row| row["checkpoint"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
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
    client.ok("undo", "(:session \"long\")");
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
    let imported = client.ok("open-session", &params);
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
    client.ok("open-session", "(:create nil :name \"long\")");
}

fn configured(home: &Home, settings: &str) -> Client {
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"a\")");
    client.ok("configure-session", &format!("({settings})"));
    client
}

/// A turn of so many tokens, and an answer of as many.
fn exchange(client: &mut Client, number: usize, tokens: usize) -> Json {
    let filler = "word".repeat(tokens);
    let done = client.ok("process-turn", &format!("(:content \"{number} {filler}\")"));
    let params = format!("(:role :assistant :content \"answer {number} {filler}\")");
    client.ok("add-message", &params);
    done
}

#[test]
fn a_turn_tells_everything_that_it_did() {
    let home = Home::new();
    let mut client = configured(&home, ":checkpoint-interval 2 :max-tokens 1000");
    client.ok("remember", "(:content \"the port is 8080\" :scope :session :session \"a\")");
    let done = client.ok("process-turn", "(:content \"which port do we use?\" :coherence 0.5)");
    assert_eq!((&done["turn"], &done["id"]), (&1.into(), &"msg-1".into()));
    assert_eq!(done["grounding_used"], Json::from(vec!["mem-1"]));
    assert_eq!(done["grounding"], "Relevant context from memory:\n- the port is 8080");
    let relevance = done["relevance_scores"][0].as_f64().unwrap();
    assert!(relevance > 0.9 && relevance <= 1.0, "{relevance}");
    for switch in ["summarization_triggered", "rollback_triggered", "checkpoint_created"] {
        assert!(is_nil(&done[switch]), "{switch}");
    }
    // The question, and the grounding with its heading.
    assert_eq!(done["token_count"], 6 + 12);
    let parts = done["quality"].as_array().unwrap();
    let of = |name: &str| parts.iter().find(|part| part["part"] == name).unwrap();
    assert_eq!(of("coherence")["value"], 0.5);
    assert_eq!(of("relevance")["value"], relevance);
    let sum: f64 = parts
        .iter()
        .map(|part| part["value"].as_f64().unwrap() * part["weight"].as_f64().unwrap())
        .sum();
    assert!((done["quality_score"].as_f64().unwrap() - sum).abs() < 1e-9);
    assert!(parts.iter().all(|part| !part["reason"].as_str().unwrap().is_empty()));
    // No hit means no relevance for this turn, not that of the last.
    let none = client.ok("process-turn", "(:content \"zebra\")");
    assert!(is_nil(&none["grounding_used"]));
    let relevance = none["quality"].as_array().unwrap();
    assert_eq!(relevance.iter().find(|p| p["part"] == "relevance").unwrap()["value"], 0.0);
    let third = client.ok("process-turn", "(:content \"lion\")");
    assert_eq!(third["checkpoint_created"], "chk-1");
    let rows = client.ok("list-operations", "(:session \"a\" :checkpoints t)");
    assert_eq!(rows[0]["message"], "Auto checkpoint at turn 2");
    assert_eq!((&rows[0]["automatic"], &rows[0]["position"]), (&true.into(), &2.into()));
}

#[test]
fn summaries_come_in_steps_and_not_with_every_turn() {
    let home = Home::new();
    let mut client = configured(&home, ":max-tokens 2000 :grounding-memories 0");
    let mut summarized = Vec::new();
    for number in 1..=60 {
        let done = exchange(&mut client, number, 45);
        let tokens = done["token_count"].as_u64().unwrap();
        assert!(tokens <= 1600, "turn {number}: {tokens}");
        if done["summarization_triggered"] == true {
            let (before, after) = (&done["tokens_before"], &done["tokens_after"]);
            assert!(before.as_u64().unwrap() > 1600 && after.as_u64().unwrap() <= 1000, "{done}");
            assert!(after.as_u64().unwrap() >= 500, "no more is folded than must be: {done}");
            assert!(done["turns_summarized"].as_u64().unwrap() > 0);
            summarized.push(number);
        }
    }
    assert!((4..=12).contains(&summarized.len()), "{summarized:?}");
    let gaps: Vec<usize> = summarized.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| *gap >= 4), "{summarized:?}");
    let stats = client.ok("context-stats", "nil");
    assert_eq!(stats["summaries"], summarized.len());
    assert_eq!(stats["turns"], 60);
}

#[test]
fn summaries_that_do_not_help_are_given_up_for_a_while() {
    let home = Home::new();
    let mut client = configured(&home, ":max-tokens 400 :recent-turns-to-keep 1000");
    let mut told = Vec::new();
    for number in 1..=14 {
        let done = exchange(&mut client, number, 60);
        assert!(is_nil(&done["summarization_triggered"]));
        told.push(done["not_summarized"].as_str().unwrap_or_default().to_owned());
    }
    let kind = |text: &String| match text.as_str() {
        "" => '-',
        text if text.starts_with("there is nothing to summarize") => 't',
        text if text.contains("did not shrink the view enough") => 'b',
        text => panic!("{text}"),
    };
    // Two tries, then none for five turns, then one more.
    let course: String = told.iter().map(kind).collect();
    assert_eq!(course.trim_start_matches('-'), "ttbbbbtbbbb", "{told:?}");
    let advised = told
        .iter()
        .filter(|text| {
            text.contains("raise max-tokens with configure-session, or call prune-session")
        })
        .count();
    assert_eq!(advised, 8, "{told:?}");
}

#[test]
fn a_session_of_low_quality_is_rolled_back_when_it_is_to_be() {
    let home = Home::new();
    let settings = ":auto-rollback t :quality-threshold 0.6 :checkpoint-interval 10000";
    let mut client = configured(&home, settings);
    exchange(&mut client, 1, 5);
    client.ok("checkpoint", "nil");
    for number in 2..=3 {
        client.ok("process-turn", &format!("(:content \"{number}\" :coherence 1.0)"));
    }
    let done = client.ok("process-turn", "(:content \"nonsense\" :coherence 0.0)");
    assert_eq!(
        (&done["rollback_triggered"], &done["commit_restored"]),
        (&true.into(), &"chk-1".into())
    );
    assert_eq!((&done["turns_lost"], &done["turn"]), (&2.into(), &2.into()));
    let view = client.ok("get-messages", "nil");
    let last = view.as_array().unwrap().last().unwrap();
    assert_eq!((&last["id"], &last["content"]), (&done["id"], &"nonsense".into()));
    assert_eq!(view.as_array().unwrap().len(), 3);
    let log = client.ok("export-session", "(:format :json)");
    let said = log.to_string().matches("nonsense").count();
    assert_eq!(said, 1, "the message is logged once: {log}");
    assert_eq!(client.ok("undo", "(:session \"a\")")["turns_restored"], 2);
}

#[test]
fn a_poor_answer_leaves_though_a_checkpoint_was_taken_after_it() {
    let home = Home::new();
    let settings = ":auto-rollback t :quality-threshold 0.6 :checkpoint-interval 1";
    let mut client = configured(&home, settings);
    for number in 1..=3 {
        client.ok("process-turn", &format!("(:content \"{number}\" :coherence 1.0)"));
        client.ok("add-message", &format!("(:role :assistant :content \"re {number}\")"));
    }
    client.ok("checkpoint", "nil");
    let done = client.ok("process-turn", "(:content \"4\" :coherence 0.0)");
    assert_eq!((&done["turns_lost"], &done["checkpoint_created"]), (&1.into(), &Json::Null));
    let words = |client: &mut Client| -> Vec<String> {
        let view = client.ok("get-messages", "nil");
        let content = |message: &Json| message["content"].as_str().unwrap().to_owned();
        view.as_array().unwrap().iter().map(content).collect()
    };
    assert_eq!(words(&mut client), ["1", "re 1", "2", "re 2", "4"]);
    client.ok("add-message", "(:role :assistant :content \"re 4\")");
    let next = client.ok("process-turn", "(:content \"5\")");
    assert!(is_nil(&next["rollback_triggered"]), "the judgement left with the answer: {next}");
}

#[test]
fn a_poor_answer_that_no_checkpoint_precedes_stays_and_that_is_said() {
    let home = Home::new();
    let settings = ":auto-rollback t :quality-threshold 0.6 :checkpoint-interval 10000";
    let mut client = configured(&home, settings);
    client.ok("process-turn", "(:content \"1\")");
    client.ok("checkpoint", "nil");
    let done = client.ok("process-turn", "(:content \"2\" :coherence 0.0)");
    assert!(is_nil(&done["rollback_triggered"]));
    assert_eq!(done["not_rolled_back"], "no checkpoint precedes the last turn");
    assert_eq!(client.ok("get-messages", "nil").as_array().unwrap().len(), 2);
}

#[test]
fn settings_are_shown_with_their_ranges_and_what_is_outside_is_refused_whole() {
    let home = Home::new();
    let mut client = configured(&home, ":summarize-at-ratio 0.7 :auto-checkpoint nil");
    let settings = client.ok("configure-session", "nil")["settings"].clone();
    let of = |name: &str| {
        settings.as_array().unwrap().iter().find(|setting| setting["name"] == name).unwrap()
    };
    let ratio = of("summarize-at-ratio");
    assert_eq!((&ratio["value"], &ratio["default"]), (&0.7.into(), &Json::Null));
    assert_eq!((&ratio["least"], &ratio["most"]), (&0.1.into(), &1.0.into()));
    assert!(is_nil(&of("auto-checkpoint")["value"]) && of("auto-checkpoint")["default"] == true);
    assert_eq!(settings.as_array().unwrap().len(), 9);
    let mut check = |params: &str, name: &str, message: &str| {
        let error = client.fails("configure-session", &format!("({params} :grounding-memories 1)"));
        assert_eq!((error.code, error.param(), &*error.message), (-32602, name, message));
    };
    let count = "max-tokens must be a whole number from 256 to 10000000, or 0 for the default, \
                 got 255";
    check(":max-tokens 255", "max-tokens", count);
    let ratio = "summarize-at-ratio must be a number from 0.1 to 1, or 0 for the default, got 1.5";
    check(":summarize-at-ratio 1.5", "summarize-at-ratio", ratio);
    let ratio = "quality-threshold must be a number from 0 to 1, got -1";
    check(":quality-threshold -1", "quality-threshold", ratio);
    let count = "checkpoint-interval must be a whole number from 1 to 10000, got 0";
    check(":checkpoint-interval 0", "checkpoint-interval", count);
    let count = "grounding-memories must be a whole number from 0 to 100, got -1";
    check(":grounding-memories -1", "grounding-memories", count);
    let strategies = "strategy must be one of tiered, query, sliding, importance, got \"best\"";
    check(":strategy :best", "strategy", strategies);
    check(":max-tokens \"many\"", "max-tokens", "max-tokens must be a number, got \"many\"");
    let error = client.fails("configure-session", "(:auto-summarise t)");
    assert!(error.message.contains("auto-summarize"), "{}", error.message);
    let after = client.ok("configure-session", "nil")["settings"].clone();
    assert_eq!(after, settings, "nothing of a refused call was set");
}
