//! Windows, budgets, pruning and summaries over the wire: the examples of the design's sources.

use crate::support::*;

/// A text of so many tokens by the estimate of four characters each.
fn text(tokens: usize) -> String {
    "four".repeat(tokens)
}

/// Messages from words: `u` user, `a` assistant, `s` system, `a>1` calls tool 1, `t<1` is its
/// result, `=N` of N tokens (one otherwise), `!` pinned.
fn history(words: &str) -> String {
    let message = |word: &str| {
        let (word, pinned) = word.strip_suffix('!').map_or((word, ""), |word| (word, ":pinned t"));
        let (word, tokens) = word.split_once('=').unwrap_or((word, "1"));
        let tokens: usize = tokens.parse().unwrap();
        let (role, more) = match word.split_at(1) {
            ("u", _) => ("user", String::new()),
            ("s", _) => ("system", String::new()),
            ("t", id) => ("tool", format!(":tool-call-id \"{}\"", &id[1..])),
            (_, "") => ("assistant", String::new()),
            (_, calls) => {
                let call = |id: &str| format!("(:id \"{id}\" :name \"run\")");
                let calls: String = calls[1..].split(',').map(call).collect();
                ("assistant", format!(":tool-calls ({calls})"))
            }
        };
        format!("(:role :{role} :content \"{}\" {more} {pinned})", text(tokens))
    };
    let messages: Vec<String> = words.split_whitespace().map(message).collect();
    format!("({})", messages.join(" "))
}

fn open(client: &mut Client, words: &str) {
    client.ok("open-session", "nil");
    if !words.is_empty() {
        client.ok("add-message", &format!("(:messages {})", history(words)));
    }
}

/// The parts of a window: a section's name, or a message's number, or a note's text.
fn shown(window: &Json) -> String {
    let part = |part: &Json| match (part["section"].as_str().unwrap(), part["id"].as_str()) {
        ("messages", Some(id)) => id.strip_prefix("msg-").unwrap().to_owned(),
        ("messages", None) => part["content"].as_str().unwrap().to_owned(),
        (section, _) => section.to_owned(),
    };
    let parts: Vec<String> = window["parts"].as_array().into_iter().flatten().map(part).collect();
    parts.join(" ")
}

#[track_caller]
fn check_window(client: &mut Client, params: &str, expected: &str) -> Json {
    let window = client.ok("build-context", &format!("({params})"));
    assert_eq!(shown(&window), expected, "{params}");
    let tokens = window["tokens"].as_u64().unwrap();
    let parts: u64 =
        window["parts"].as_array().unwrap().iter().map(|p| p["tokens"].as_u64().unwrap()).sum();
    assert_eq!(tokens, parts);
    assert!(tokens <= window["max_tokens"].as_u64().unwrap());
    window
}

#[test]
fn the_sliding_example_of_fifty_messages_is_as_its_source_says() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let mut words = String::from("u=1000");
    for number in 2..=50 {
        words += if number % 2 == 0 { " a=3400" } else { " u=3400" };
    }
    open(&mut client, &words);
    let expected = "1 [45 earlier messages omitted for brevity] 47 48 49 50";
    let window = check_window(&mut client, ":strategy :sliding :max-tokens 15000", expected);
    let note = &window["parts"][1];
    assert_eq!((&note["role"], &note["section"]), (&"system".into(), &"messages".into()));
    let runs = window["report"]["parts"].as_array().unwrap();
    let dropped: u64 = runs
        .iter()
        .filter(|run| run["fate"] == "dropped")
        .map(|run| run["units"].as_u64().unwrap())
        .sum();
    assert_eq!(dropped, 45);
}

#[test]
fn the_worked_example_of_importance_scores_70_20_18_36_34_60() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    open(&mut client, "s u a u a u");
    let scores = [70.0, 20.0, 18.0, 36.0, 34.0, 60.0];
    let check = |units: &Json| {
        for (unit, expected) in units.as_array().unwrap().iter().zip(scores) {
            assert_eq!(unit["score"]["total"], expected, "{unit}");
            let parts = unit["score"]["parts"].as_object().unwrap();
            let sum: f64 = parts.values().map(|part| part.as_f64().unwrap()).sum();
            assert_eq!(sum, expected, "{unit}");
        }
        assert_eq!(units.as_array().unwrap().len(), 6);
    };
    let params = format!("(:messages {} :max-tokens 4)", history("s u a u a u"));
    let pruned = client.ok("prune-context", &params);
    check(&pruned["units"]);
    assert_eq!(pruned["units"][0]["score"]["parts"]["recency"], 40.0);
    assert_eq!(pruned["units"][0]["score"]["parts"]["role"], 30.0);
    // The first message of the user is never lost, so the worst of the others goes.
    let ids: Vec<&str> =
        pruned["pruned"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["msg-1", "msg-2", "msg-4", "msg-6"]);
    let window = client.ok("build-context", "(:strategy :importance :max-tokens 4 :explain t)");
    check(&window["report"]["parts"]);
    assert_eq!(shown(&window), "1 2 4 6");
}

#[test]
fn importance_counts_errors_operations_tools_and_length() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let long = "x".repeat(1001);
    let messages = format!(
        "((:content \"a\") (:role :assistant :content \"UPDATE: the build FAILED, then completed\") \
          (:role :assistant :content \"{long}\") (:content \"b\"))"
    );
    let pruned = client.ok("prune-context", &format!("(:messages {messages})"));
    let parts = |number: usize| pruned["units"][number]["score"]["parts"].clone();
    assert_eq!(parts(1)["error"], 15.0);
    assert_eq!(parts(1)["operation"], 20.0);
    assert_eq!(parts(1)["success"], 10.0);
    assert_eq!(parts(1)["keyword_cap"], -20.0);
    assert_eq!(parts(2)["length"], 5.0);
    assert_eq!(pruned["stats"]["items_removed"], 0);
}

#[test]
fn what_is_pruned_leaves_in_units_and_the_rest_is_as_it_was() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let words = "s u a>1,2=5 t<1=20 u t<2=20 a=9! a>3 u";
    open(&mut client, words);
    let before = client.ok("get-messages", "nil");
    let pruned = client.ok("prune-context", "(:max-tokens 18)");
    let numbers = |list: &Json| {
        ids(&Json::Array(list.as_array().unwrap().iter().map(|m| m["id"].clone()).collect()))
    };
    assert_eq!(numbers(&pruned["removed"]), ["msg-3", "msg-4", "msg-6"]);
    assert_eq!(pruned["stats"]["items_kept"], 6);
    assert_eq!(pruned["archived"], 3);
    let view = client.ok("get-messages", "(:view :view)");
    let kept: Vec<Json> = before
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| {
            !numbers(&pruned["removed"]).contains(&message["id"].as_str().unwrap().to_owned())
        })
        .cloned()
        .collect();
    assert_eq!(view, Json::Array(kept));
    let stats = client.ok("context-stats", "nil");
    assert_eq!(
        (&stats["pruned"], &stats["items"], &stats["log"]),
        (&3.into(), &6.into(), &9.into())
    );
    let nothing = client.ok("auto-manage-context", "nil");
    assert!(is_nil(&nothing["removed"]), "far below the model's limit");
}

#[test]
fn a_history_is_pruned_when_more_than_80_percent_of_the_models_limit_is_used() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let of = |words: &str| format!("(:messages {} :model \"gpt-4-0613\")", history(words));
    let full = of("s u=3000 a=3000 u=500");
    let stats = client.ok("context-stats", &full);
    assert_eq!((&stats["limit"], &stats["tokens"]), (&8192.into(), &6501.into()));
    assert!(is_nil(&stats["needs_pruning"]) && stats["model_known"] == true);
    let kept = client.ok("auto-manage-context", &full);
    assert_eq!(kept["stats"]["items_removed"], 0);
    let fuller = of("s u=3000 a=3000 u=600");
    assert_eq!(client.ok("context-stats", &fuller)["needs_pruning"], true);
    let pruned = client.ok("auto-manage-context", &fuller);
    assert_eq!(pruned["removed"][0]["id"], "msg-3");
    assert_eq!(pruned["stats"]["token_reduction"], 3000);
}

#[test]
fn what_can_never_be_left_out_is_named_when_it_does_not_fit() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    open(&mut client, "s=5 u=10 a=50 a=7! u=20 a>9=3 a=50");
    let error = client.fails(
        "build-context",
        &format!("(:max-tokens 30 :sections (:system-prompt \"{}\"))", text(11)),
    );
    assert_eq!((error.kind(), error.code), ("budget-too-small", 1));
    assert_eq!((&error.data["max_tokens"], &error.data["needed"]), (&30.into(), &47.into()));
    let parts: Vec<String> = error.data["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| {
            format!("{} {} {}: {}", p["section"], p["what"], p["tokens"], p["reason"])
                .replace('"', "")
        })
        .collect();
    assert_eq!(
        parts,
        [
            "system-prompt system-prompt 11: always included",
            "messages msg-1 5: a system prompt",
            "messages msg-4 7: pinned",
            "messages msg-5 20: the last user message",
            "messages msg-6 4: a tool call that has no result yet",
        ]
    );
    // What it says is needed is enough, and not a token less.
    let params =
        |most: u64| format!(":max-tokens {most} :sections (:system-prompt \"{}\")", text(11));
    check_window(&mut client, &params(47), "system-prompt 1 4 5 6");
    client.fails("build-context", &format!("({})", params(46)));
    let error = client.fails("prune-context", "(:max-tokens 9)");
    assert_eq!(
        (error.kind(), error.data["parts"].as_array().unwrap().len()),
        ("budget-too-small", 5)
    );
}

#[test]
fn the_same_session_gives_the_same_bytes_and_the_report_tells_what_is_stable() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    open(&mut client, "s=20 u=30 a=40 u=30 a=40");
    for strategy in ["tiered", "query", "sliding", "importance"] {
        let params = format!("(:strategy :{strategy} :max-tokens 130 :query \"four\" :explain t)");
        let first = client.ok("build-context", &params);
        let second = client.ok("build-context", &params);
        assert_eq!(first["parts"], second["parts"], "{strategy}");
        let stable = &second["report"]["stable"];
        assert!(is_nil(&stable["first_difference"]), "{strategy}: {stable}");
        assert_eq!(first["report"]["strategy"], strategy);
        let units = second["report"]["parts"].as_array().unwrap();
        assert!(
            units.iter().all(|unit| unit["reason"].as_str().is_some_and(|why| !why.is_empty()))
        );
    }
    let before = client.ok("build-context", "(:strategy :sliding)");
    client.ok("add-message", "(:content \"more\")");
    let after = client.ok("build-context", "(:strategy :sliding)");
    let stable = &after["report"]["stable"];
    let content = |window: &Json| -> usize {
        window["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["content"].as_str().unwrap().len())
            .sum()
    };
    assert_eq!(stable["first_difference"], content(&before));
    assert_eq!(stable["section"], "messages");
    assert_eq!(stable["tokens"], before["tokens"]);
    let told = client.ok("session-report", "(:reports 2)")["reports"].clone();
    assert_eq!(told[0]["tokens_after"], before["tokens"]);
    assert_eq!(told[1]["tokens_after"], after["tokens"]);
    client.end();
}

#[test]
fn tokens_are_counted_by_the_counter_and_by_the_family_of_the_model() {
    let home = Home::new();
    let mut client = home.ephemeral(&["--tokenizer", "o200k"]);
    client.ok("open-session", "nil");
    let said = client.ok("add-message", "(:content \"Hello, world! How are you today?\")");
    let counted = said["tokens"].as_u64().unwrap();
    assert_eq!(counted, 9);
    let mut check = |model: &str, limit: u64, tokens: u64, exact: bool, known: bool| {
        let stats = client.ok("context-stats", &format!("(:model \"{model}\")"));
        assert_eq!(stats["limit"], limit, "{model}");
        assert_eq!(stats["tokens"], tokens, "{model}");
        assert_eq!(
            (stats["exact"] == true, stats["model_known"] == true),
            (exact, known),
            "{model}"
        );
    };
    // Four more for the role; the factor of the family, rounded up.
    check("gpt-5", 128_000, 13, true, true);
    check("gpt-5-mini-2026", 128_000, 13, true, true);
    check("claude-sonnet-4-5", 200_000, 15, false, true);
    check("claude-next", 200_000, 18, false, true);
    check("gemini-2.5-pro", 1_000_000, 16, false, true);
    check("llama-9", 100_000, 13, false, false);
    let window = client.ok("build-context", "(:model \"llama-9\" :brief t)");
    assert_eq!((&window["model"], is_nil(&window["model_known"])), (&"llama-9".into(), true));
    assert_eq!(client.ok("context-stats", "nil")["model"], "default");
    // The schemas of tools are counted, too.
    let with = "(:model \"gpt-5\" :sections (:tool-schemas \"{\\\"name\\\": \\\"run\\\"}\"))";
    assert!(client.ok("build-context", with)["tokens"].as_u64().unwrap() > 13);
}

#[test]
fn a_model_is_calibrated_by_what_its_provider_reports_across_restarts() {
    let home = Home::new();
    let mut client = home.stdio(&["--tokenizer", "o200k"]);
    open(&mut client, "u=100");
    let tokens = |client: &mut Client| {
        let params = "(:model \"claude-sonnet-4-5\")";
        client.ok("context-stats", params)["tokens"].as_u64().unwrap()
    };
    let before = tokens(&mut client);
    let report = "(:model \"claude-sonnet-4-5\" :counted 1000 :reported 1500)";
    let learned = client.ok("report-usage", report);
    assert_eq!((&learned["ratio"], &learned["reports"]), (&1.1.into(), &1.into()));
    let after = tokens(&mut client);
    assert!(after > before);
    // However wrong a report is, counts stay within 0.8 and 2 of the table.
    for reported in [9_000_000_000_000_000_000u64, 201] {
        for _ in 0..60 {
            let params = format!("(:model \"claude-x\" :counted 1000 :reported {reported})");
            client.ok("report-usage", &params);
        }
        let params = "(:model \"claude-x\" :counted 0 :reported 0)";
        let ratio = client.ok("report-usage", params)["ratio"].as_f64().unwrap();
        assert!((0.79..=2.01).contains(&ratio), "{ratio}");
    }
    assert_eq!(
        client.fails("report-usage", "(:model \"x\" :counted -1 :reported 1)").param(),
        "counted"
    );
    client.end();
    let mut client = home.stdio(&["--tokenizer", "o200k"]);
    assert_eq!(tokens(&mut client), after);
    client.end();
}

const SECTIONS: &str = ":sections (:system-prompt \"be\" :design-document \"doc\" \
    :type-definitions \"types\" :current-unit \"unit\" :relevant-tests \"tests\" \
    :failures ((:name \"parse works\" :error \"boom\" :expected \"1\" :received \"2\" :stack \"at x\")) \
    :units ((:name \"parse\" :path \"src/parse.rs\" :code \"fn parse() {}\" :approved t) \
            (:name \"draft\" :code \"no\") (:name \"two\" :code \"b\" :approved t) \
            (:name \"three\" :code \"c\" :approved t) (:name \"four\" :code \"d\" :approved t)))";

#[test]
fn each_phase_has_its_sections_and_what_is_missing_is_told() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    open(&mut client, "u a u");
    let mut check = |phase: &str, expected: &str| {
        check_window(&mut client, &format!(":phase :{phase} {SECTIONS}"), expected)
    };
    check("planning", "system-prompt 1 2 3");
    check("interface", "system-prompt design-document type-definitions 1 2 3");
    let window = check(
        "implementation",
        "system-prompt design-document type-definitions current-unit relevant-tests 1 2 3 \
         previous-units previous-units previous-units",
    );
    let units: Vec<&str> = window["parts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["section"] == "previous-units")
        .map(|part| part["content"].as_str().unwrap().lines().next().unwrap())
        .collect();
    assert_eq!(
        units,
        ["two", "three", "four"].map(|name| format!("// Previously implemented: {name}"))
    );
    let window = check(
        "testing",
        "system-prompt design-document type-definitions relevant-tests implementation 1 2 3",
    );
    let part = |section: &str| {
        let mut parts = window["parts"].as_array().unwrap().iter();
        parts.find(|part| part["section"] == section).unwrap()["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        part("relevant-tests"),
        "### Failed Test: parse works\n**Error**: boom\n**Expected**: 1\n**Received**: 2\n\
         **Stack**:\n```\nat x\n```"
    );
    assert_eq!(part("implementation"), "// parse\nfn parse() {}");
    let window = client.ok("build-context", "(:phase :implementation)");
    let missing: Vec<&str> = window["report"]["missing"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s.as_str().unwrap())
        .collect();
    assert_eq!(missing, ["system-prompt", "design-document", "type-definitions", "current-unit"]);
}

#[test]
fn the_usage_log_has_a_line_for_each_window_and_a_table_by_phase() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    open(&mut client, "u=10 a=20");
    for phase in ["planning", "testing", "testing"] {
        client.ok("build-context", &format!("(:phase :{phase} {SECTIONS} :brief t)"));
    }
    client.end();
    let mut client = home.stdio(&[]);
    let log = client.ok("session-report", "(:windows 50)");
    let windows = log["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 3);
    assert_eq!((&windows[0]["phase"], &windows[0]["messages"]), (&"planning".into(), &30.into()));
    assert_eq!(windows[0]["budget"], 96_000);
    for window in windows {
        let of = |name: &str| window[name].as_u64().unwrap();
        let sum = of("system_prompt")
            + of("design_doc")
            + of("types")
            + of("current_context")
            + of("messages");
        assert_eq!(of("total"), sum, "{window}");
    }
    let phases = log["phases"].as_array().unwrap();
    let testing = phases.iter().find(|row| row["phase"] == "testing").unwrap();
    assert_eq!((&testing["windows"], &testing["messages"]), (&2.into(), &60.into()));
    let of_one = client.ok("session-report", "(:phase :testing :windows 1)");
    assert_eq!(of_one["windows"].as_array().unwrap().len(), 1);
    client.end();
}

#[test]
fn the_default_budget_is_96000_and_settings_and_models_change_it() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    open(&mut client, "u a");
    let mut check = |params: &str, expected: u64| {
        assert_eq!(client.ok("build-context", params)["max_tokens"], expected, "{params}");
    };
    check("nil", 96_000);
    check("(:model \"gpt-4-0613\")", 4_192);
    check("(:max-tokens 77)", 77);
    client.ok("configure-session", "(:max-tokens 5000 :model \"gpt-5\" :strategy :sliding)");
    let window = client.ok("build-context", "nil");
    assert_eq!((&window["max_tokens"], &window["model"]), (&5000.into(), &"gpt-5".into()));
    assert_eq!(window["report"]["strategy"], "sliding");
    client.ok("configure-session", "(:max-tokens 0 :model \"\")");
    let window = client.ok("build-context", "nil");
    assert_eq!((&window["max_tokens"], &window["model"]), (&96_000.into(), &"default".into()));
}

#[test]
fn every_strategy_is_listed_with_the_method_and_keeps_to_the_budget() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let window =
        contexture_program::internals::rpc::methods().find(|it| it.name == "build-window").unwrap();
    let strategy = window.params().iter().find(|param| param.name == "strategy").unwrap();
    let strategies = Json::from(strategy.values.clone());
    assert_eq!(strategies, Json::from(vec!["tiered", "query", "sliding", "importance"]));
    let mut words = String::from("s=10 u=10");
    for number in 0..200 {
        words += &format!(" a>{number}=7 t<{number}=40 a=15 u=5");
    }
    open(&mut client, &words);
    for strategy in ids(&strategies) {
        for budget in [150, 700, 3000] {
            let params = format!("(:strategy :{strategy} :max-tokens {budget} :query \"four\")");
            let window = client.ok("build-context", &params);
            assert!(window["tokens"].as_u64().unwrap() <= budget, "{strategy}");
            check_pairs(&window);
        }
    }
}

/// Every result in a window has its call before it, and every call its result.
#[track_caller]
fn check_pairs(window: &Json) {
    let mut open = Vec::new();
    for part in window["parts"].as_array().unwrap() {
        for call in part["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].clone());
        }
        if part["role"] == "tool" {
            let at = open.iter().position(|id| *id == part["tool_call_id"]);
            open.remove(at.expect("a result has its call"));
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

#[test]
fn a_query_brings_back_what_it_asks_for() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "nil");
    let mut messages = String::from("(:content \"begin\")");
    for number in 0..200 {
        let said = match number {
            60 => "the database password is in vault/prod.toml".to_owned(),
            _ => format!("we talk of something else for the {number}th time, at some length"),
        };
        messages += &format!("(:role :assistant :content \"{said}\")(:content \"go on {number}\")");
    }
    client.ok("add-message", &format!("(:messages ({messages}))"));
    for strategy in ["query", "tiered"] {
        let params = format!(
            "(:strategy :{strategy} :max-tokens 400 :query \"where is the database password?\")"
        );
        let parts = client.ok("build-context", &params)["parts"].to_string();
        assert!(parts.contains("vault/prod.toml"), "{strategy}");
    }
    let parts =
        client.ok("build-context", "(:strategy :sliding :max-tokens 400)")["parts"].to_string();
    assert!(!parts.contains("vault/prod.toml"));
}

#[test]
fn a_summary_has_the_users_words_and_windows_what_the_work_used() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    client.ok("open-session", "nil");
    let filler = "and so on, with many more words that say nothing at all. ".repeat(6);
    let said = [
        ("user", "Build the importer. You must never write outside of /srv/import."),
        ("assistant", "We decided to use SQLite. The timeout is 30 s."),
        (
            "assistant",
            "I ran `cargo test --lib import` and got error: unknown field in src/import/csv.rs",
        ),
        ("user", "TODO: document the limits"),
        ("assistant", "The timeout is now 45 s."),
        ("user", "fine"),
    ];
    let messages: String = said
        .iter()
        .map(|(role, text)| {
            format!("(:role :{role} :content {})", quoted(&format!("{text} {filler}")))
        })
        .collect();
    client.ok("add-message", &format!("(:messages ({messages}))"));
    let first = client.ok("summarize-context", "(:keep-turns 1)");
    let summary = first["summary"].as_str().unwrap();
    assert_eq!(client.ok("context-stats", "nil")["summary"], summary, "it is the one in view");
    assert!(summary.starts_with("[Previous conversation summary: 1 user messages, 3 model responses, 0 tool calls over 2 turns]"), "{summary}");
    for kept in ["## What the user said", "document the limits", "(msg-4)"] {
        assert!(summary.contains(kept), "{kept} is not in\n{summary}");
    }
    assert!(first["tokens_after"].as_u64() < first["tokens_before"].as_u64());
    // A second one folds the first in, and does not grow past its share.
    for round in 0..3 {
        let messages: String = (0..6)
            .map(|n| {
                format!(
                    "(:role :assistant :content {})(:content {})",
                    quoted(&format!("step {round}.{n}: edited src/part{n}.rs. {filler}")),
                    quoted(&format!("go on {filler}"))
                )
            })
            .collect();
        client.ok("add-message", &format!("(:messages ({messages}))"));
        let next = client.ok("summarize-context", "(:keep-turns 1)");
        let summary = next["summary"].as_str().unwrap();
        assert!(summary.contains("document the limits"), "{summary}");
        assert!(summary.len() < 8192 * 4 / 5, "{}", summary.len());
        assert_eq!(summary.matches("[Previous conversation summary").count(), 1);
    }
    let view = client.ok("build-context", "(:max-tokens 2000)");
    assert!(shown(&view).starts_with("summary 1 "), "{}", shown(&view));
    let all = view["parts"].to_string();
    assert!(all.contains("src/import/csv.rs") && all.contains("cargo test --lib import"), "{all}");
    let messages = client.ok("get-messages", "nil");
    let all: Vec<String> =
        (1..=messages.as_array().unwrap().len()).map(|number| number.to_string()).collect();
    let view = client.ok("build-context", "(:max-tokens 50000)");
    assert_eq!(shown(&view), all.join(" "), "a summary takes away nothing that fits");
    let report = view["report"]["parts"].to_string();
    assert!(report.contains("the messages that it stands in for are shown"), "{report}");
    let futile = client.fails("summarize-context", "(:keep-turns 50)");
    assert_eq!(futile.kind(), "not-summarized");
}

#[test]
fn a_history_of_the_clients_own_is_summarized_as_its_source_says() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let mut words = String::from("s=5 u=200");
    for number in 0..9 {
        words += &format!(" a>{number}=50 t<{number}=50 a=50 u=50");
    }
    let done = client.ok("summarize-context", &format!("(:messages {})", history(&words)));
    assert_eq!(done["stats"]["kept_items"], 12);
    let note = done["summary"]["content"].as_str().unwrap();
    assert!(note.starts_with("[Previous conversation summary: "), "{note}");
    assert_eq!(done["summarized"][0]["role"], "system");
    assert_eq!(done["summarized"][1]["content"], note);
    let folded = done["stats"]["summarized_items"].as_u64().unwrap();
    assert_eq!(folded + 12, 38);
    let by_turns = format!("(:keep-turns 5 :messages {})", history(&words));
    let done = client.ok("summarize-context", &by_turns);
    assert_eq!(done["stats"]["kept_items"], 2 + 4 * 4 + 1, "what is never lost, and five turns");
    for method in ["context-stats", "prune-context", "auto-manage-context", "summarize-context"] {
        let error = client.fails(method, "(:session \"a\" :messages ((:content \"u\")))");
        assert_eq!(
            error.message, "messages cannot be combined with the parameter session",
            "{method}"
        );
    }
}

#[test]
fn what_was_left_out_comes_back_whole_and_within_the_budget() {
    let mut client = Home::new().ephemeral(&[]);
    open(&mut client, "u a>1=20 t<1=20 a=60 a=20 u");
    let window = |client: &mut Client, more: &str| {
        let params = format!("(:strategy :sliding :max-tokens 65 :explain t {more})");
        client.ok("build-context", &params)
    };
    let part = |window: &Json, id: &str| {
        let parts = window["report"]["parts"].as_array().unwrap().iter();
        let has = |part: &&Json| ids(&part["ids"]).iter().any(|it| it == id);
        let part = parts.clone().find(has).unwrap();
        (part["fate"].clone(), part["reason"].clone())
    };
    let first = window(&mut client, "");
    assert_eq!(part(&first, "msg-2").0, "dropped");
    let second = window(&mut client, ":restore (\"msg-3\" \"msg-4\")");
    assert!(second["tokens"].as_u64().unwrap() <= 65);
    let shown: Vec<&str> =
        second["parts"].as_array().unwrap().iter().filter_map(|part| part["id"].as_str()).collect();
    assert!(shown.starts_with(&["msg-1", "msg-2", "msg-3"]), "{shown:?}");
    assert_eq!(part(&second, "msg-2"), ("kept".into(), "wanted back by the user".into()));
    let no_room = "wanted back, but there is no room for it";
    assert_eq!(part(&second, "msg-4"), ("dropped".into(), no_room.into()));
    // It is for one window.
    assert_eq!(part(&window(&mut client, ""), "msg-2").0, "dropped");
    let error = client.fails("build-context", "(:restore (\"ctx-1\"))");
    assert_eq!(error.param(), "restore[0]");
}
