//! Shapes of calls, results and turns that programs record.

use super::formats::CURSOR;
use super::*;

#[test]
fn results_that_come_before_their_calls_are_theirs() {
    let item = |kind: &str, rest: &str| {
        format!("{{\"type\":\"response_item\",\"payload\":{{\"type\":\"{kind}\",{rest}}}}}\n")
    };
    let user = |text: &str| item("message", &format!("\"role\":\"user\",\"content\":\"{text}\""));
    let call = |id: &str| {
        item(
            "function_call",
            &format!("\"name\":\"f\",\"arguments\":\"{{}}\",\"call_id\":\"{id}\""),
        )
    };
    let output = |id: &str| {
        item("function_call_output", &format!("\"call_id\":\"{id}\",\"output\":\"of {id}\""))
    };
    check(
        &[user("go"), output("b"), output("a"), call("a"), call("b"), user("on")].concat(),
        &[
            "user: go",
            "assistant:  a=f{}",
            "tool <a>: of a",
            "assistant:  b=f{}",
            "tool <b>: of b",
            "user: on",
        ],
        &[],
    );
    check(
        &[user("go"), call("a"), output("x"), output("a"), output("y")].concat(),
        &["user: go", "assistant:  a=f{}", "tool <a>: of a", "tool <x>: of x", "tool <y>: of y"],
        &["tool result x2 at 3"],
    );
}

#[test]
fn cline_closes_calls_of_the_protocol_with_results_as_text() {
    let text = r##"[{"role":"user","content":[{"type":"text","text":"<task>\nWhich port?\n</task>"},{"type":"text","text":"Files attached by the user:\n\n<file_content path=\"a.md\">\nx\n</file_content>"},{"type":"text","text":"\n\n# task_progress RECOMMENDED\n\nInclude a list."}]},
{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"read_file","input":{"path":"db.toml"}},{"type":"tool_use","id":"c2","name":"my-server__ping","input":{}}]},
{"role":"user","content":[{"type":"text","text":"[my-server__ping for 'db'] Result:\npong"},{"type":"text","text":"[read_file for 'db.toml'] Result:"},{"type":"text","text":"port = 5433"},{"type":"text","text":"# TODO LIST UPDATE REQUIRED - You MUST include it\n\n- [ ] a"},{"type":"text","text":"<environment_details>\nx\n</environment_details>"}]},
{"role":"assistant","content":[{"type":"tool_use","id":"c3","name":"attempt_completion","input":{"result":"Port 5433."}}]},
{"role":"user","content":[{"type":"text","text":"[TASK RESUMPTION] This task was interrupted.\n\nNew message to respond to:\n<user_message>\nand the host?\n</user_message>"}]}]"##;
    let (said, left_out) = shown(text.as_bytes());
    assert_eq!(
        said,
        [
            "user: Which port?",
            r#"assistant: I look. c1=read_file{"path":"db.toml"} c2=my-server__ping{}"#,
            "tool <c2>: pong",
            "tool <c1>: port = 5433",
            r#"assistant:  c3=attempt_completion{"result":"Port 5433."}"#,
            "tool <c3>: [no result was recorded]",
            "user: and the host?",
        ]
    );
    assert_eq!(left_out, ["text in the user's turn x2 at 1", "tool call x1 at 1"]);
}

#[test]
fn cline_tells_of_the_users_words_only_these() {
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read_file","input":{"path":"a"}}]}"#;
    let result =
        r#"{"type":"text","text":"[read_file for 'a'] Result:"},{"type":"text","text":"x"}"#;
    for (before, tag) in [
        ("[TASK RESUMPTION] It was interrupted.", "user_message"),
        ("New message to respond to with plan_mode_respond tool (be sure to):", "user_message"),
        ("New instructions for task continuation:", "user_message"),
        ("The user provided the following feedback:", "feedback"),
    ] {
        for result in ["", result] {
            let said =
                format!(r#"{{"type":"text","text":"{before}\n<{tag}>\nand\n\n<b>?\n</{tag}>"}}"#);
            let comma = if result.is_empty() { "" } else { "," };
            let text = format!(
                r#"[{{"role":"user","content":"go"}},
{call},
{{"role":"user","content":[{result}{comma}{said}]}}]"#
            );
            let (told, _) = shown(text.as_bytes());
            let result = if result.is_empty() { "[no result was recorded]" } else { "x" };
            assert_eq!(told[2..], [&format!("tool <c1>: {result}"), "user: and\n\n<b>?"], "{text}");
        }
    }
    let nothing = "(The user did not provide a new message. Consider asking them.)";
    let text = format!(
        r#"[{{"role":"user","content":"<answer>mine</answer>"}},
{{"role":"assistant","content":"ok"}},
{{"role":"user","content":[{{"type":"text","text":"{nothing}"}}]}}]"#
    );
    assert_eq!(shown(text.as_bytes()).0, ["user: <answer>mine</answer>", "assistant: ok"]);
}

#[test]
fn cursors_text_has_arguments_and_thoughts_of_many_lines() {
    let text = "user:\n<user_query>\nfix it\n</user_query>\n\nassistant:\n[Thinking] The user wants:\n\n1. a\n\
        2. b\n\n```\ncode of a thought\n```\n\nLet me write it.\nNow I write.\n[Tool call] Write\n  path: \
        a.yml\n  contents: version: 1\n  name: x\nuser:\n  path: y\n\nassistant:\nrest\n[Tool call] StrReplace\n  \
        path: b.rs\n  old_string: fn a() {\n}\n  new_string: fn b() {\n  let c: u8;\n}\n  replace_all: \
        true\n\n[Tool result] Write\n\n[Tool result] StrReplace\n\nassistant:\nDone.\n\n```yaml\nuser:\n  name: \
        x\n```\n\nuser:\n<user_query>\nthanks\n</user_query>\n";
    let (said, _) = shown(text.as_bytes());
    assert_eq!(said[0], "user: fix it");
    let write = serde_json::json!({ "path": "a.yml", "contents": "version: 1\n  name: x\nuser:\n  path: y" });
    let replace = serde_json::json!({
        "path": "b.rs",
        "old_string": "fn a() {\n}",
        "new_string": "fn b() {\n  let c: u8;\n}",
        "replace_all": "true",
    });
    // A heading after a blank line counts, also in a file; here it is one.
    assert_eq!(said[1], format!("assistant: Now I write. call-1=Write{write}"));
    assert_eq!(said[2], "tool <call-1>: [no result was recorded]");
    assert_eq!(said[3], format!("assistant: rest call-2=StrReplace{replace}"));
    assert_eq!(said[5], "assistant: Done.\n\n```yaml\nuser:\n  name: x\n```");
    assert_eq!(said[6..], ["user: thanks"]);
}

#[test]
fn cursors_lines_tell_times_and_not_what_was_removed() {
    let text = r#"{"role":"user","message":{"content":[{"type":"text","text":"<timestamp>Monday, May 4, 2026, 12:47 AM (UTC+5:30)</timestamp>\n<user_query>\nWhich port?\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"5433.\n\n[REDACTED]"}],"model":"composer"}}
{"type":"turn_ended","status":"success"}
{"role":"user","message":{"content":[{"type":"text","text":"<timestamp>Monday, May 4, 2026, 12:49 AM (UTC+5:30)</timestamp>\n<system_notification>\nx\n</system_notification>\n<user_query>Briefly inform the user about the task result and perform any follow-up actions (if needed).</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"It ended."}]}}
"#;
    let recorded = read(Cursor::new(text)).unwrap();
    let told: Vec<(String, Option<i64>)> =
        recorded.messages.iter().map(|it| (line(it), it.timestamp)).collect();
    let at = |seconds: i64| Some(1_777_835_820 + seconds);
    assert_eq!(
        told,
        [
            ("user: Which port?".to_owned(), at(0)),
            ("assistant: 5433.".to_owned(), at(0)),
            ("assistant: It ended.".to_owned(), at(120)),
        ]
    );
    assert_eq!(
        (recorded.about.started, recorded.about.model.as_deref()),
        (at(0), Some("composer"))
    );
}

#[test]
fn aiders_command_may_have_lines_and_an_editor_may_space_what_was_typed() {
    let quoted = "# aider chat started at 2026-02-23 00:43:39\n\n> /bin/aider --message \n        1. Read \
        it.\n\n        2. Do it.  \n> Aider v0.86.2  \n> Model: sonnet with diff edit format  \n\n#### 1. Read \
        it.  \n#### 2. Do it.  \n\nDone.\n\n> Tokens: 1k sent, 5 received.  \n";
    let told = read(Cursor::new(quoted)).unwrap();
    assert_eq!(
        told.messages.iter().map(line).collect::<Vec<_>>(),
        ["user: 1. Read it.\n2. Do it.", "assistant: Done."]
    );
    assert_eq!(told.about.model.as_deref(), Some("sonnet"));
    let spaced = "# aider chat started at 2024-08-20 14:08:19\n\n> Aider v0.50.1\n> Use /help\n\n#### /add \
        a.md\n\n> Added a.md to the chat\n\n#### /ask which port?\n\n####\n\n#### and why?\n\n#### which \
        port?\n\n####\n\n#### and why?\n\n#### Step 1\n\n5433.\n\n#### Step 2\n\nBecause.\n\n> Tokens: 1k sent, 5 \
        received.\n\n#### thanks\n\nYou are welcome.\n";
    let told = read(Cursor::new(spaced)).unwrap();
    let told: Vec<String> = told.messages.iter().map(line).collect();
    assert_eq!(told.last().unwrap(), "assistant: You are welcome.");
    assert_eq!(told[told.len() - 2], "user: thanks");
    assert!(told[1].contains("#### Step 2\n\nBecause."), "{told:?}");
    assert!(told[0].starts_with("user: which port?\n\nand why?"), "{told:?}");
}

#[test]
fn copilot_tells_a_call_once_whichever_event_comes_first() {
    let event = |kind: &str, data: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"data\":{data},\"id\":\"i\",\"timestamp\":\"2026-02-11T20:36:45Z\"}}\n"
        )
    };
    let start =
        event("tool.execution_start", r#"{"toolCallId":"c1","toolName":"read","arguments":{}}"#);
    let asked = event(
        "assistant.message",
        r#"{"content":"I look.","toolRequests":[{"toolCallId":"c1","name":"read","arguments":{}}]}"#,
    );
    let complete =
        event("tool.execution_complete", r#"{"toolCallId":"c1","result":{"content":"five"}}"#);
    let user = event("user.message", r#"{"content":"go"}"#);
    let orders =
        [[&asked, &start, &complete], [&start, &asked, &complete], [&start, &complete, &asked]];
    for order in orders {
        let text = user.clone() + &order.map(String::as_str).concat() + &start;
        let told = read(Cursor::new(&text)).unwrap().messages;
        let calls: usize = told.iter().map(|it| it.tool_calls.len()).sum();
        let results = told.iter().filter(|it| it.tool_call_id.is_some());
        assert_eq!((calls, results.count()), (1, 1), "{told:?}");
        assert!(told.iter().any(|it| it.content == "five"), "{told:?}");
    }
    let skill = event("user.message", r#"{"content":"Use the skill.","source":"skill-pdf"}"#);
    let told = read(Cursor::new(user + &skill + &asked)).unwrap().messages;
    assert_eq!(told.iter().filter(|it| it.role == Role::User).count(), 1);
}

#[test]
fn qwen_tells_what_was_typed_and_leaves_out_notices() {
    let record = |uuid: u8, rest: &str| {
        format!(
            "{{\"uuid\":\"{uuid}\",\"parentUuid\":\"{}\",\"sessionId\":\"q\",{rest}}}",
            uuid - 1
        )
    };
    let user = |text: &str, more: &str| {
        format!(
            "\"type\":\"user\",\"message\":{{\"role\":\"user\",\"parts\":[{{\"text\":\"{text}\"}}]}}{more}"
        )
    };
    let text = [
        record(
            1,
            &user("see a.md and all of it", ",\"systemPayload\":{\"displayText\":\"see @a.md\"}"),
        ),
        record(2, r#""type":"assistant","message":{"parts":[{"text":"hm","thought":true}]}"#),
        record(2, r#""type":"assistant","message":{"parts":[{"text":"I see."}]}"#),
        record(3, &user("An agent ended.", ",\"subtype\":\"notification\"")),
        record(4, &user("go on", ",\"subtype\":\"mid_turn_user_message\"")),
    ];
    // Two records on one line: the program was ended while it wrote.
    let glued = [text[0].clone() + &text[1], text[2..].join("\n")].join("\n");
    for text in [text.join("\n"), glued] {
        let (said, _) = shown(text.as_bytes());
        assert_eq!(said, ["user: see @a.md", "assistant: I see.", "user: go on"]);
    }
}

#[test]
fn what_other_programs_say_to_claude_code_is_not_the_users_word() {
    let said = |kind: &str, content: &str| {
        format!(
            "{{\"type\":\"user\",\"sessionId\":\"s\",{kind}\"message\":{{\"role\":\"user\",\"content\":\"{content}\"}}}}\n"
        )
    };
    let text = [
        said("", "<system-reminder>x</system-reminder>"),
        said("\"origin\":{\"kind\":\"peer\"},", "from another session"),
        said("\"origin\":{\"kind\":\"task-notification\"},", "a task ended"),
        said("\"origin\":{\"kind\":\"human\"},", "Which port?"),
        said("", "Another Claude session sent a message: x"),
    ];
    let (said, _) = shown(text.concat().as_bytes());
    assert_eq!(said, ["user: Which port?"]);
}

#[test]
fn turns_that_codex_undid_are_not_part_of_the_session() {
    let item = |payload: &str| format!("{{\"type\":\"response_item\",\"payload\":{payload}}}\n");
    let said = |role: &str, text: &str| {
        item(&format!("{{\"type\":\"message\",\"role\":\"{role}\",\"content\":\"{text}\"}}"))
    };
    let undo =
        "{\"type\":\"event_msg\",\"payload\":{\"type\":\"thread_rolled_back\",\"num_turns\":1}}\n";
    let begun = said("user", "one") + &said("assistant", "yes");
    let text =
        begun + &said("user", "two") + &said("assistant", "no") + undo + &said("user", "three");
    let (said, left_out) = shown(text.as_bytes());
    assert_eq!(said, ["user: one", "assistant: yes", "user: three"]);
    assert_eq!(left_out, ["record x2 at 3", "event_msg x1 at 5"]);
}

#[test]
fn a_subagent_of_cursor_belongs_to_its_parent() {
    let text = CURSOR.replace("Which port?", "Look for it.");
    let mut reader = Reader::new(Cursor::new(text), Mark::default());
    reader.set_file("/home/me/.cursor/projects/srv/agent-transcripts/u-1/subagents/u-2.jsonl");
    let first = reader.next().unwrap().unwrap();
    let about = reader.about();
    assert_eq!((about.id.as_deref(), about.parent.as_deref()), (Some("u-2"), Some("u-1")));
    assert_eq!(line(&first), "assistant: Look for it.");
}

#[test]
fn results_in_cursors_lines_are_those_of_the_calls_before() {
    let text = r#"{"role":"user","message":{"content":[{"type":"text","text":"go"}]}}
{"role":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","name":"a","input":{}},{"type":"tool_call","name":"b","input":{}}]}}
{"role":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"of a"},{"type":"tool-result","content":[{"type":"text","text":"of b"}]}]}}
{"role":"assistant","message":{"content":[{"type":"tool_use","name":"c","input":{}}]}}
{"role":"user","message":{"content":[{"type":"text","text":"stop"}]}}
"#;
    check(
        text,
        &[
            "user: go",
            "assistant:  call-1=a{} call-2=b{}",
            "tool <call-1>: of a",
            "tool <call-2>: of b",
            "assistant:  call-3=c{}",
            "tool <call-3>: [no result was recorded]",
            "user: stop",
        ],
        &["thinking x1 at 2", "tool call x1 at 5"],
    );
}

#[test]
fn cline_tells_what_each_query_of_a_call_gave() {
    let text = r#"{"sessionId":"s","messages":[{"role":"user","content":"go"},
{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read_files","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"query":"a","result":"one","success":true},{"query":"b","error":"gone","success":false}]}]}]}"#;
    let (said, _) = shown(text.as_bytes());
    assert_eq!(said[2], "tool <c1>: one\n\ngone");
}

#[test]
fn what_aider_asks_of_its_documentation_is_not_the_users_word() {
    let text = "# aider chat started at 2026-02-12 20:36:45\n\n#### /help which port?  \n\n#### # Question: \
        which port?  \n####   \n#### # Relevant docs:  \n#### <doc>  \n\n5433.\n\n#### /ask  why?  \n\n####  \
        why?  \n\nBecause.\n";
    let (said, _) = shown(text.as_bytes());
    assert_eq!(
        said,
        ["user: which port?", "assistant: 5433.", "user: why?", "assistant: Because."]
    );
}

#[test]
fn tags_around_a_picture_are_not_the_users_word() {
    let text = r#"{"type":"session_meta","payload":{"id":"c"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<image name=[Image #1]>"},{"type":"input_image","image_url":"data:"},{"type":"input_text","text":"</image>"},{"type":"input_text","text":"[Image #1] why?"}]}}
"#;
    let recorded = read(Cursor::new(text)).unwrap();
    assert_eq!(line(&recorded.messages[0]), "user: [image]\n\n[Image #1] why?");
    assert_eq!(recorded.about.question.as_deref(), Some("why?"));
}

#[test]
fn events_that_the_user_undid_in_copilot_are_not_part_of_the_session() {
    let event = |kind: &str, id: &str, data: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"data\":{data},\"id\":\"{id}\",\"timestamp\":\"2026-02-11T20:36:45Z\"}}\n"
        )
    };
    let said = |kind: &str, id: &str, text: &str| {
        event(&format!("{kind}.message"), id, &format!("{{\"content\":\"{text}\"}}"))
    };
    let begun = said("user", "1", "one") + &said("assistant", "2", "yes");
    let left = said("user", "3", "two") + &said("assistant", "4", "no");
    for data in [r#"{"upToEventId":"3"}"#, r#"{"upToEventId":"3","eventIds":["3","4"]}"#] {
        let undo = event("session.snapshot_rewind", "5", data);
        let text = [&*begun, &*left, &*undo, &*said("user", "6", "three")].concat();
        let (said, _) = shown(text.as_bytes());
        assert_eq!(said, ["user: one", "assistant: yes", "user: three"]);
    }
}

#[test]
fn one_message_in_an_unexpected_form_takes_no_other_away() {
    let opencode = r#"{"info":{"id":"s"},"messages":[{"info":{"role":"user"},"parts":[{"type":"text","text":"go"},{"type":"text","text":7}]},
{"info":{"role":"assistant"},"parts":[{"type":"tool","callID":"c1","tool":"read","state":{"input":{},"output":{"output":"five"}}}]},
{"info":7,"parts":[]},{"info":{"role":"user"},"parts":[{"type":"text","text":"on"}]}]}"#;
    let cline = r#"[{"role":"user","content":"go"},{"role":7},
{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"five"}]},{"role":"user","content":"on"}]"#;
    let gemini = r#"{"sessionId":"g","projectHash":"a","messages":[{"id":"1","type":"user","content":"go"},{"id":7},
{"id":"2","type":"gemini","content":"","toolCalls":[{"id":"c1","name":"read","args":{},"result":[{"functionResponse":{"id":"c1","response":{"output":"five"}}}]}]},
{"id":"3","type":"user","content":"on"}]}"#;
    for text in [opencode, cline, gemini] {
        let (said, left_out) = shown(text.as_bytes());
        assert_eq!(said, ["user: go", "assistant:  c1=read{}", "tool <c1>: five", "user: on"]);
        assert!(left_out.iter().any(|it| it.starts_with("message x1")), "{left_out:?}");
    }
}
