//! The schema against the server: every method with every parameter, every kind of error, every
//! topic, and every member of what the server says, in both dialects.

mod fits;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use boon::{Compiler, SchemaIndex, Schemas};
use contexture_program::internals::value::Value;
use contexture_program::internals::value::json::from_json;
use contexture_program::internals::value::sexp;
use serde_json::{Value as Json, json};

use self::fits::{Fit, Members, members};
use crate::docs::page;
use crate::model;
use crate::schema::document;
use crate::support::*;

/// What is called. A line is a method with its parameters, and must succeed; after `!` comes the
/// kind or the code of the error that it gets instead. `&` does not wait for the answer, `?`
/// waits for its beginning, or for the notification that it names, and `=` for all of it. `#` sets up another server. Lines that begin with a space continue the line before.
const SCRIPT: &str = "tests/it/conformance/script.txt";

/// Kinds of errors that no call gets on a sound machine, over one connection and in this time, with
/// the tests that have them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("bad-setting", "the parameter is refused first"),
    ("file-unreadable", "files::read"),
    ("internal", "server::tests, a defect"),
    ("not-allowed", "trust, over TCP"),
    ("read-only", "damage, a full disk"),
    ("shutting-down", "order"),
    ("state-removed", "damage"),
    ("store-damaged", "damage"),
    ("store-failed", "damage"),
    ("too-many-providers", "configure"),
    ("summarizer-failed", "library, a summarizer of its own"),
];

/// Members that take two machines, or a file that another program changes: `tests/it/sync.rs`,
/// `tests/it/hub.rs` and `tests/it/editors.rs` have these.
const OF_OTHERS: [&str; 12] = [
    "ContextChanged.followed",
    "Hub.held",
    "Hub.owner",
    "Hub.user",
    "Memory.machine",
    "ReplacedBody.about",
    "ReplacedBody.hash",
    "SearchHit.machine",
    "SearchHit.shared_by",
    "SeenChanges.open",
    "Session.machine",
    "SignedChange.replaced",
];

/// Parameters of every method with pages that need a long list. One method shows them for all.
const OF_PAGES: [&str; 2] = ["cursor", "fields"];

#[test]
fn the_schema_is_true_in_s_expressions() {
    check(Dialect::Native);
}

#[test]
fn the_schema_is_true_in_json() {
    check(Dialect::Json);
}

fn check(dialect: Dialect) {
    let document = with_errors_of_methods(document());
    let validator = Validator::new(&document);
    let mut seen = Seen::default();
    for part in page(SCRIPT).split("\n# ").skip(1) {
        let (setting, steps) = part.split_once('\n').unwrap();
        let embeddings = model::serve();
        let home = Home::new();
        set_up(&home, setting, &embeddings);
        let mut all = vec!["--fixed-time", "1767225600", "serve", "--stdio"];
        all.extend(setting.split_whitespace().skip(1));
        let client = Client::over_stdio(home.command(&all), dialect);
        let mut talk = Talk::new(client, &document, &validator, &mut seen);
        for step in steps.replace("\n ", " ").lines() {
            let files = home.path("files");
            talk.step(&long_texts(&step.replace("{files}", files.to_str().unwrap())));
        }
    }
    seen.compare(&document);
}

/// What a subagent of the session `s-2` recorded.
const SUBAGENT: &str = r#"{"isSidechain":true,"sessionId":"s-2","agentId":"x","type":"user","uuid":"x1","timestamp":"2025-02-11T20:36:46Z","message":{"role":"user","content":"Look."}}
{"isSidechain":true,"sessionId":"s-2","agentId":"x","type":"assistant","uuid":"x2","timestamp":"2025-02-11T20:36:47Z","message":{"id":"m9","content":[{"type":"text","text":"Seen."}]}}
"#;

/// Prepares a home: `full` has all that can be configured, `plain` nothing.
fn set_up(home: &Home, setting: &str, embeddings: &crate::endpoint::Endpoint) {
    let folder = home.file("repository/folder");
    let parent = crate::imports::FIRST
        .replace("\"s-1\",", "\"s-2\",\"gitBranch\":\"main\",")
        .replace("/srv/db", folder.to_str().unwrap());
    let files = [
        ("a.rs", "fn a() {}\nfn b() {}\n"),
        ("tree/b.rs", "fn c() {}\n"),
        ("tree/.hidden.rs", "fn d() {}\n"),
        ("tree/x.bin", "a\0b"),
        ("records/a.jsonl", crate::imports::FIRST),
        ("records/b.txt", "x"),
        ("records/c.md", "x"),
        ("repository/.git/HEAD", ""),
        ("repository/folder/a", ""),
        ("agents/a.jsonl", &*parent),
        ("agents/a/subagents/agent-x.jsonl", SUBAGENT),
        ("many/1.txt", &*"line\n".repeat(600)),
        ("many/2.txt", &*"line\n".repeat(600)),
        ("p/.env", "KEY=1\n"),
        ("p/.contexture/templates/own.md", "---\ndescription: own\n---\nSay {{ latest_input }}\n"),
    ];
    for (name, content) in files {
        home.write(name, content);
    }
    std::fs::create_dir_all(home.path("home/.claude/projects")).unwrap();
    if !setting.starts_with("full") {
        return;
    }
    let script = home.write("answers.toml", page("tests/it/conformance/answers.toml"));
    let provider = format!(
        "[[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m-1\"\nscript = {script:?}\n\
         price-input = 2.0\nprice-output = 10.0\nanswer-tokens = 1000\n"
    );
    // Nobody listens there: what is shared waits.
    let hub = "[hub]\nurl = \"postgres://ann@%2Fnone/team\"\n";
    model::configure(home, &(provider + &model::embeddings(embeddings) + hub));
    model::template(home, "noted");
    let folder = home.path("config/contexture/templates");
    for (name, text) in [
        ("large", &*"x".repeat(2 << 20)),
        ("broken", "---\nrecent-runs: many\n---\nx\n"),
        (
            "contract",
            "---\ndescription: d\nmodel: play\n---\nSay {{ latest_input }}\n\n```json\n{}\n```\n",
        ),
    ] {
        std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
    }
}

/// Writes `{words N}` and `{lines N}` out.
fn long_texts(step: &str) -> String {
    let mut out = step.to_owned();
    for (mark, piece) in [("{words ", "word "), ("{lines ", "line\\n")] {
        while let Some(start) = out.find(mark) {
            let end = start + out[start..].find('}').unwrap();
            let count = out[start + mark.len()..end].parse().unwrap();
            out.replace_range(start..=end, &piece.repeat(count));
        }
    }
    out
}

/// What was called and said so far.
#[derive(Default)]
struct Seen {
    /// Differences from the schema and from what was expected, each with its step.
    wrong: Vec<String>,
    /// Parameters of calls that succeeded, by method.
    params: BTreeMap<String, BTreeSet<String>>,
    kinds: BTreeSet<String>,
    topics: BTreeSet<String>,
    members: Members,
}

impl Seen {
    /// Compares it with all that the schema has.
    #[track_caller]
    fn compare(&self, document: &Json) {
        let mut missing = Vec::new();
        let mut expected = Members::new();
        for (name, method) in document["methods"].as_object().unwrap() {
            let Some(called) = self.params.get(name) else {
                missing.push(format!("method {name}"));
                continue;
            };
            for param in method["params"]["properties"].as_object().into_iter().flatten() {
                let is_of_pages = OF_PAGES.contains(&param.0.as_str());
                if !called.contains(param.0) && !is_of_pages {
                    missing.push(format!("parameter {} of {name}", param.0));
                }
            }
            for part in ["result", "result_since", "progress"] {
                members(document, &method[part], &format!("{name} {part}"), &mut expected);
            }
        }
        for (topic, params) in document["notifications"].as_object().unwrap() {
            if !self.topics.contains(topic) {
                missing.push(format!("topic {topic}"));
            }
            members(document, params, topic, &mut expected);
        }
        for (kind, of) in document["errors"]["kinds"].as_object().unwrap() {
            match self.kinds.contains(kind) {
                true => members(document, &of["data"], kind, &mut expected),
                false if ELSEWHERE.iter().any(|(elsewhere, _)| elsewhere == kind) => {}
                false => missing.push(format!("kind {kind}")),
            }
        }
        expected.retain(|member| !OF_OTHERS.contains(&&**member));
        missing.extend(expected.difference(&self.members).map(|member| format!("member {member}")));
        let wrong = self.wrong.join("\n");
        assert!(wrong.is_empty() && missing.is_empty(), "{wrong}\nnever said: {missing:#?}");
    }
}

/// A conversation in which all that is said is held against the schema.
struct Talk<'a> {
    client: Client,
    document: &'a Json,
    validator: &'a Validator,
    seen: &'a mut Seen,
    /// Methods of the calls, by id, with the names of their parameters, and these as JSON.
    calls: BTreeMap<i64, (String, BTreeSet<String>, Json)>,
    /// Kinds of the errors of answered calls, by id, and their lines.
    outcomes: BTreeMap<i64, (Option<String>, String)>,
    last: i64,
    /// Calls of a version that nothing has.
    probes: BTreeSet<i64>,
    /// Whether the answer that hangs has begun.
    is_begun: bool,
    /// Cursor of the last page that was not the last of its list.
    next: String,
    line: String,
}

impl<'a> Talk<'a> {
    fn new(
        client: Client,
        document: &'a Json,
        validator: &'a Validator,
        seen: &'a mut Seen,
    ) -> Self {
        let (calls, outcomes) = (BTreeMap::new(), BTreeMap::new());
        let line = String::new();
        Self {
            client,
            document,
            validator,
            seen,
            calls,
            outcomes,
            last: 0,
            probes: BTreeSet::new(),
            is_begun: false,
            next: String::new(),
            line,
        }
    }

    fn step(&mut self, step: &str) {
        if step.is_empty() || step.starts_with(';') {
            return;
        }
        self.line = step.to_owned();
        let (mark, rest) = step.split_once(' ').unwrap_or((step, ""));
        match mark {
            "!" => {
                let (kind, call) = rest.split_once(' ').unwrap();
                let id = self.send(call);
                self.wait(id, Some(kind));
            }
            "&" => self.last = self.send(rest),
            "?" if rest.is_empty() => {
                while !self.is_begun {
                    self.read();
                }
            }
            "?" => while self.read().as_deref() != Some(rest) {},
            "=" => self.wait(self.last, (rest != "ok").then_some(rest)),
            _ => {
                let versioned = self.with_version(step);
                let id = self.send(&versioned);
                self.wait(id, None);
                self.ask_for_a_page(step);
                self.ask_for_changes(step);
            }
        }
    }

    /// Makes a call again, for a page, if the method answers in pages and was not asked for one.
    fn ask_for_a_page(&mut self, step: &str) {
        let (method, params) = step.split_once(' ').unwrap_or((step, "()"));
        let known = &self.document["methods"][method]["params"]["properties"];
        if known.get("max_bytes").is_none() || params.contains(":max-bytes") {
            return;
        }
        let is_brief = known.get("brief").is_some() && !params.contains(":brief");
        let brief = if is_brief { " :brief t" } else { "" };
        let open = params.strip_suffix(')').unwrap();
        let id = self.send(&format!("{method} {open} :max-bytes 65536{brief})"));
        self.wait(id, None);
    }

    /// Makes every other call of a method for another version than there is, which does nothing.
    /// Returns the call for the version that it is told of.
    fn with_version(&mut self, step: &str) -> String {
        let (method, _) = step.split_once(' ').unwrap_or((step, "()"));
        let is_known = |name: &str| {
            self.document["methods"][method]["params"]["properties"].get(name).is_some()
        };
        let was_given = |params: &BTreeSet<String>| params.contains("if_version");
        let is_new = !self.seen.params.get(method).is_some_and(was_given);
        if !is_known("if_version") || (!self.earlier(method).is_multiple_of(2) && !is_new) {
            return step.to_owned();
        }
        let id = self.send_plain(&with(step, ":if-version 999999999"));
        self.probes.insert(id);
        while !self.outcomes.contains_key(&id) {
            self.read();
        }
        let (outcome, line) = &self.outcomes[&id];
        match outcome.as_deref() {
            Some("conflict") => {
                let message = self.parse(line);
                let data = message.get("error").and_then(|error| error.get("data")).unwrap();
                let Some(Value::Int(now)) = data.get("version") else { panic!("{line}") };
                with(step, &format!(":if-version {now}"))
            }
            // Not about one manager or session.
            _ => step.to_owned(),
        }
    }

    /// Makes a call again, for what has changed since nothing was there, and since its answer.
    fn ask_for_changes(&mut self, step: &str) {
        let (method, _) = step.split_once(' ').unwrap_or((step, "()"));
        let known = &self.document["methods"][method]["params"]["properties"];
        let is_about_all = step.contains(":managers")
            || step.contains(":messages")
            || (method == "list-notes" && !step.contains(":session"));
        if known.get("since").is_none() || is_about_all || step.contains(":cursor") {
            return;
        }
        let pages = match known.get("max_bytes").is_some() && !step.contains(":max-bytes") {
            true => ":max-bytes 65536",
            false => "",
        };
        let id = self.send_plain(&with(step, ":since 0"));
        self.wait(id, None);
        let message = self.parse(&self.outcomes[&id].1);
        let result = message.get("result").unwrap();
        let Some(Value::Int(now)) = result.get("version") else { panic!("{message:?}") };
        for more in [format!(":since 0 {pages}"), format!(":since {now}")] {
            let id = self.send_plain(&with(step, &more));
            self.wait(id, None);
        }
    }

    fn parse(&self, line: &str) -> Value {
        match self.client.dialect {
            Dialect::Native => sexp::read(line).unwrap(),
            _ => from_json(line.as_bytes()).unwrap(),
        }
    }

    /// Returns the number of calls of a method so far, without those that were to do nothing.
    fn earlier(&self, method: &str) -> usize {
        let calls = self.calls.iter().filter(|(id, _)| !self.probes.contains(*id));
        calls.filter(|(_, (earlier, ..))| earlier == method).count()
    }

    fn send(&mut self, call: &str) -> i64 {
        let (method, _) = call.split_once(' ').unwrap_or((call, "nil"));
        let known = &self.document["methods"][method]["params"]["properties"];
        // Every other call of a method has a key, so that both kinds of answers are seen.
        let takes_key = known.get("request_key").is_some() && !call.contains(":request-key");
        match takes_key && self.earlier(method).is_multiple_of(2) {
            true => {
                self.send_plain(&with(call, &format!(":request-key \"key-{}\"", self.calls.len())))
            }
            false => self.send_plain(call),
        }
    }

    fn send_plain(&mut self, call: &str) -> i64 {
        let (method, params) = call.split_once(' ').unwrap_or((call, "nil"));
        let params = params.replace("{last}", &self.last.to_string());
        let params = params.replace("{next}", &self.next);
        let id = self.client.send(method, &params);
        let line = request(Dialect::Json, "1", method, &params);
        let said: Json = serde_json::from_str(&line).unwrap();
        let names = match sexp::read(&params).unwrap() {
            Value::List(flat) => {
                let name = |name: Value| match name {
                    Value::Keyword(name) => name.replace('-', "_"),
                    other => panic!("{other:?} in {call}"),
                };
                flat.into_iter().step_by(2).map(name).collect()
            }
            Value::Nil => BTreeSet::new(),
            other => panic!("{other:?} in {call}"),
        };
        self.calls.insert(id, (method.to_owned(), names, said["params"].clone()));
        id
    }

    /// Reads until the answer to a call, and allows what a model asks for.
    #[track_caller]
    fn wait(&mut self, id: i64, expected: Option<&str>) {
        while !self.outcomes.contains_key(&id) {
            self.read();
        }
        let (outcome, line) = &self.outcomes[&id];
        if outcome.as_deref() != expected {
            self.wrong(format!("got {outcome:?}: {line}"));
        }
    }

    /// Reads the next message. Returns its topic, if it is a notification.
    fn read(&mut self) -> Option<String> {
        let line = self.client.line().unwrap_or_else(|| panic!("{}: no answer", self.line));
        let message = self.parse(&line);
        match (message.get("method"), message.get("id")) {
            (Some(Value::Str(topic)), _) => {
                self.told(topic, &message, &line);
                Some(topic.clone())
            }
            (None, Some(Value::Int(answered))) => {
                let (method, params, said) = self.calls[answered].clone();
                let part = if params.contains("since") { "result_since" } else { "result" };
                let outcome = self.answered(&method, part, &message, &line);
                if outcome.is_none() {
                    if said != Json::Null && self.client.dialect == Dialect::Json {
                        let place = format!("/methods/{method}/params");
                        let outcome = self.validator.validate(&said, &place);
                        outcome.unwrap_or_else(|why| self.wrong(why));
                    }
                    self.seen.params.entry(method).or_default().extend(params);
                }
                self.outcomes.insert(*answered, (outcome, line));
                None
            }
            _ => panic!("{line}"),
        }
    }

    fn told(&mut self, topic: &str, message: &Value, line: &str) {
        let params = message.get("params").unwrap();
        if topic != "progress" {
            self.seen.topics.insert(topic.to_owned());
            self.hold(params, topic, &format!("/notifications/{topic}"), &["params"], line);
            return;
        }
        let Some(Value::Int(id)) = params.get("id") else { panic!("{line}") };
        let method = self.calls[id].0.clone();
        let at = format!("{method} progress");
        self.hold(params, &at, &format!("/methods/{method}/progress"), &["params"], line);
        let kind = params.get("kind").map(|kind| format!("{kind:?}")).unwrap_or_default();
        if kind.contains("approval") {
            let Some(Value::Int(number)) = params.get("approval") else { panic!("{line}") };
            self.send("list-approvals");
            self.send("list-approvals (:max-bytes 1024)");
            self.send(&format!("approve (:approval {number} :decision :once)"));
        }
        self.is_begun |= kind.contains("text") && line.contains("HANGING");
    }

    /// Holds an answer against the schema; the kind or code of an error.
    fn answered(
        &mut self,
        method: &str,
        part: &str,
        message: &Value,
        line: &str,
    ) -> Option<String> {
        let Some(error) = message.get("error") else {
            let result = message.get("result").unwrap();
            if let Some(Value::Str(next)) = result.get("next") {
                self.next = next.clone();
            }
            let at = format!("{method} {part}");
            self.hold(result, &at, &format!("/methods/{method}/{part}"), &["result"], line);
            return None;
        };
        let Some(Value::Int(code)) = error.get("code") else { panic!("{line}") };
        let nothing = Value::Nil;
        let data = error.get("data").unwrap_or(&nothing);
        let kind = match data.get("kind") {
            Some(Value::Keyword(kind)) => kind.to_string(),
            Some(Value::Str(kind)) => kind.clone(),
            _ => {
                let codes = self.document["errors"]["codes"].as_array().unwrap();
                let at = codes.iter().position(|of| of["code"] == *code).unwrap();
                self.hold(
                    data,
                    "code",
                    &format!("/errors/codes/{at}/data"),
                    &["error", "data"],
                    line,
                );
                return Some(code.to_string());
            }
        };
        self.seen.kinds.insert(kind.clone());
        let place = format!("/errors_of_methods/{method}/{kind}");
        assert_eq!(self.document.pointer(&format!("{place}/code")), Some(&json!(code)), "{line}");
        self.hold(data, &kind, &format!("{place}/data"), &["error", "data"], line);
        Some(kind)
    }

    /// Holds a datum against the part of the schema at `place`; `path` leads to it in the message,
    /// and `at` is its name.
    fn hold(&mut self, value: &Value, at: &str, place: &str, path: &[&str], line: &str) {
        let schema = self.document.pointer(place);
        let schema = schema.unwrap_or_else(|| panic!("{place} is not in the schema: {line}"));
        let fit = Fit { document: self.document, dialect: self.client.dialect };
        match fit.check(value, schema, at) {
            Ok(members) => self.seen.members.extend(members),
            Err(why) => self.wrong(why),
        }
        if self.client.dialect == Dialect::Json {
            let mut datum: &Json = &serde_json::from_str::<Json>(line).unwrap();
            for name in path {
                datum = &datum[name];
            }
            if let Err(why) = self.validator.validate(datum, place) {
                self.wrong(why);
            }
        }
    }

    fn wrong(&mut self, why: String) {
        let why = why.chars().take(1500).collect::<String>();
        self.seen.wrong.push(format!("{}\n  {why}", self.line));
    }
}

/// Returns a call with one more parameter.
fn with(call: &str, more: &str) -> String {
    match call.strip_suffix(')') {
        Some(open) => format!("{open} {more})"),
        None => format!("{call} ({more})"),
    }
}

/// The document with the data of every kind of error as each method with data of its own has them.
fn with_errors_of_methods(mut document: Json) -> Json {
    let mut of_methods = serde_json::Map::new();
    for (name, method) in document["methods"].as_object().unwrap() {
        let mut kinds = document["errors"]["kinds"].clone();
        let more = method["error_data"]["properties"].as_object();
        for kind in kinds.as_object_mut().unwrap().values_mut() {
            let members = kind["data"]["properties"].as_object_mut().unwrap();
            members.extend(more.into_iter().flatten().map(|(name, of)| (name.clone(), of.clone())));
        }
        of_methods.insert(name.clone(), kinds);
    }
    document["errors_of_methods"] = of_methods.into();
    document
}

/// A validator by other hands, with unknown members refused. It keeps what it compiled.
struct Validator(RefCell<(Compiler, Schemas, BTreeMap<String, SchemaIndex>)>);

impl Validator {
    fn new(document: &Json) -> Self {
        let mut closed = document.clone();
        close(&mut closed);
        let mut compiler = Compiler::new();
        compiler.add_resource(RESOURCE, closed).unwrap();
        Self(RefCell::new((compiler, Schemas::new(), BTreeMap::new())))
    }

    fn validate(&self, datum: &Json, place: &str) -> Result<(), String> {
        let (compiler, schemas, known) = &mut *self.0.borrow_mut();
        let schema = *known
            .entry(place.to_owned())
            .or_insert_with(|| compiler.compile(&format!("{RESOURCE}#{place}"), schemas).unwrap());
        schemas.validate(datum, schema).map_err(|why| format!("{place}: {why:#}"))
    }
}

/// Name under which the validator knows the document.
const RESOURCE: &str = "http://schema.example/";

/// Refuses members that the schema does not have.
fn close(schema: &mut Json) {
    match schema {
        Json::Array(items) => items.iter_mut().for_each(close),
        Json::Object(members) => {
            members.values_mut().for_each(close);
            let is_object = members.get("properties").is_some_and(Json::is_object);
            if is_object && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".to_owned(), false.into());
            }
        }
        _ => {}
    }
}
