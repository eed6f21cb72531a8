//! Tools of clients, offered to agents over MCP.

use serde_json::json;

use crate::mcp::{Agent, project};
use crate::support::*;

const LOOK: &str = "(:name \"look\" :description \"Looks at a place.\" :effect :changes :schema \
    \"{\\\"type\\\":\\\"object\\\",\\\"properties\\\":{\\\"place\\\":{\\\"type\\\":\\\"string\\\"}}}\" ";

fn names(agent: &mut Agent) -> Vec<String> {
    let listed = agent.ok("tools/list", &json!({}));
    let names = listed["tools"].as_array().unwrap().iter();
    names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_agent_has_the_tools_that_are_offered_to_it_and_no_others() {
    let home = Home::new();
    let server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    let root = project(&home).canonicalize().unwrap();
    let mut agent = Agent::with(&home, &[]);
    let own = names(&mut agent);
    let bring = |emacs: &mut Client, places: &str| {
        emacs.ok("register-tools", &format!("(:tools ({LOOK} {places})))"));
    };
    for elsewhere in [":everywhere t", ":projects (\"/srv\") :agent-projects (\"/srv\")"] {
        bring(&mut emacs, elsewhere);
        assert_eq!(names(&mut agent), own);
        assert_eq!(
            agent.fails("tools/call", &json!({ "name": "look" })),
            format!("no tool \"look\"; the tools are {}", own.join(", "))
        );
    }
    // A name of the bridge's own tools stays theirs.
    let search = LOOK.replace("\"look\"", "\"search\"");
    emacs.ok(
        "register-tools",
        &format!("(:tools ({LOOK} :agent-projects ({root:?})) {search} :agents t)))"),
    );
    assert_eq!(names(&mut agent), [&own[..], &["look".to_owned()]].concat());
    let listed = agent.ok("tools/list", &json!({}));
    let look = listed["tools"].as_array().unwrap().last().unwrap();
    assert_eq!(look["inputSchema"]["properties"]["place"]["type"], "string");
    assert_eq!(look["annotations"]["readOnlyHint"], false);

    let arguments = json!({ "name": "look", "arguments": { "place": "a" } });
    let id = agent.send("tools/call", &arguments);
    let called = emacs.notification("tool-called");
    assert_eq!(
        (&called["agent"], &called["arguments"]),
        (&json!("test"), &json!("{\"place\":\"a\"}"))
    );
    assert_eq!(called["project"], json!(root));
    // Others go on while the user thinks.
    assert_eq!(names(&mut agent).len(), own.len() + 1);
    emacs.ok("give-result", &format!("(:call {} :content \"dark\")", called["call"]));
    assert_eq!(agent.answer(id)["result"]["content"][0]["text"], "dark");

    let id = agent.send("tools/call", &arguments);
    let called = emacs.notification("tool-called");
    emacs.ok("give-result", &format!("(:call {} :error \"No\")", called["call"]));
    let answer = agent.answer(id);
    assert_eq!(
        (&answer["result"]["isError"], &answer["result"]["content"][0]["text"]),
        (&json!(true), &json!("No"))
    );

    // An agent that gives up, and tools that are taken back.
    let id = agent.send("tools/call", &arguments);
    let called = emacs.notification("tool-called");
    agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    assert_eq!(emacs.notification("tool-cancelled")["call"], called["call"]);
    emacs.ok("register-tools", "(:tools nil)");
    assert_eq!(names(&mut agent), own);
}

#[test]
fn an_agent_is_told_when_tools_come_and_go() {
    let changed = "notifications/tools/list_changed";
    let home = Home::new();
    let mut server = home.listening(&[]);
    let mut agent = Agent::start(&home, &[]);
    let begun = agent.begin("2025-06-18", &json!({}));
    assert_eq!(begun["capabilities"]["tools"]["listChanged"], true);
    let mut alone = Agent::without_session(&home);
    let found = alone.ok("server/discover", &json!({}));
    assert_eq!(found["capabilities"]["tools"]["listChanged"], true);
    let wanted = json!({ "toolsListChanged": true, "promptsListChanged": true });
    let listening = alone.send("subscriptions/listen", &json!({ "notifications": wanted }));
    let accepted = alone.notification("notifications/subscriptions/acknowledged");
    assert_eq!(accepted["notifications"], json!({ "toolsListChanged": true }));

    let mut emacs = server.unix(Dialect::Native);
    let own = names(&mut agent).len();
    assert_eq!(names(&mut alone).len(), own);
    let mut told = |places: &str, count: usize| {
        emacs.ok("register-tools", &format!("(:tools ({LOOK} {places})))"));
        agent.notification(changed);
        assert_eq!(names(&mut agent).len(), count);
        let params = alone.notification(changed);
        assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], listening);
        assert_eq!(names(&mut alone).len(), count);
    };
    told(":agents t", own + 1);
    told(":everywhere t", own);
    told(":agents t", own + 1);
    // A client that goes takes its tools along, and so does a server.
    emacs.close();
    agent.notification(changed);
    assert_eq!(names(&mut agent).len(), own);
    let mut emacs = server.unix(Dialect::Native);
    emacs.ok("register-tools", &format!("(:tools ({LOOK} :agents t)))"));
    agent.notification(changed);
    assert_eq!(names(&mut agent).len(), own + 1);
    server.process.kill();
    agent.send("tools/list", &json!({}));
    agent.notification(changed);
    assert_eq!(names(&mut agent).len(), own);
}

#[test]
fn a_server_killed_during_a_call_of_a_clients_tool_costs_that_call() {
    let home = Home::new();
    let mut server = home.listening(&[]);
    let mut emacs = server.unix(Dialect::Native);
    emacs.ok("register-tools", &format!("(:tools ({LOOK} :agents t)))"));
    let mut agent = Agent::with(&home, &[]);
    let id = agent.send("tools/call", &json!({ "name": "look" }));
    emacs.notification("tool-called");
    server.process.kill();
    let answer = agent.answer(id);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    agent.tool("context", json!({}));
}
