//! What the manual says to write for the most used servers, each tried against a stand-in.

use std::os::unix::fs::PermissionsExt;

use contexture_program::internals::provider::Family;

use crate::docs::page;
use crate::endpoint::Asked;
use crate::model;
use crate::support::*;

/// The key that every variable and command gives.
const KEY: &str = "k-123";

/// Where each server is asked, and the header and value in which it wants the key.
const SERVERS: &[(&str, &str, (&str, &str))] = &[
    ("openai", "/v1/responses", ("authorization", "Bearer k-123")),
    ("claude", "/v1/messages", ("x-api-key", KEY)),
    (
        "gemini",
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
        ("x-goog-api-key", KEY),
    ),
    ("ollama", "/api/chat", ("", "")),
    ("openrouter", "/api/v1/chat/completions", ("authorization", "Bearer k-123")),
    (
        "azure",
        "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21",
        ("api-key", KEY),
    ),
    (
        "vertex",
        "/v1/projects/my-project/locations/us-central1/endpoints/openapi/chat/completions",
        ("authorization", "Bearer k-123"),
    ),
    ("deepseek", "/chat/completions", ("authorization", "Bearer k-123")),
    ("mistral", "/v1/chat/completions", ("authorization", "Bearer k-123")),
    ("groq", "/openai/v1/chat/completions", ("authorization", "Bearer k-123")),
    ("llama.cpp", "/v1/chat/completions", ("", "")),
    ("studio", "/v1/chat/completions", ("", "")),
    ("gateway", "/anthropic/v1/messages", ("authorization", "Bearer k-123")),
];

/// Returns the examples of the manual on servers of models, as they are written into a file.
fn snippets() -> Vec<String> {
    let manual = page("docs/contexture.texi");
    let (_, rest) = manual.split_once("\n@section Servers of models\n").unwrap();
    let (section, _) = rest.split_once("\n@section ").unwrap();
    let blocks = section.split("@example\n").skip(1);
    let blocks = blocks.map(|block| block.split("@end example").next().unwrap());
    blocks.map(|block| block.replace("@{", "{").replace("@}", "}")).collect()
}

/// Returns a setting of an example.
fn setting(snippet: &str, name: &str) -> Option<String> {
    let table: toml::Table = toml::from_str(snippet).unwrap();
    table["providers"][0].get(name)?.as_str().map(str::to_owned)
}

/// Writes a program that prints a text.
fn printer(folder: &std::path::Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\necho {text}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Asks the server of an example, which is on this machine in place of where it is.
fn ask(snippet: &str) -> Vec<Asked> {
    let server = model::serve();
    let kind = setting(snippet, "kind").unwrap();
    let usual = Family::from_name(&kind).unwrap().usual_url();
    let url = setting(snippet, "base-url");
    let address = url.clone().unwrap_or_else(|| usual.to_owned());
    let host = address.split("://").nth(1).unwrap();
    let path = host.find('/').map_or("", |at| &host[at..]);
    let mut table: toml::Table = toml::from_str(snippet).unwrap();
    let provider = table["providers"][0].as_table_mut().unwrap();
    provider.insert("base-url".into(), format!("{}{path}", server.root).into());
    // At the usual address, the key comes from the usual variable.
    let variable = format!("{}_API_KEY", if kind == "responses" { "openai" } else { &*kind });
    if url.is_none() && kind != "ollama" {
        provider.insert("api-key-env".into(), variable.to_uppercase().into());
    }
    let home = Home::new();
    model::configure(&home, &toml::to_string(&table).unwrap());
    let programs = home.path("programs");
    std::fs::create_dir_all(&programs).unwrap();
    printer(&programs, "gcloud", KEY);
    printer(&programs, "print-token", KEY);
    printer(&programs, "print-cost-center", "c-7");
    let mut command = home.command(&["serve", "--stdio", "--ephemeral"]);
    let paths = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{paths}", programs.display()));
    for name in ["OPENAI", "ANTHROPIC", "GEMINI", "OPENROUTER", "AZURE_OPENAI", "DEEPSEEK"] {
        command.env(format!("{name}_API_KEY"), KEY);
    }
    for name in ["MISTRAL", "GROQ"] {
        command.env(format!("{name}_API_KEY"), KEY);
    }
    let mut client = Client::over_stdio(command, Dialect::Native);
    client.ok("open-session", "(:name \"s\")");
    let answer = client.ok("chat", "(:content \"hi\")");
    assert_eq!(answer["content"], model::ANSWER, "{snippet}");
    server.asked()
}

#[test]
fn what_the_manual_says_for_each_server_gets_an_answer() {
    let snippets = snippets();
    assert_eq!(snippets.len(), SERVERS.len());
    for (snippet, (name, path, (header, value))) in snippets.iter().zip(SERVERS) {
        assert_eq!(setting(snippet, "name").as_deref(), Some(*name));
        let asked = ask(snippet);
        let [asked] = &asked[..] else { panic!("{name}: {asked:?}") };
        assert_eq!(asked.path, *path, "{name}");
        let keys = asked.headers.iter().filter(|(_, value)| value.contains(KEY));
        let keys: Vec<_> = keys.map(|(name, value)| (&**name, &**value)).collect();
        let expected: &[(&str, &str)] = if header.is_empty() { &[] } else { &[(header, value)] };
        assert_eq!(keys, expected, "{name}");
        if *name == "gateway" {
            assert_eq!(asked.headers["x-team"], "editors");
            assert_eq!(asked.headers["x-cost-center"], "c-7");
        }
    }
}
