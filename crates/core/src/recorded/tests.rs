//! Tests of the reader, over small recordings of each format.

use std::io::Cursor;

use super::*;

mod formats;
mod hostile;
mod shapes;
mod variants;

/// Returns the messages, each as a line, and the records that were left out.
fn shown(text: &[u8]) -> (Vec<String>, Vec<String>) {
    let recorded = read(Cursor::new(text)).unwrap();
    (recorded.messages.iter().map(line).collect(), left_out(&recorded.left_out))
}

fn line(message: &RecordedMessage) -> String {
    let calls = message.tool_calls.iter();
    let calls: String = calls.map(|it| format!(" {}={}{}", it.id, it.name, it.arguments)).collect();
    let answers = message.tool_call_id.as_ref().map_or(String::new(), |id| format!(" <{id}>"));
    format!("{}{answers}: {}{calls}", message.role, message.content)
}

fn left_out(entries: &[LeftOut]) -> Vec<String> {
    entries.iter().map(|it| format!("{} x{} at {}", it.kind, it.count, it.first_line)).collect()
}

#[track_caller]
fn check(text: &str, messages: &[&str], left_out: &[&str]) {
    let (said, not_said) = shown(text.as_bytes());
    assert_eq!(said, messages);
    assert_eq!(not_said, left_out);
}

const CLAUDE: &str = r#"{"type":"file-history-snapshot","messageId":"m"}
{"type":"user","uuid":"u1","sessionId":"s-1","cwd":"/home/me/app","timestamp":"2026-02-11T20:36:45.618Z","isSidechain":false,"message":{"role":"user","content":"Which port?"}}
{"type":"assistant","uuid":"a1","timestamp":"2026-02-11T20:36:47Z","message":{"id":"msg_1","role":"assistant","content":[{"type":"thinking","thinking":"hm"}]}}
{"type":"assistant","uuid":"a2","timestamp":"2026-02-11T20:36:47Z","message":{"id":"msg_1","role":"assistant","content":[{"type":"text","text":"I look."}]}}
{"type":"assistant","uuid":"a3","timestamp":"2026-02-11T20:36:48Z","message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cat a"}}]}}
{"type":"progress","uuid":"p1","data":{"type":"agent_progress"}}
{"type":"assistant","uuid":"a4","timestamp":"2026-02-11T20:36:48Z","message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"b"}}]}}
{"type":"user","uuid":"u2","timestamp":"2026-02-11T20:36:49Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"five"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}]}}
{"type":"user","uuid":"u3","timestamp":"2026-02-11T20:36:50Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"port 5433","is_error":false}]}}
{"type":"user","uuid":"u4","isMeta":true,"message":{"role":"user","content":[{"type":"text","text":"Skill: ports"}]}}
{"type":"attachment","uuid":"q1","attachment":{"type":"queued_command","commandMode":"prompt","prompt":"and the host?"}}
{"type":"user","uuid":"u3","message":{"role":"user","content":"told twice"}}
{"type":"user","uuid":"x1","isSidechain":true,"message":{"role":"user","content":"for a subagent"}}
{"type":"system","subtype":"compact_boundary","content":"Conversation compacted"}
{"type":"user","uuid":"u5","isCompactSummary":true,"message":{"role":"user","content":"This session is being continued"}}
{"type":"assistant","uuid":"a5","message":{"id":"msg_2","content":[{"type":"tool_use","id":"t3","name":"Bash","input":{}},{"type":"hologram"}]}}
{"type":"assistant","uuid":"a6","message":{"id":"msg_3","content":"5433 on db1"}}
{"type":"custom-title","customTitle":"Ports"}
{"type":"summary","summary":"Other"}
"#;

#[test]
fn claude_code_is_read_with_its_pieces_calls_and_results() {
    check(
        CLAUDE,
        &[
            "user: Which port?",
            r#"assistant: I look. t1=Bash{"command":"cat a"} t2=Read{"file_path":"b"}"#,
            "tool <t2>: five\n\n[image: image/png]",
            "tool <t1>: port 5433\n\nSkill: ports",
            "user: and the host?",
            "assistant:  t3=Bash{}",
            "tool <t3>: [no result was recorded]",
            "assistant: 5433 on db1",
        ],
        &[
            "file-history-snapshot x1 at 1",
            "thinking x1 at 3",
            "progress x1 at 6",
            "image x1 at 8",
            "repeated record x1 at 12",
            "sidechain x1 at 13",
            "compact_boundary notice x1 at 14",
            "compaction x1 at 15",
            "hologram block x1 at 16",
            "tool call x1 at 17",
        ],
    );
    let recorded = read(Cursor::new(CLAUDE)).unwrap();
    let about = About {
        title: Some("Ports".to_owned()),
        question: Some("Which port?".to_owned()),
        project: Some("/home/me/app".to_owned()),
        id: Some("s-1".to_owned()),
        started: Some(1_770_842_205),
        ..About::default()
    };
    assert_eq!((recorded.format, recorded.about), (Format::ClaudeCode, about));
    assert_eq!(recorded.messages[1].timestamp, Some(1_770_842_207));
}

#[test]
fn titles_of_claude_code_are_cut_to_the_length_of_a_name() {
    let long = "title ".repeat(1000);
    for (kind, member) in
        [("summary", "summary"), ("ai-title", "aiTitle"), ("custom-title", "customTitle")]
    {
        let text = format!(
            "{{\"type\":\"user\",\"sessionId\":\"s\",\"message\":{{\"content\":\"one\"}}}}\n\
             {{\"type\":\"{kind}\",\"{member}\":\"{long}\"}}\n"
        );
        let title = read(Cursor::new(text)).unwrap().about.title.unwrap();
        assert_eq!(title.chars().count(), LONGEST_TITLE + 1, "{kind}: {title}");
    }
}

#[test]
fn a_file_of_a_subagent_is_its_conversation() {
    check(
        r#"{"type":"user","uuid":"1","sessionId":"s","agentId":"a1","isSidechain":true,"message":{"role":"user","content":"Find it"}}
{"type":"assistant","uuid":"2","agentId":"a1","isSidechain":true,"message":{"id":"m","content":[{"type":"text","text":"Found."}]}}
"#,
        &["assistant: Find it", "assistant: Found."],
        &[],
    );
}

const CODEX: &str = r##"{"timestamp":"2025-10-29T00:59:38.317Z","type":"session_meta","payload":{"id":"c-1","cwd":"/src","cli_version":"0.46.0","git":{}}}
{"timestamp":"2025-10-29T00:59:38.317Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"Obey."}]}}
{"timestamp":"2025-10-29T00:59:38.317Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}
{"timestamp":"2025-10-29T00:59:39.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"List"},{"type":"input_image","image_url":"data:..."}]}}
{"timestamp":"2025-10-29T00:59:39.000Z","type":"event_msg","payload":{"type":"user_message","message":"List"}}
{"timestamp":"2025-10-29T00:59:40.000Z","type":"turn_context","payload":{"cwd":"/src","model":"gpt-5-codex"}}
{"timestamp":"2025-10-29T00:59:41.000Z","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"xx"}}
{"timestamp":"2025-10-29T00:59:41.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I list."}]}}
{"timestamp":"2025-10-29T00:59:41.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"call_1"}}
{"timestamp":"2025-10-29T00:59:42.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"{\"output\":\"a\\nb\",\"metadata\":{\"exit_code\":0}}"}}
{"timestamp":"2025-10-29T00:59:43.000Z","type":"response_item","payload":{"type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":"*** Begin","status":"completed"}}
{"timestamp":"2025-10-29T00:59:43.000Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"call_2","output":[{"type":"input_text","text":"done"}]}}
{"timestamp":"2025-10-29T00:59:44.000Z","type":"response_item","payload":{"type":"local_shell_call","call_id":"call_3","status":"completed","action":{"type":"exec","command":["pwd"]}}}
{"timestamp":"2025-10-29T00:59:44.000Z","type":"response_item","payload":{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}}
{"timestamp":"2025-10-29T00:59:45.000Z","type":"compacted","payload":{"message":"summary"}}
{"timestamp":"2025-10-29T00:59:46.000Z","type":"response_item","payload":{"type":"ghost_snapshot","ghost_commit":{}}}
"##;

#[test]
fn codex_is_read_with_its_calls_and_results() {
    check(
        CODEX,
        &[
            "user: List\n\n[image]",
            r#"assistant: I list. call_1=shell{"command":["ls"]}"#,
            "tool <call_1>: a\nb",
            r#"assistant:  call_2=apply_patch{"input":"*** Begin"}"#,
            "tool <call_2>: done",
            r#"assistant:  call_3=local_shell{"type":"exec","command":["pwd"]} line-14=web_search{"type":"search","query":"q"}"#,
        ],
        &[
            "developer message x1 at 2",
            "text in the user's turn x1 at 3",
            "event_msg x1 at 5",
            "reasoning x1 at 7",
            "compacted x1 at 15",
            "ghost_snapshot x1 at 16",
        ],
    );
    let about = read(Cursor::new(CODEX)).unwrap().about;
    assert_eq!((about.id.as_deref(), about.project.as_deref()), (Some("c-1"), Some("/src")));
}

#[test]
fn early_rollouts_have_no_envelopes() {
    let text = r#"{"id":"c-0","timestamp":"2025-08-18T01:16:13.522Z","instructions":null}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n  <cwd>/old</cwd>\n</environment_context>"}]}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}
"#;
    check(
        text,
        &["user: hello", "user: hello", "assistant: hi"],
        &["record x1 at 2", "text in the user's turn x1 at 3"],
    );
    let about = read(Cursor::new(text)).unwrap().about;
    assert_eq!((about.id.as_deref(), about.project.as_deref()), (Some("c-0"), Some("/old")));
}

#[test]
fn markdown_of_version_1_is_read() {
    check(
        "<!-- Generated by SpecStory -->

# 2025-07-19 22:41:03Z

<!-- Claude Code Session 4a573c80-5828 (2025-07-19_22-41-03Z) -->

_**User**_

Make it
```
unclosed

---

_**Agent (claude-opus-4)**_

<think><details>Let me
see.</details></think>

I make it.

Tool use: **Write**

```json
{}
```

Result:

```
File created
\\```
_**User**_
\\```
```

_**Agent (claude-opus-4)**_

Tool use: **Bash** Create folders

`mkdir a`

Error:

```
refused
```

_**Agent (claude-opus-4) (sidechain)**_

elsewhere

_**User**_

Thanks
",
        &[
            "user: Make it\n```\nunclosed",
            r#"assistant: I make it. line-15-1=Write{"shown":"{}"}"#,
            "tool <line-15-1>: File created\n```\n_**User**_\n```",
            r#"assistant:  line-37-1=Bash{"shown":"Create folders\n`mkdir a`"}"#,
            "tool <line-37-1>: refused",
            "user: Thanks",
        ],
        &["thinking x1 at 15", "sidechain x1 at 49"],
    );
}

#[test]
fn markdown_of_version_2_is_read() {
    let text = "<!-- Generated by SpecStory, Markdown v2.1.0 -->

# Ports of the database

<!-- Codex CLI Session 019c7be4-e46e (2026-02-20 16:33:05Z) -->

_**User (2026-02-20 16:33:05Z)**_

Which port?

---

_**Agent (gpt-5 2026-02-20 16:33:13Z)**_

<think><details><summary>Thought Process</summary>
hm
</details></think>

_**Agent (gpt-5 2026-02-20T16:33:14.500Z)**_

<tool-use data-tool-type=\"shell\" data-tool-name=\"Bash\"><details>
<summary>Tool use: **Bash**</summary>
Look at it

`cat a`

```text
port 5433
</details></tool-use>
```
</details></tool-use>

It is 5433.

<tool-use data-tool-type=\"write\" data-tool-name=\"Write\">
<details><summary>Tool use: **Write** • b.md</summary>

```md
text
```

</details>
</tool-use>
";
    check(
        text,
        &[
            "user: Which port?",
            "assistant:  line-19-1=Bash{\"shown\":\"Look at it\\n`cat a`\"}",
            "tool <line-19-1>: port 5433\n</details></tool-use>",
            "assistant: It is 5433. line-19-2=Write{\"shown\":\"b.md\\ntext\"}",
            "tool <line-19-2>: [no result was recorded]",
        ],
        &["thinking x1 at 13", "tool call x1 at 19"],
    );
    let recorded = read(Cursor::new(text)).unwrap();
    assert_eq!(recorded.about.title.as_deref(), Some("Ports of the database"));
    assert_eq!(recorded.about.id.as_deref(), Some("019c7be4-e46e"));
    assert_eq!(recorded.messages[1].timestamp, Some(1_771_605_194));
}

#[test]
fn a_use_without_an_end_swallows_no_turn() {
    check(
        "<!-- Generated by SpecStory -->

# Icons (2025-10-01 23:30Z)

_**User (2025-10-01 23:30Z)**_

move them

---

_**Assistant (gpt-5)**_

Tool use: **edit_file**

<details><summary>Edit file: a.css</summary>

```diff
+ b
Tool use: **read_lints**

<details>
          <summary>Read lints</summary>

**No lint errors found**
</details>

---

I moved them.

---

_**User (2025-10-01 23:40Z)**_

and now
```
an open fence

---

_**Assistant (gpt-5)**_

Done.

```md
_**User**_
quoted
```

---
",
        &[
            "user: move them",
            "assistant:  line-11-1=edit_file{\"shown\":\"Edit file: a.css\\n+ b\"} \
             line-11-2=read_lints{\"shown\":\"Read lints\"}",
            "tool <line-11-1>: [no result was recorded]",
            "tool <line-11-2>: **No lint errors found**",
            "assistant: I moved them.",
            "user: and now\n```\nan open fence",
            "assistant: Done.\n\n```md\n_**User**_\nquoted\n```",
        ],
        &["tool call x1 at 11"],
    );
}

#[test]
fn a_tagged_use_ends_where_its_tag_says_whatever_its_fences_hold() {
    let shell = "<tool-use data-tool-type=\"shell\" data-tool-name=\"run\">\n\
                 <details><summary>Tool use: **run** • a &amp;&amp; b</summary>\n\n";
    let text = format!(
        "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n_**User (2026-01-02 03:04Z)**_\n\ngo\n\n\
         ---\n\n_**Agent (model x)**_\n\n{shell}```bash\na && b\n```\n\n</details>\n</tool-use>\n\n---\n\n\
         {shell}```text\nodd\n```\n```\n```\n\n</details>\n</tool-use>\n\nbetween\n\n\
         {shell}```text\n---\n\n_**Agent (older 2025-01-02 03:04Z)**_\n\n```\n</details></tool-use>\n\n\
         _**User (2026-01-02 03:05Z)**_\n\nend\n"
    );
    check(
        &text,
        &[
            "user: go",
            "assistant:  line-9-1=run{\"shown\":\"a && b\\na && b\"} \
             line-9-2=run{\"shown\":\"a && b\"}",
            "tool <line-9-1>: [no result was recorded]",
            "tool <line-9-2>: odd\n```\n```",
            "assistant: between line-9-3=run{\"shown\":\"a && b\"}",
            "tool <line-9-3>: ---\n\n_**Agent (older 2025-01-02 03:04Z)**_\n",
            "user: end",
        ],
        &["tool call x1 at 9"],
    );
}

#[test]
fn the_oldest_markdown_is_read() {
    let text = "## SpecStory

## Build (3/11/2025, 8:11:06 PM)

_**User**_

build it

---

_****_

```bash
make
```

```
4 built
```

---

_**Assistant**_

Read file: src/a.rs

---

<details>
            <summary>Listed directory src • **1** result</summary>

| Name |
|-------|
| `a.rs` |

</details>

---

Built.
";
    check(
        text,
        &[
            "user: build it",
            r#"assistant:  line-11-1=run_command{"shown":"make"}"#,
            "tool <line-11-1>: 4 built",
            "assistant:  line-23-1=read_file{\"shown\":\"src/a.rs\"} \
             line-23-2=tool{\"shown\":\"Listed directory src • **1** result\"}",
            "tool <line-23-1>: [no result was recorded]",
            "tool <line-23-2>: | Name |\n|-------|\n| `a.rs` |",
            "assistant: Built.",
        ],
        &["tool call x1 at 23"],
    );
    let recorded = read(Cursor::new(text)).unwrap();
    assert_eq!(recorded.about.title.as_deref(), Some("Build"));
    assert_eq!(recorded.messages[0].timestamp, recorded.about.started);
    assert_eq!(recorded.about.started, Some(1_741_723_866));
}

#[test]
fn edits_are_arguments_and_commands_alone_between_rules_are_calls() {
    let text = "<!-- Generated by SpecStory -->\n\n_**User**_\n\nfix it\n\n---\n\n_**Assistant**_\n\nI \
        look:\n\n\n---\n\n\n\n---\n\nNow I run it.\n\n---\n\n```bash\npwd\n```\n\n```\n/home\n\n```\n\n---\n\n\
        ```sh\nmake\n```\n\n---\n\nTry this:\n\n```bash\nls\n```\n\n---\n\n<details><summary>Edit file: \
        a.md</summary>\n\n**Chunk 1**\n\n```diff\n@@ -1 +1 @@\n  ```\n+ b\n```\n\n**Chunk 2**\n\n```diff\n+ \
        c\n```\n\n</details>\n\n---\n\n<details>\n  <summary>MCP tool call</summary>\n\n*Parameters*:\n  * \
        url: x\n\n*Result*:\n### Ran\n```js\ngo()\n```\n</details>\n\n---\n\n<details><summary>Grep \
        search for \"x\"</summary>\n\nNo results found\n\n</details>\n";
    check(
        text,
        &[
            "user: fix it",
            "assistant: I look:\n\n---\n\nNow I run it. line-9-1=run_command{\"shown\":\"pwd\"} \
             line-9-2=run_command{\"shown\":\"make\"}",
            "tool <line-9-1>: /home\n",
            "tool <line-9-2>: [no result was recorded]",
            "assistant: Try this:\n\n```bash\nls\n``` line-9-3=tool{\"shown\":\"Edit file: a.md\\n**Chunk \
             1**\\n**Chunk 2**\\n@@ -1 +1 @@\\n  ```\\n+ b\\n+ c\"} line-9-4=tool{\"shown\":\"MCP tool \
             call\\n*Parameters*:\\n* url: x\"} line-9-5=tool{\"shown\":\"Grep search for \\\"x\\\"\"}",
            "tool <line-9-3>: [no result was recorded]",
            "tool <line-9-4>: ### Ran\n```js\ngo()\n```",
            "tool <line-9-5>: No results found",
        ],
        &["tool call x2 at 9"],
    );
}

#[test]
fn a_use_that_is_written_twice_is_one_and_escaped_results_are_plain() {
    let twice = |name: &str, summary: &str, rest: &str| {
        format!(
            "<tool-use data-tool-type=\"x\" data-tool-name=\"{name}\">\n<details><summary>Tool use: \
             **{name}**{summary}</summary>\n\n{rest}</details>\n</tool-use>\n\n<tool-use \
             data-tool-type=\"x\" data-tool-name=\"{name}\"><details>\n<summary>Tool use: \
             **{name}**</summary>\n\n</details></tool-use>\n\n"
        )
    };
    let shell = "```bash\nrun && go\n```\n\n```\n&gt; done &amp; out\n```\n\n";
    let raw = "```bash\nrun\n```\n\n```\n<b>&gt;</b>\n```\n\n";
    let text = format!(
        "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n_**User (2026-04-08 17:47Z)**_\n\nfix \
         it\n\n_**Agent (m)**_\n\n{}{}{}",
        twice("read", " • Read file: a", ""),
        twice("shell", "", shell),
        twice("shell", "", raw),
    );
    // Two uses of one tool with a rule between are two.
    let plain = "_**User**_\n\ngo\n\n---\n\n_**Assistant**_\n\nTool use: **grep**\n\n<details>\n<summary>Grep \
        a</summary>\n</details>\n\n---\n\nTool use: **grep**\n\n---\n";
    let told = read(Cursor::new(plain)).unwrap();
    assert_eq!(told.messages[1].tool_calls.len(), 2, "{told:?}");
    check(
        &text,
        &[
            "user: fix it",
            "assistant:  line-7-1=read{\"shown\":\"Read file: a\"} line-7-2=shell{\"shown\":\"run && \
             go\"} line-7-3=shell{\"shown\":\"run\"}",
            "tool <line-7-1>: [no result was recorded]",
            "tool <line-7-2>: > done & out",
            "tool <line-7-3>: <b>&gt;</b>",
        ],
        &["tool call x3 at 7", "tool call x1 at 7"],
    );
}

#[test]
fn the_user_comes_after_the_results_that_calls_wait_for() {
    let line = |kind: &str, rest: &str| {
        format!("{{\"type\":\"response_item\",\"payload\":{{\"type\":\"{kind}\",{rest}}}}}\n")
    };
    let user = |text: &str| line("message", &format!("\"role\":\"user\",\"content\":\"{text}\""));
    let call = |id: &str| {
        line(
            "function_call",
            &format!("\"name\":\"f\",\"arguments\":\"{{}}\",\"call_id\":\"{id}\""),
        )
    };
    let output = |id: &str| {
        line("function_call_output", &format!("\"call_id\":\"{id}\",\"output\":\"of {id}\""))
    };
    let text = [
        user("go"),
        call("a"),
        line("web_search_call", "\"action\":{\"type\":\"search\"}"),
        call("b"),
        user("also this"),
        output("b"),
        output("a"),
        output("a"),
    ];
    check(
        &text.concat(),
        &[
            "user: go",
            "assistant:  a=f{} line-3=web_search{\"type\":\"search\"} b=f{}",
            "tool <b>: of b",
            "tool <a>: of a",
            "tool <line-3>: [no result was recorded]",
            "user: also this",
        ],
        &["tool call x1 at 7", "tool result x1 at 8"],
    );
}

#[test]
fn the_mark_says_whether_the_user_stopped_the_agent() {
    let said = |role: &str, content: &str| {
        format!(
            "{{\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\"content\":{content}}}}}\n"
        )
    };
    let refused = [
        said("user", "\"go\""),
        said("assistant", r#"[{"type":"tool_use","id":"t","name":"Bash","input":{}}]"#),
        said("user", r#"[{"type":"tool_result","tool_use_id":"t","content":"refused"}]"#),
        said("user", r#"[{"type":"text","text":"[Request interrupted by user for tool use]"}]"#),
    ]
    .concat();
    let stopped = |text: &str| {
        let mut reader = Reader::new(Cursor::new(text.to_owned()), Mark::default());
        while reader.next().unwrap().is_some() {}
        reader.mark().is_stopped
    };
    assert!(stopped(&refused));
    assert!(!stopped(&(refused.clone() + &said("user", "\"go on\""))));
    assert!(!stopped(&(refused + &said("assistant", "\"as you like\""))));
    let codex = |text: &str| {
        let item = format!(
            r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#
        );
        format!("{{\"type\":\"response_item\",\"payload\":{item}}}\n")
    };
    assert!(stopped(&(codex("go") + &codex("<turn_aborted>\\nby the user\\n</turn_aborted>"))));
}

#[test]
fn formats_that_cannot_be_read_are_refused_by_name() {
    let refused = |text: &str| read(Cursor::new(text)).unwrap_err().to_string();
    let droid = r#"{"type":"session_start","id":"d","cwd":"/tmp"}
{"type":"message","id":"m","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#;
    assert!(refused(droid).contains("a session of Droid"), "{}", refused(droid));
}

/// Reads `first`, and then `whole`: from the place where `first` ended, or, with `anew`, from the
/// beginning again.
fn twice(first: &str, whole: &str, anew: bool) -> (Vec<String>, Vec<String>) {
    let mut messages = [Vec::new(), Vec::new()];
    let mut reader = Reader::new(Cursor::new(first), Mark::default());
    while let Some(message) = reader.next().unwrap() {
        messages[0].push(line(&message));
    }
    let mark = reader.mark();
    let stored = serde_json::to_string(&mark).unwrap();
    let mark: Mark = serde_json::from_str(&stored).unwrap();
    let mark = if anew { mark.anew() } else { mark };
    let rest = &whole[usize::try_from(mark.offset).unwrap()..];
    let mut reader = Reader::new(Cursor::new(rest), mark);
    while let Some(message) = reader.next().unwrap() {
        messages[1].push(line(&message));
    }
    let [before, after] = messages;
    (before, after)
}

#[test]
fn a_recording_that_grew_is_read_on_wherever_it_was_cut() {
    // A skill's text is a part of a result only if both are read at once.
    let left = ["assistant:", "Skill:", "ports"];
    for whole in [CLAUDE, CODEX] {
        let all = read(Cursor::new(whole)).unwrap().messages;
        let ids = |lines: &[String]| -> Vec<String> {
            let parts = lines.iter().flat_map(|it| it.split_whitespace());
            parts.map(str::to_owned).filter(|it| !left.contains(&&**it)).collect()
        };
        let expected = ids(&all.iter().map(line).collect::<Vec<_>>());
        // For each cut that leaves messages, all texts are kept, in the same order.
        for cut in (whole.len() / 2..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
            let (mut said, rest) = twice(&whole[..cut], whole, false);
            said.extend(rest);
            assert_eq!(ids(&said), expected, "cut at {cut}");
        }
    }
}

#[test]
fn a_recording_read_anew_tells_only_what_is_new() {
    for whole in [CLAUDE, CODEX] {
        let (before, after) = twice(whole, whole, true);
        assert!(!before.is_empty() && after.is_empty(), "{after:?}");
    }
    let early = |texts: &[&str]| -> String {
        let line = |text: &&str| {
            format!(r#"{{"type":"message","role":"user","content":"{text}"}}"#) + "\n"
        };
        texts.iter().map(line).collect()
    };
    let (_, after) = twice(&early(&["yes", "a"]), &early(&["yes", "b", "a", "yes"]), true);
    assert_eq!(after, ["user: b", "user: yes"]);
}

#[test]
fn hostile_lines_are_counted_and_the_rest_is_read() {
    let user = |text: &str| {
        format!(r#"{{"type":"user","sessionId":"s","message":{{"content":"{text}"}}}}"#)
    };
    let deep = format!(r#"{{"type":"user","message":{{"content":{}"#, "[".repeat(100_000));
    let nested = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":{}1{}}}]}}}}"#,
        "[".repeat(1000),
        "]".repeat(1000)
    );
    let mut bytes = [
        "garbage",
        &user("one"),
        &"\0".repeat(100),
        &deep,
        &nested,
        r#"{"type":"user","message":{"content":{"type":5}}}"#,
        &user("cut \\ud83d here \\ud83d\\ude00 \\\\ud83d"),
    ]
    .join("\n")
    .into_bytes();
    bytes.extend_from_slice(b"\n{\"type\":\"user\",\"message\":{\"content\":\"bad \xff byte\"}}\n");
    bytes.extend_from_slice(br#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"none","content":"x"}]}}"#);
    bytes.extend_from_slice(b"\n{\"type\":\"user\",\"message\":{\"content\":\"half");
    let (said, left_out) = shown(&bytes);
    assert_eq!(
        said,
        [
            "user: one",
            "user: cut \u{fffd} here 😀 \\ud83d",
            "user: bad \u{fffd} byte",
            "tool <none>: x"
        ]
    );
    assert_eq!(
        left_out,
        [
            "line x1 at 1",
            "line x1 at 4",
            "line x2 at 5",
            "bytes x1 at 8",
            "last line x1 at 10",
            "tool result x1 at 9"
        ]
    );
}

#[test]
fn a_line_without_an_end_takes_no_memory() {
    let head = br#"{"type":"user","sessionId":"s","message":{"content":"one"}}"#;
    let endless = std::io::Read::take(std::io::repeat(b'x'), 64 << 20);
    let source = std::io::Read::chain(Cursor::new([&head[..], b"\n"].concat()), endless);
    let mut reader = Reader::new(std::io::BufReader::new(source), Mark::default());
    assert_eq!(reader.next().unwrap().map(|message| message.content).as_deref(), Some("one"));
    assert_eq!(reader.next().unwrap(), None);
    assert_eq!(left_out(&reader.left_out()), ["line x1 at 2"]);
    assert!(reader.offset() > 64 << 20);
}

#[test]
fn a_call_with_the_id_of_another_gets_one_of_its_own() {
    check(
        r#"{"type":"assistant","sessionId":"s","message":{"id":"m1","content":[{"type":"tool_use","id":"t","name":"A","input":{}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"a"}]}}
{"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"t","name":"B","input":{}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"b"}]}}
"#,
        &["assistant:  t=A{}", "tool <t>: a", "assistant:  t-3=B{}", "tool <t-3>: b"],
        &[],
    );
}

#[test]
fn other_texts_are_refused() {
    for text in ["", "hello\n", "# A title\n", "{\"a\":1}\n", "[1,2]"] {
        assert!(matches!(read(Cursor::new(text)), Err(RecordingError::Unknown)), "{text}");
    }
}

#[test]
fn many_kinds_are_counted_together() {
    let mut text = r#"{"type":"user","sessionId":"s","message":{"content":"one"}}"#.to_owned();
    for number in 0..200 {
        text += &format!("\n{{\"type\":\"kind-{number}\"}}");
    }
    let left_out = read(Cursor::new(text)).unwrap().left_out;
    assert_eq!((left_out.len(), left_out[64].count), (65, 136));
    assert_eq!(left_out.iter().map(|entry| entry.count).sum::<u64>(), 200);
}

const ACP: &str = r#"{"acp":{"agent":"opencode","session":"ses_1","cwd":"/home/me/app"},"time":1770000000}
{"time":1770000001,"prompt":[{"type":"text","text":"Which port?"},{"type":"resource_link","uri":"file:///a.toml","name":"a"},{"type":"resource","resource":{"uri":"file:///b","text":"five"}},{"type":"image","mimeType":"image/png","data":"QUJD"}]}
{"time":1770000002,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I "}}}
{"time":1770000003,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"look."}}}
{"time":1770000003,"update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Read a.toml","kind":"read","status":"pending"}}
{"time":1770000003,"update":{"sessionUpdate":"tool_call","toolCallId":"t2","title":"contexture_context","kind":"other"}}
{"time":1770000004,"update":{"sessionUpdate":"tool_call_update","toolCallId":"t1","rawInput":{"path":"a.toml"},"status":"in_progress"}}
{"time":1770000005,"update":{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"port = 5433"}},{"type":"diff","path":"a.toml","oldText":"a\nb\nc","newText":"a\nd\nc"},{"type":"terminal","terminalId":"x"}]}}
{"time":1770000006,"update":{"sessionUpdate":"tool_call_update","toolCallId":"t2","status":"failed","rawOutput":{"output":"no"}}}
{"time":1770000006,"update":{"sessionUpdate":"usage_update","used":900,"size":2000,"cost":{"amount":0.5,"currency":"USD"}}}
{"time":1770000007,"update":{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"Port 5433."}}}
{"time":1770000007,"stop":"end_turn","usage":{"totalTokens":170,"inputTokens":100,"outputTokens":20,"thoughtTokens":10,"cachedReadTokens":40}}
{"time":1770000008,"dropped":3}
{"time":1770000008,"prompt":[{"type":"text","text":"go on"}]}
{"time":1770000009,"update":{"sessionUpdate":"tool_call","toolCallId":"t3","kind":"execute","rawInput":{"command":"ls"}}}
{"time":1770000009,"update":{"sessionUpdate":"plan","entries":[]}}
{"time":1770000010,"update":{"sessionUpdate":"usage_update","used":1000,"size":2000,"cost":{"amount":0.75,"currency":"USD"}}}
{"time":1770000010,"stop":"cancelled","usage":null}
{"time":1770000011,"update":7}
"#;

#[test]
fn what_the_proxy_records_is_read_with_its_pieces_calls_and_results() {
    check(
        ACP,
        &[
            "user: Which port?\n\n[resource_link: file:///a.toml]\n\n[file:///b]\nfive\n\n[image: image/png]",
            r#"assistant: I look. t1=read{"path":"a.toml"}"#,
            "tool <t1>: port = 5433\n\n[changed a.toml]\n-b\n+d\n\n[terminal]",
            r#"assistant:  t2=contexture_context{"title":"contexture_context"}"#,
            "tool <t2>: [failed]\nno",
            "assistant: Port 5433.",
            "user: go on",
            r#"assistant:  t3=execute{"command":"ls"}"#,
            "tool <t3>: [no result was recorded]",
        ],
        &["messages x1 at 13", "plan x1 at 16", "tool call x1 at 18", "line x1 at 19"],
    );
    let mut reader = Reader::new(Cursor::new(ACP), Mark::default());
    while reader.next().unwrap().is_some() {}
    let about = reader.about();
    assert_eq!((about.id.as_deref(), about.started), (Some("ses_1"), Some(1_770_000_000)));
    assert_eq!(about.project.as_deref(), Some("/home/me/app"));
    let usages = reader.take_usages();
    let first = RecordedUsage {
        time: Some(1_770_000_007),
        model: None,
        used: 900,
        room: 2000,
        input: Some(140),
        output: Some(30),
        cached: Some(40),
        cost: Some(0.5),
    };
    assert_eq!(usages[0], first);
    assert_eq!((usages.len(), usages[1].input, usages[1].cost), (2, None, Some(0.25)));
}

/// Returns what is told of tokens in a recording that is read at once, and one that is read line by
/// line.
fn usages(lines: &[&str]) -> Vec<RecordedUsage> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut reader = Reader::new(Cursor::new(&text), Mark::default());
    while reader.next().unwrap().is_some() {}
    let usages = reader.take_usages();
    let (mut mark, mut parts) = (Mark::default(), Vec::new());
    for (end, _) in text.match_indices('\n') {
        let rest = Cursor::new(&text[usize::try_from(mark.offset).unwrap()..=end]);
        let mut reader = Reader::new(rest, mark);
        while reader.next().unwrap().is_some() {}
        reader.pause();
        parts.extend(reader.take_usages());
        mark = reader.mark();
    }
    assert_eq!(parts.len(), usages.len(), "{parts:?}");
    // A reading of all lines again tells nothing twice.
    let mut again = Reader::new(Cursor::new(&text), mark.anew());
    while again.next().unwrap().is_some() {}
    assert_eq!(again.take_usages(), []);
    usages
}

#[test]
fn the_tokens_of_each_request_are_told_once() {
    let model = |name: &str| Some(name.to_owned());
    let answer = |uuid: &str, id: &str, text: &str, usage: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","sessionId":"s","timestamp":"2026-02-01T10:00:09Z",
            "message":{{"id":"{id}","role":"assistant","model":"m","usage":{usage},
            "content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
        .replace('\n', "")
    };
    let user =
        r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"hi"}}"#;
    let early = r#"{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":77,"output_tokens":1}"#;
    let late = &early.replace(":1}", ":40}");
    let told = usages(&[
        user,
        &answer("a", "m1", "one", late),
        &answer("b", "m1", "two", late),
        &answer("c", "m2", "three", r#"{"input_tokens":-1,"output_tokens":"?"}"#),
        &answer("d", "m3", "four", r#"{"input_tokens":5}"#),
    ]);
    let first = RecordedUsage {
        time: Some(1_769_940_009),
        model: model("m"),
        used: 140,
        input: Some(100),
        output: Some(40),
        cached: Some(77),
        ..RecordedUsage::default()
    };
    assert_eq!((&told[0], told.len(), told[1].input), (&first, 2, Some(5)));
    let mut reader = Reader::new(
        Cursor::new(
            [user, &answer("a", "m1", "one", early), &answer("b", "m1", "two", late)].join("\n"),
        ),
        Mark::default(),
    );
    while reader.next().unwrap().is_some() {}
    assert_eq!(reader.take_usages(), [first], "the last record of a request is right");

    let count = |total: u64, last: u64| {
        let tokens = |sum: u64| {
            format!(
                r#"{{"input_tokens":{},"cached_input_tokens":2,"output_tokens":5,"total_tokens":{sum}}}"#,
                sum - 5
            )
        };
        format!(
            r#"{{"type":"event_msg","timestamp":"2026-02-01T10:00:09Z","payload":{{"type":"token_count","info":
            {{"total_token_usage":{},"last_token_usage":{},"model_context_window":900}}}}}}"#,
            tokens(total),
            tokens(last)
        )
        .replace('\n', "")
    };
    let told = usages(&[
        r#"{"type":"session_meta","payload":{"id":"x","cwd":"/p"}}"#,
        r#"{"type":"turn_context","payload":{"model":"m"}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}"#,
        &count(30, 30),
        &count(30, 30),
        r#"{"type":"event_msg","payload":{"type":"token_count","info":null}}"#,
        &count(80, 50),
    ]);
    let second = RecordedUsage {
        time: Some(1_769_940_009),
        model: model("m"),
        used: 50,
        room: 900,
        input: Some(45),
        output: Some(5),
        cached: Some(2),
        ..RecordedUsage::default()
    };
    assert_eq!((told.len(), &told[1]), (2, &second));
}

#[test]
fn a_turn_that_is_read_in_two_parts_loses_and_repeats_nothing() {
    let whole = read(Cursor::new(ACP)).unwrap().messages;
    for (end, _) in ACP.match_indices('\n').take(17) {
        let mut reader = Reader::new(Cursor::new(&ACP[..=end]), Mark::default());
        let mut messages = Vec::new();
        while let Some(message) = reader.next().unwrap() {
            messages.push(message);
        }
        let mut reader = Reader::new(Cursor::new(&ACP[end + 1..]), reader.mark());
        while let Some(message) = reader.next().unwrap() {
            messages.push(message);
        }
        let results = |all: &[RecordedMessage]| {
            let mut ids: Vec<_> = all.iter().filter_map(|it| it.tool_call_id.clone()).collect();
            ids.sort();
            ids
        };
        assert_eq!(results(&messages), results(&whole), "{end}");
        let calls =
            |all: &[RecordedMessage]| all.iter().map(|it| it.tool_calls.len()).sum::<usize>();
        assert_eq!(calls(&messages), calls(&whole), "{end}");
        let said = |all: &[RecordedMessage]| {
            let said: Vec<&str> = all.iter().map(|it| it.content.trim()).collect();
            said.concat().replace(char::is_whitespace, "").len()
        };
        assert_eq!(said(&messages), said(&whole), "{end}");
    }
}
