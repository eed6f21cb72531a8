//! The JSON Schema of the protocol as a whole.

use std::process::Command;

use serde_json::Value as Json;

use contexture_program::internals::rpc::methods;

use crate::support::*;

const PROGRAM: &str = env!("CARGO_BIN_EXE_contexture");

/// The document that `contexture schema` prints.
pub(crate) fn document() -> Json {
    let output = Command::new(PROGRAM).arg("schema").output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_method_and_the_command_give_the_same_schema() {
    let document = document();
    let home = Home::new();
    let command = home.command(&["--ephemeral", "serve", "--stdio"]);
    let mut client = Client::over_stdio(command, Dialect::Json);
    assert_eq!(client.ok("schema", "nil"), document);
    let described = document["methods"].as_object().unwrap();
    assert_eq!(described.len(), methods().count());
    for method in methods() {
        let of = &described[method.name];
        assert_eq!((text(&of["description"]), text(&of["returns"])), (method.doc, method.result));
    }
}

#[test]
fn types_have_names_of_their_own_and_every_reference_leads_to_one() {
    let document = document();
    let types = document["$defs"].as_object().unwrap();
    let is_numbered = |name: &&String| name.ends_with(|last: char| last.is_ascii_digit());
    assert_eq!(types.keys().find(is_numbered), None, "two types have one name");
    each_object(&document, &mut |object| {
        if let Some(target) = object.get("$ref") {
            let name = text(target).strip_prefix("#/$defs/").unwrap();
            assert!(types.contains_key(name), "{name}");
        }
    });
}

/// Calls `look` with each object in a datum.
pub(crate) fn each_object(json: &Json, look: &mut impl FnMut(&serde_json::Map<String, Json>)) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| each_object(item, look)),
        Json::Object(members) => {
            look(members);
            members.values().for_each(|member| each_object(member, look));
        }
        _ => {}
    }
}

/// The text of a datum that is one.
pub(crate) fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_else(|| panic!("{json} is no text"))
}
