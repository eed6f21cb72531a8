//! Each pair of features that can be switched on together: a short conversation, against servers
//! that refuse what is not strict. A feature is a row of a table; its pairs come by themselves.

use std::fmt::Write;

use contexture_program::internals::provider::Family;

use crate::endpoint::Endpoint;
use crate::model;
use crate::support::*;

/// How many turns each pair has.
const TURNS: usize = 3;
/// How many conversations are held at a time.
const AT_A_TIME: usize = 4;
/// A budget that the older messages do not all fit into.
const BUDGET: u64 = 3000;
/// What every session's system prompt is.
const PROMPT: &str = "be brief and kind";

/// Something that a user may switch on.
struct Feature {
    name: &'static str,
    /// Lines of the configuration that it needs.
    configured: fn(&Home, &Endpoint) -> String,
    /// What is called before the first turn.
    prepared: fn(&mut Client),
    /// What the user says for it.
    asks: &'static str,
    /// Parameters of `chat`.
    params: &'static str,
    /// Sections of the window.
    sections: &'static str,
    /// What is wrong with the last turn, from its answer and what was sent.
    missing: fn(&Json, &str) -> Option<String>,
}

const NOTHING: Feature = Feature {
    name: "",
    configured: |_, _| String::new(),
    prepared: |_| {},
    asks: "",
    params: "",
    sections: "",
    missing: |_, _| None,
};

/// What must have been sent.
fn lacks(sent: &str, text: &str) -> Option<String> {
    (!sent.contains(text)).then(|| format!("{text:?} was not sent"))
}

/// What must be in the answer.
fn unlike(answer: &Json, pointer: &str, value: &str) -> Option<String> {
    let said = answer.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    (said != value).then(|| format!("{pointer} is {said:?} and not {value:?}"))
}

/// Who answered, and that it was sent what it wants to be sent.
fn answered_by(answer: &Json, sent: &str, provider: &str) -> Option<String> {
    unlike(answer, "/provider", provider).or_else(|| lacks(sent, PROMPT))
}

fn messages(client: &mut Client, count: usize, words: usize) {
    let mut said = String::new();
    for n in 0..count {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let text = format!("older message {n} ") + &"word ".repeat(words);
        write!(said, "(:role :{role} :content {})", quoted(&text)).unwrap();
    }
    client.ok("add-message", &format!("(:messages ({said}))"));
}

/// Everything that can be switched on, and how it shows.
static FEATURES: &[Feature] = &[
    Feature {
        name: "embeddings",
        configured: |_, server| model::embeddings(server),
        prepared: |client| drop(client.ok("remember", "(:content \"the automobile is violet\")")),
        asks: "which car is it?",
        missing: |answer, sent| {
            unlike(answer, "/turn/embedding", "used")
                .or_else(|| lacks(sent, "the automobile is violet"))
        },
        ..NOTHING
    },
    Feature {
        name: "memories",
        prepared: |client| drop(client.ok("remember", "(:content \"the launch code is plum\")")),
        asks: "what is the launch code?",
        missing: |_, sent| lacks(sent, "the launch code is plum"),
        ..NOTHING
    },
    Feature {
        name: "tools",
        prepared: |client| drop(client.ok("configure-session", "(:tools t :allowed-tools t)")),
        asks: model::USE_A_TOOL,
        missing: |answer, sent| {
            let ran = answer["tool_calls"].as_array().map_or(0, Vec::len);
            let outcome = unlike(answer, "/tool_calls/0/tool", "list_context");
            outcome.filter(|_| ran != 1).or_else(|| lacks(sent, "list_context"))
        },
        ..NOTHING
    },
    Feature {
        name: "template",
        configured: |home, _| {
            model::template(home, "of-turns");
            String::new()
        },
        params: ":template \"of-turns\"",
        missing: |answer, sent| {
            unlike(answer, "/management/status", "managed").or_else(|| lacks(sent, model::NOTED))
        },
        ..NOTHING
    },
    Feature {
        name: "managing",
        configured: |home, _| {
            model::template(home, "of-session");
            String::new()
        },
        prepared: |client| {
            client.ok("configure-session", "(:manage t :template \"of-session\")");
        },
        missing: |answer, sent| {
            unlike(answer, "/management/status", "managed").or_else(|| lacks(sent, model::NOTED))
        },
        ..NOTHING
    },
    Feature {
        name: "items",
        prepared: |client| {
            let manager = client.ok("list-sessions", "(:current t)")[0]["manager"].clone();
            client.add(manager.as_str().unwrap(), "the item of the context says pear");
        },
        missing: |_, sent| lacks(sent, "the item of the context says pear"),
        ..NOTHING
    },
    Feature {
        name: "phases",
        params: ":phase :implementation",
        sections: ":current-unit \"unit subtract\" :units ((:name \"add\" :path \"a.rs\" :code \"fn add() {}\" :approved t))",
        missing: |_, sent| {
            lacks(sent, "unit subtract").or_else(|| lacks(sent, "Previously implemented: add"))
        },
        ..NOTHING
    },
    Feature {
        name: "pinned messages",
        prepared: |client| {
            let said = "(:role :user :content \"never forget the teapot\" :pinned t)";
            client.ok("add-message", said);
        },
        missing: |_, sent| lacks(sent, "never forget the teapot"),
        ..NOTHING
    },
    Feature {
        name: "summaries",
        prepared: |client| {
            messages(client, 20, 60);
            client.ok("summarize-context", "(:max-items 2)");
        },
        missing: |answer, sent| {
            // Notes of a manager stand in place of the summary, and a window with room for all
            // that was summarized shows that instead.
            match unlike(answer, "/management/status", "managed") {
                Some(_) if !sent.contains("older message 0 ") => {
                    lacks(sent, "[Previous conversation summary:")
                }
                _ => None,
            }
        },
        ..NOTHING
    },
    Feature {
        name: "budget",
        prepared: |client| {
            client.ok("configure-session", &format!("(:max-tokens {BUDGET} :auto-summarize nil)"));
            messages(client, 60, 60);
        },
        missing: |_, sent| sent.contains("older message 7 ").then(|| "all was sent".to_owned()),
        ..NOTHING
    },
    Feature {
        name: "messages of the system",
        prepared: |client| {
            client.ok("add-message", "(:role :user :content \"hello\")");
            client.ok("add-message", "(:role :system :content \"the user is a pilot\")");
            client.ok("add-message", "(:role :user :content \"hello again\")");
        },
        missing: |answer, sent| match unlike(answer, "/management/status", "managed") {
            None => None,
            Some(_) => lacks(sent, "the user is a pilot"),
        },
        ..NOTHING
    },
    Feature {
        name: "calls of other models",
        prepared: |client| {
            let calls = "(:role :assistant :content \"\" :tool-calls ((:id \"a/1\" :name \"read file\" \
                          :arguments \"{\\\"path\\\":\") (:id \"a/1\" :name \"\" :arguments \"\")))";
            client.ok("add-message", "(:role :assistant :content \"welcome\")");
            client.ok("add-message", calls);
            client.ok("add-message", "(:role :tool :tool-call-id \"a/1\" :content \"\")");
            client.ok("add-message", "(:role :assistant :content \"read it\")");
        },
        missing: |answer, sent| match unlike(answer, "/management/status", "managed") {
            None => None,
            Some(_) => lacks(sent, "(no result)"),
        },
        ..NOTHING
    },
    Feature {
        name: "openai",
        configured: |_, server| model::provider(Family::Openai, server),
        params: ":provider \"openai\"",
        missing: |answer, sent| answered_by(answer, sent, "openai"),
        ..NOTHING
    },
    Feature {
        name: "responses",
        configured: |_, server| model::provider(Family::Responses, server),
        params: ":provider \"responses\"",
        missing: |answer, sent| answered_by(answer, sent, "responses"),
        ..NOTHING
    },
    Feature {
        name: "anthropic",
        configured: |_, server| model::provider(Family::Anthropic, server),
        params: ":provider \"anthropic\"",
        missing: |answer, sent| answered_by(answer, sent, "anthropic"),
        ..NOTHING
    },
    Feature {
        name: "gemini",
        configured: |_, server| model::provider(Family::Gemini, server),
        params: ":provider \"gemini\"",
        missing: |answer, sent| answered_by(answer, sent, "gemini"),
        ..NOTHING
    },
    Feature {
        name: "ollama",
        configured: |_, server| model::provider(Family::Ollama, server),
        params: ":provider \"ollama\"",
        missing: |answer, sent| answered_by(answer, sent, "ollama"),
        ..NOTHING
    },
    Feature {
        name: "scripted",
        configured: |home, _| {
            let script = home.write(
                "answers.toml",
                format!(
                    "[[answer]]\nwhen = \"{}\"\ncalls = [{{ name = \"list_context\" }}]\n\
                     [[answer]]\nwhen = \"{}\"\ntext = \"{}\"\n[[answer]]\necho = true\n",
                    model::USE_A_TOOL,
                    model::NOTES,
                    model::NOTED
                ),
            );
            format!(
                "[[providers]]\nname = \"scripted\"\nkind = \"scripted\"\nmodel = \"m\"\nscript = {script:?}\n"
            )
        },
        params: ":provider \"scripted\"",
        missing: |answer, sent| answered_by(answer, sent, "scripted"),
        ..NOTHING
    },
];

fn is_provider(feature: &Feature) -> bool {
    feature.params.starts_with(":provider")
}

/// Holds a conversation with these features on; says what went wrong.
fn converse(features: &[&Feature]) -> Result<(), String> {
    let server = model::serve();
    let home = Home::new();
    let mut settings = String::new();
    // Tables of the file come before its lists of tables.
    for feature in features {
        settings = (feature.configured)(&home, &server) + &settings;
    }
    let mut providers: Vec<&&Feature> = features.iter().filter(|f| is_provider(f)).collect();
    let usual = FEATURES.iter().find(|feature| is_provider(feature)).unwrap();
    if providers.is_empty() {
        settings += &(usual.configured)(&home, &server);
    }
    model::configure(&home, &settings);
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "(:name \"s\")");
    for feature in features {
        (feature.prepared)(&mut client);
    }
    for turn in 0..TURNS {
        let params = |of: fn(&Feature) -> &str| {
            let own = features.iter().filter(|feature| !is_provider(feature)).map(|f| of(f));
            own.collect::<Vec<_>>().join(" ")
        };
        // Two providers take turns.
        let provider = providers.first().map_or("", |feature| feature.params);
        let asked = format!(
            "(:content {} {provider} {} :sections (:system-prompt {} {}))",
            quoted(&format!("question {turn}: {}", params(|feature| feature.asks))),
            params(|feature| feature.params),
            quoted(PROMPT),
            params(|feature| feature.sections),
        );
        let from = server.asked().len();
        let answer = client.call("chat", &asked);
        let answer = answer.map_err(|error| format!("turn {turn}: {error:?}"))?;
        let sent = model::sent(&server, from, &answer);
        let window = answer["window_tokens"].as_u64().unwrap();
        let budget = if features.iter().any(|f| f.name == "budget") { BUDGET } else { 100_000 };
        if window > budget {
            return Err(format!("turn {turn}: the window has {window} tokens"));
        }
        if turn + 1 < TURNS {
            providers.reverse();
            continue;
        }
        let on = |feature: &&&Feature| !is_provider(feature) || providers.first() == Some(feature);
        let wrong = features
            .iter()
            .filter(on)
            .filter_map(|f| Some(format!("{}: {}", f.name, (f.missing)(&answer, &sent)?)));
        let wrong: Vec<String> = wrong.collect();
        if !wrong.is_empty() {
            return Err(format!("{wrong:?} in {answer}\nwith {sent}"));
        }
    }
    Ok(())
}

impl PartialEq for Feature {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Tries all of these and gives what went wrong, by the names of the features.
fn wrong_of(combinations: &[Vec<&'static Feature>]) -> Vec<String> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(Vec::new());
    let work = || {
        while let Some(features) =
            combinations.get(next.fetch_add(1, std::sync::atomic::Ordering::SeqCst))
        {
            if let Err(why) = converse(features) {
                let names: Vec<&str> = features.iter().map(|feature| feature.name).collect();
                let why: String = why.chars().take(3000).collect();
                wrong.lock().unwrap().push(format!("{}: {why}", names.join(" with ")));
            }
        }
    };
    std::thread::scope(|scope| (0..AT_A_TIME).for_each(|_| drop(scope.spawn(work))));
    wrong.into_inner().unwrap()
}

#[test]
fn each_feature_works_with_each_other() {
    let mut pairs: Vec<Vec<&Feature>> = Vec::new();
    for (at, one) in FEATURES.iter().enumerate() {
        pairs.push(vec![one]);
        pairs.extend(FEATURES[at + 1..].iter().map(|other| vec![one, other]));
    }
    assert_eq!(pairs.len(), FEATURES.len() * (FEATURES.len() + 1) / 2);
    let wrong = wrong_of(&pairs);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), pairs.len(), wrong.join("\n\n"));
}

#[test]
fn all_features_work_together_with_each_provider() {
    let (providers, others): (Vec<&Feature>, Vec<&Feature>) =
        FEATURES.iter().partition(|feature| is_provider(feature));
    // Either of the two says which template it is.
    let others = others.into_iter().filter(|feature| feature.name != "managing");
    let others: Vec<&Feature> = others.collect();
    let all = |provider: &&'static Feature| [others.clone(), vec![*provider]].concat();
    let wrong = wrong_of(&providers.iter().map(all).collect::<Vec<_>>());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
