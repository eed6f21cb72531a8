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
            format!("no tool \"look\"; existing: {}", own.join(", "))
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
