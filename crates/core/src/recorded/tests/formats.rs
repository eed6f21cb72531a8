//! Recordings of one small session in the format of each agent.

use super::*;

/// What every recording below tells: a question, a call with its result, and an answer.
const TOLD: [&str; 4] = [
    "user: Which port?",
    r#"assistant: I look. c1=read{"path":"db.toml"}"#,
    "tool <c1>: port = 5433",
    "assistant: Port 5433.",
];

#[track_caller]
fn is_told(format: Format, text: &str) -> About {
    let recorded = read(Cursor::new(text)).unwrap();
    assert_eq!(recorded.format, format);
    assert_eq!(recorded.messages.iter().map(line).collect::<Vec<_>>(), TOLD);
    assert_eq!(recorded.about.question.as_deref(), Some("Which port?"));
    // Read again from the beginning, all is known.
    let mut reader = Reader::new(Cursor::new(text), Mark::default());
    while reader.next().unwrap().is_some() {}
    let mut again = Reader::new(Cursor::new(text), reader.mark().anew());
    assert_eq!(again.next().unwrap(), None);
    recorded.about
}

fn facts(about: &About) -> [Option<&str>; 4] {
    [about.id.as_deref(), about.project.as_deref(), about.model.as_deref(), about.title.as_deref()]
}

pub(super) const GEMINI: &str = r#"{"sessionId":"g-1","projectHash":"ab","startTime":"2026-02-11T20:36:45.000Z","lastUpdated":"2026-02-11T20:37:45.000Z","kind":"main"}
{"id":"0","timestamp":"2026-02-11T20:36:45.000Z","type":"info","content":"Update available"}
{"id":"1","timestamp":"2026-02-11T20:36:46.000Z","type":"user","content":[{"text":"Which port?\nWith a whole file"}],"displayContent":[{"text":"Which port?"}]}
{"id":"2","timestamp":"2026-02-11T20:36:47.000Z","type":"gemini","content":"I look.","thoughts":[],"model":"gemini-3-pro"}
{"id":"2","timestamp":"2026-02-11T20:36:47.000Z","type":"gemini","content":"I look.","thoughts":[{"subject":"s"}],"model":"gemini-3-pro","toolCalls":[{"id":"c1","name":"read","args":{"path":"db.toml"},"status":"success","timestamp":"2026-02-11T20:36:48.000Z","result":[{"functionResponse":{"id":"c1","name":"read","response":{"output":"port = 5433"}}}]}]}
{"id":"3","timestamp":"2026-02-11T20:36:49.000Z","type":"user","content":"rewound"}
{"$rewindTo":"3"}
{"$set":{"lastUpdated":"2026-02-11T20:37:00.000Z","directories":["/srv/db"],"summary":"Ports"}}
{"id":"4","timestamp":"2026-02-11T20:36:50.000Z","type":"gemini","content":[{"text":"Port 5433."}],"model":"gemini-3-pro"}
"#;

#[test]
fn gemini_is_read_as_json_lines() {
    let about = is_told(Format::Gemini, GEMINI);
    let expected = [Some("g-1"), Some("/srv/db"), Some("gemini-3-pro"), Some("Ports")];
    assert_eq!((facts(&about), about.started), (expected, Some(1_770_842_205)));
}

#[test]
fn gemini_is_read_as_json() {
    let lines: Vec<&str> = GEMINI.lines().collect();
    let messages = [lines[2], lines[4], lines[8]].join(",\n    ");
    let facts = lines[0].trim_end_matches('}');
    let text = format!("{facts},\"messages\":[{messages}]}}");
    is_told(Format::Gemini, &text);
    // As Gemini CLI writes it, on many lines.
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    is_told(Format::Gemini, &serde_json::to_string_pretty(&value).unwrap());
    let early = text.replace("\"gemini\"", "\"qwen\"").replace("\"kind\":\"main\",", "");
    is_told(Format::Gemini, &early);
}

pub(super) const QWEN: &str = r#"{"uuid":"1","parentUuid":null,"sessionId":"q-1","timestamp":"2026-02-11T20:36:45.000Z","type":"user","cwd":"/srv/db","version":"0.4.0","message":{"role":"user","parts":[{"text":"Which port?"}]}}
{"uuid":"x","parentUuid":"1","sessionId":"q-1","timestamp":"2026-02-11T20:36:46.000Z","type":"assistant","message":{"role":"model","parts":[{"text":"rewound"}]}}
{"uuid":"2","parentUuid":"1","sessionId":"q-1","timestamp":"2026-02-11T20:36:46.000Z","type":"assistant","model":"qwen3-coder","message":{"role":"model","parts":[{"text":"hm","thought":true},{"text":"I look."},{"functionCall":{"id":"c1","name":"read","args":{"path":"db.toml"}}}]}}
{"uuid":"3","parentUuid":"2","sessionId":"q-1","timestamp":"2026-02-11T20:36:47.000Z","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"read","response":{"output":"port = 5433"}}}]},"toolCallResult":{"callId":"c1","status":"success"}}
{"uuid":"4","parentUuid":"3","sessionId":"q-1","timestamp":"2026-02-11T20:36:47.000Z","type":"system","subtype":"ui_telemetry"}
{"uuid":"5","parentUuid":"4","sessionId":"q-1","timestamp":"2026-02-11T20:36:48.000Z","type":"assistant","model":"qwen3-coder","message":{"role":"model","parts":[{"text":"Port 5433."}]}}
"#;

#[test]
fn qwen_is_read_without_what_was_rewound() {
    let about = is_told(Format::Qwen, QWEN);
    assert_eq!(facts(&about), [Some("q-1"), Some("/srv/db"), Some("qwen3-coder"), None]);
}

pub(super) const PI: &str = r#"{"type":"session","version":3,"id":"p-1","timestamp":"2026-02-11T20:36:45.000Z","cwd":"/srv/db"}
{"type":"model_change","id":"m","parentId":null,"timestamp":"2026-02-11T20:36:45.000Z","provider":"anthropic","modelId":"sonnet"}
{"type":"message","id":"1","parentId":"m","timestamp":"2026-02-11T20:36:46.000Z","message":{"role":"user","content":[{"type":"text","text":"Which port?"}]}}
{"type":"message","id":"x","parentId":"1","timestamp":"2026-02-11T20:36:46.000Z","message":{"role":"assistant","content":[{"type":"text","text":"rewound"}]}}
{"type":"message","id":"2","parentId":"1","timestamp":"2026-02-11T20:36:47.000Z","message":{"role":"assistant","model":"sonnet","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look."},{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"db.toml"}}]}}
{"type":"message","id":"3","parentId":"2","timestamp":"2026-02-11T20:36:48.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"port = 5433"}],"isError":false}}
{"type":"session_info","id":"4","parentId":"3","timestamp":"2026-02-11T20:36:48.000Z","name":"Ports"}
{"type":"message","id":"5","parentId":"4","timestamp":"2026-02-11T20:36:49.000Z","message":{"role":"assistant","model":"sonnet","content":[{"type":"text","text":"Port 5433."}]}}
"#;

#[test]
fn pi_is_read_without_what_was_rewound() {
    let about = is_told(Format::Pi, PI);
    assert_eq!(facts(&about), [Some("p-1"), Some("/srv/db"), Some("sonnet"), Some("Ports")]);
    let early: String =
        PI.lines().filter(|line| !line.contains("rewound")).collect::<Vec<_>>().join("\n");
    let early = early.replace(",\"version\":3", "").replace("\"parentId\"", "\"was\"");
    is_told(Format::Pi, &early);
}

pub(super) const COPILOT: &str = r#"{"type":"session.start","data":{"sessionId":"k-1","version":1,"producer":"copilot-agent","selectedModel":"gpt-5","context":{"cwd":"/srv/db"}},"id":"0","timestamp":"2026-02-11T20:36:45.000Z","parentId":null}
{"type":"user.message","data":{"content":"Which port?","transformedContent":"<current_datetime>x</current_datetime>\n\nWhich port?"},"id":"1","timestamp":"2026-02-11T20:36:45.000Z","parentId":"0"}
{"type":"assistant.turn_start","data":{"turnId":"0"},"id":"2","timestamp":"2026-02-11T20:36:45.000Z","parentId":"1"}
{"type":"assistant.message","data":{"messageId":"m","content":"I look.","toolRequests":[{"toolCallId":"c1","name":"read","arguments":{"path":"db.toml"},"type":"function"}]},"id":"3","timestamp":"2026-02-11T20:36:46.000Z","parentId":"2"}
{"type":"tool.execution_start","data":{"toolCallId":"c1","toolName":"read","arguments":{"path":"db.toml"}},"id":"4","timestamp":"2026-02-11T20:36:46.000Z","parentId":"3"}
{"type":"assistant.message","data":{"parentToolCallId":"c1","content":"of a subagent"},"id":"s","timestamp":"2026-02-11T20:36:46.000Z","parentId":"4"}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"port = 5433","detailedContent":"x"}},"id":"5","timestamp":"2026-02-11T20:36:47.000Z","parentId":"4"}
{"type":"assistant.message","data":{"messageId":"n","content":"Port 5433.","toolRequests":[]},"id":"6","timestamp":"2026-02-11T20:36:48.000Z","parentId":"5"}
"#;

#[test]
fn copilot_is_read() {
    let about = is_told(Format::Copilot, COPILOT);
    assert_eq!(facts(&about), [Some("k-1"), Some("/srv/db"), Some("gpt-5"), None]);
}

#[test]
fn opencode_is_read_up_to_where_the_user_went_back() {
    let text = r#"{"info":{"id":"ses_1","parentID":null,"title":"Ports","directory":"/srv/db","time":{"created":1770842205000},"revert":{"messageID":"msg_4"}},
 "messages":[
  {"info":{"id":"msg_1","role":"user","time":{"created":1770842205000}},"parts":[{"type":"text","text":"Which port?"},{"type":"text","text":"Called the tool","synthetic":true}]},
  {"info":{"id":"msg_2","role":"assistant","time":{"created":1770842206000},"modelID":"opus","path":{"cwd":"/srv/db"}},"parts":[{"type":"step-start"},{"type":"reasoning","text":"hm"},{"type":"text","text":"I look."},{"type":"tool","callID":"c1","tool":"read","state":{"status":"completed","input":{"path":"db.toml"},"output":"port = 5433"}},{"type":"text","text":"Port 5433."}]},
  {"info":{"id":"msg_4","role":"user","time":{"created":1770842207000}},"parts":[{"type":"text","text":"rewound"}]}]}"#;
    let about = is_told(Format::Opencode, text);
    assert_eq!(facts(&about), [Some("ses_1"), Some("/srv/db"), Some("opus"), Some("Ports")]);
    for (recorded, said) in [
        (r#"\"Which port?\""#, "Which port?"),
        (r#"\"Which \\\"port\\\" now?\""#, "Which \"port\" now?"),
        (r#"\"Which?\" or \"what?\""#, "\"Which?\" or \"what?\""),
        (r#"\"Which?\""#, "\"Which?\""),
    ] {
        let text = text.replace("Which port?", recorded);
        let told = read(Cursor::new(text)).unwrap();
        assert_eq!(line(&told.messages[0]), format!("user: {said}"));
    }
    let child = text.replace("\"parentID\":null", "\"parentID\":\"ses_0\"");
    let read = read(Cursor::new(child)).unwrap();
    assert_eq!(read.about.parent.as_deref(), Some("ses_0"));
    assert_eq!(line(&read.messages[0]), "assistant: Which port?");
}

pub(super) const CURSOR: &str = r#"{"role":"user","message":{"content":[{"type":"text","text":"<user_query>\nWhich port?\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"read","input":{"path":"db.toml"}}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"Port 5433."}]}}
"#;

#[test]
fn cursor_is_read_as_json_lines_without_results() {
    let recorded = read(Cursor::new(CURSOR)).unwrap();
    assert_eq!(recorded.format, Format::Cursor);
    let told: Vec<String> = recorded.messages.iter().map(line).collect();
    assert_eq!(told[0], TOLD[0]);
    assert!(told[1].starts_with("assistant: I look. ") && told[1].contains("=read{"), "{told:?}");
    assert!(told[2].ends_with(": [no result was recorded]"), "{told:?}");
    assert_eq!(told[3], TOLD[3]);
    let mut reader = Reader::new(Cursor::new(CURSOR), Mark::default());
    reader.set_file("/home/me/.cursor/projects/srv-db/agent-transcripts/u-1/u-1.jsonl");
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.about().id.as_deref(), Some("u-1"));
}

#[test]
fn cursor_is_read_as_text() {
    check(
        "user:\n<user_query>\nWhich port?\n</user_query>\n\nassistant:\n[Thinking] hm\n  more\nI look.\n\
         [Tool call] read\n  path: db.toml\n\n[Tool result] read\n  port = 5433\n\nassistant:\nPort 5433.\n",
        &[
            TOLD[0],
            r#"assistant: I look. call-1=read{"path":"db.toml"}"#,
            "tool <call-1>: port = 5433",
            TOLD[3],
        ],
        &["text in the user's turn x1 at 1", "thinking x1 at 6"],
    );
}

#[test]
fn a_thought_in_cursors_text_ends_the_text_or_result_before_it() {
    check(
        "user:\n<user_query>\nWhich port?\n</user_query>\n\nassistant:\nI look.\n[Thinking] hm\n\
         [Tool call] read\n  path: db.toml\n\n[Tool result] read\nport = 5433\n[Thinking] so\n\n\
         assistant:\nPort 5433.\n",
        &[
            TOLD[0],
            r#"assistant: I look. call-1=read{"path":"db.toml"}"#,
            "tool <call-1>: port = 5433",
            TOLD[3],
        ],
        &["text in the user's turn x1 at 1", "thinking x2 at 6"],
    );
}

#[test]
fn cline_is_read_with_calls_of_the_protocol() {
    let text = r#"[
  {"role":"user","content":[{"type":"text","text":"<task>\nWhich port?\n</task>"},{"type":"text","text":"<environment_details>\n# Current Working Directory (/srv/db) Files\ndb.toml\n</environment_details>"}],"ts":1770842205000},
  {"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"read","input":{"path":"db.toml"}}],"modelInfo":{"modelId":"opus"}},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"port = 5433"}]},
  {"role":"assistant","content":[{"type":"text","text":"Port 5433."}]}
]"#;
    let about = is_told(Format::Cline, text);
    assert_eq!(facts(&about), [None, Some("/srv/db"), Some("opus"), None]);
    assert_eq!(about.started, Some(1_770_842_205));
    let session = format!("{{\"version\":1,\"sessionId\":\"s-1\",\"messages\":{text}}}");
    assert_eq!(facts(&is_told(Format::Cline, &session))[0], Some("s-1"));
    let mut reader = Reader::new(Cursor::new(text), Mark::default());
    reader.set_file("/x/tasks/1770842205123/api_conversation_history.json");
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.about().id.as_deref(), Some("1770842205123"));
}

#[test]
fn cline_is_read_with_calls_in_tags() {
    let text = r#"[{"role":"user","content":[{"type":"text","text":"<task>\nWhich port?\n</task>"}]},
{"role":"assistant","content":[{"type":"text","text":"I look.\n\n<read_file>\n<path>db.toml</path>\n</read_file>"}]},
{"role":"user","content":[{"type":"text","text":"[read_file for 'db.toml'] Result:"},{"type":"text","text":"port = 5433"},{"type":"text","text":"<environment_details>\n# Mode\n</environment_details>"}]},
{"role":"assistant","content":"It is `<read_file>` that told.\n<attempt_completion>\n<result>\nPort 5433.\n</result>\n</attempt_completion>"},
{"role":"user","content":[{"type":"text","text":"[attempt_completion] Result:"},{"type":"text","text":"<feedback>\nand the host?\n</feedback>"}]}]"#;
    let recorded = read(Cursor::new(text)).unwrap();
    let told: Vec<String> = recorded.messages.iter().map(line).collect();
    assert_eq!(told[1], r#"assistant: I look. line-1-read_file=read_file{"path":"db.toml"}"#);
    assert_eq!(told[2], "tool <line-1-read_file>: port = 5433");
    let done = r#"line-2-attempt_completion=attempt_completion{"result":"Port 5433."}"#;
    assert_eq!(told[3], format!("assistant: It is `<read_file>` that told. {done}"));
    assert!(told[4].starts_with("tool <line-2-attempt_completion>"), "{told:?}");
    assert_eq!(told[5], "user: and the host?");
}

pub(super) const AIDER: &str = "
# aider chat started at 2026-02-11 20:36:45

> Aider v0.86.2  
> Model: sonnet with diff edit format  

#### /add db.toml  
> Added db.toml to the chat.  

#### Which port?  
#### And why?  

<thinking-content-7bb>
hm
</thinking-content-7bb>

#### No heading of the user
> quoted
Port 5433.

> Tokens: 1.8k sent, 653 received.  

# aider chat started at 2026-02-12 20:36:45

#### /ask and the host?  

db1
";

#[test]
fn aider_is_read_chat_by_chat() {
    let chats = chats(AIDER);
    assert_eq!(chats.len(), 2);
    let first = read(Cursor::new(&chats[0].1)).unwrap();
    assert_eq!(first.format, Format::Aider);
    assert_eq!(
        first.messages.iter().map(line).collect::<Vec<_>>(),
        [
            "user: Which port?\nAnd why?",
            "assistant: #### No heading of the user\n> quoted\nPort 5433."
        ]
    );
    assert_eq!(first.about.model.as_deref(), Some("sonnet"));
    assert_eq!(first.about.started, Some(1_770_842_205));
    let second = read(Cursor::new(&chats[1].1)).unwrap();
    assert_eq!(line(&second.messages[0]), "user: and the host?");
    // An editor removed the spaces at the ends of lines.
    let bare: String = chats[1].1.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    assert_eq!(read(Cursor::new(bare)).unwrap().messages, second.messages);
    // Another removed them only at the ends of paragraphs. Here aider wrote the question twice.
    let formatted = "# aider chat started at 2026-02-12 20:36:45\n\n> Aider v0.50.1  \n> Repo-map: \
        none\n\n#### /ask and  \n#### the host?\n\n#### and  \n#### the host?\n\ndb1\n\n#### and  \n#### \
        the host?\n\ndb1\n";
    let told = read(Cursor::new(formatted)).unwrap();
    assert_eq!(
        told.messages.iter().map(line).collect::<Vec<_>>(),
        ["user: and\nthe host?", "assistant: db1", "user: and\nthe host?", "assistant: db1"]
    );
}

#[test]
fn what_a_program_says_for_the_user_is_not_the_users_word() {
    // aider's architect hands its answer on to the model that edits.
    let aider = "# aider chat started at 2026-02-12 20:36:45\n\n#### the host?  \n\nSet it\nto db1.\n\n\
        #### Set it to db1.  \n\nDone.\n";
    let told = read(Cursor::new(aider)).unwrap();
    assert_eq!(
        told.messages.iter().map(line).collect::<Vec<_>>(),
        ["user: the host?", "assistant: Set it\nto db1.", "assistant: Done."]
    );
    let cursor = r#"{"role":"user","message":{"content":[{"type":"text","text":"<timestamp>Friday, May 8, 2026</timestamp>\n<image_files>\n1. a.png\n</image_files>\n<user_query>\nWhich port?\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"5433."}]}}
"#;
    let told = read(Cursor::new(cursor)).unwrap();
    assert_eq!(line(&told.messages[0]), "user: Which port?");
    // A branch of pi begins with messages that are older than its heading.
    let pi = r#"{"type":"session","id":"s-1","timestamp":"2026-02-12T10:00:00.000Z","cwd":"/srv","branchedFrom":"/x/2026_s-0.jsonl"}
{"type":"message","timestamp":"2026-02-11T10:00:00.000Z","message":{"role":"user","content":"Which port?"}}
"#;
    let told = read(Cursor::new(pi)).unwrap();
    assert_eq!(told.about.forked_from.as_deref(), Some("s-0"));
    assert_eq!(told.about.started, told.messages[0].timestamp);
}

#[test]
fn a_rollout_of_one_object_is_read() {
    let text = r#"{
  "session": {"timestamp": "2025-04-20T10:00:00.000Z", "id": "c-0", "instructions": ""},
  "items": [
    {"role": "user", "content": [{"type": "input_text", "text": "Which port?"}], "type": "message"},
    {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
    {"type": "function_call", "name": "read", "call_id": "c1", "arguments": "{\"path\":\"db.toml\"}"},
    {"type": "function_call_output", "call_id": "c1", "output": "{\"output\":\"port = 5433\"}"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Port 5433."}]}
  ]
}"#;
    let about = is_told(Format::Codex, text);
    assert_eq!((about.id.as_deref(), about.started), (Some("c-0"), Some(1_745_143_200)));
    is_told(Format::Codex, &text.replace('\n', ""));
}

#[test]
fn what_no_agent_wrote_is_refused() {
    for text in [
        "{\n  \"name\": \"app\",\n  \"version\": \"1.0.0\"\n}\n",
        "[{\"id\":1},{\"id\":2}]",
        "{\"messages\":[{\"text\":\"hi\"}]}",
        "{\"sessionId\":\"s\",\"startTime\":\"2026-02-11T20:36:45Z\"}\n{\"type\":\"user\"}\n",
        "user:\nname: me\n",
    ] {
        assert!(matches!(read(Cursor::new(text)), Err(RecordingError::Unknown)), "{text}");
    }
}
