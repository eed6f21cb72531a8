//! Tests of what a hub is told, and of addresses.

use std::time::Duration;

use super::*;
use crate::provider::secret::KeySource;
use crate::sync::{
    Body, Edited, Field, Memory, Of, SentChange, SyncProject, SyncScope, SyncSession,
};

fn address(url: &str) -> Result<String, String> {
    let address = HubAddress::new(url, KeySource::None, Duration::from_secs(1));
    address.map(|address| address.to_string())
}

#[test]
fn an_address_names_its_parts_and_never_a_password() {
    assert_eq!(
        address("postgres://ann@db.example.org/team").unwrap(),
        "ann@db.example.org:5432/team"
    );
    assert_eq!(
        address("postgres://ann@localhost:99/t?sslmode=disable").unwrap(),
        "ann@localhost:99/t"
    );
    for (url, why) in [
        ("http://x", "begin with postgres://"),
        ("postgres://ann:s3cret@h/team", "must not contain a password"),
        ("postgres://h/team", "must name a user"),
        ("postgres://ann@h", "must name a user"),
        ("postgres://ann@h,i/team", "one host"),
        ("postgres://ann@h:s3cret/team", "must be an address"),
        ("postgres://ann@h/team?sslmode=disable", "must not turn off TLS"),
    ] {
        let said = address(url).unwrap_err();
        assert!(said.contains(why) && !said.contains("s3cret"), "{url}: {said}");
    }
}

fn sent(seq: u64, body: &Body) -> SentChange {
    let (machine, sign) = ("m".to_owned(), String::new());
    SentChange { machine, seq, sign, body: Some(body.text()), replaced: None }
}

fn session(number: u64, identity: Option<&str>, path: &str) -> Body {
    let project = SyncProject { path: path.to_owned(), identity: identity.map(str::to_owned) };
    Body::Session(SyncSession {
        number,
        name: format!("s{number}"),
        created: 1,
        project: Some(project),
        agent: None,
        branch: None,
    })
}

fn said(number: u64, texts: &[(&str, &str)]) -> Body {
    let message = |(role, content): &(&str, &str)| {
        serde_json::json!({ "role": role, "at": 1, "content": content, "tokens": 1,
                            "counted_by": "estimate" })
    };
    let messages: Vec<_> = texts.iter().map(message).collect();
    let body =
        serde_json::json!({ "said": { "session": number, "first": 1, "messages": messages }});
    serde_json::from_value(body).unwrap()
}

#[test]
fn a_hub_is_told_of_shared_projects_only_and_of_no_secret() {
    let token = format!("the token is ghp_{}", "a".repeat(36));
    let mut shares = Shares { machine: "m".into(), ..Shares::default() };
    let share = Share { folder: "/p".into(), readers: "team".into(), ..Share::default() };
    shares.projects.insert("git:h/p".into(), share);
    let texts = [("user", "why?"), ("tool", "a file"), ("assistant", &*token), ("user", " ")];
    let memory = |number, scope, content: &str| {
        let (kind, content) = ("note".into(), content.into());
        Body::Memory(Memory { number, scope, kind, created: 1, content })
    };
    let of = Of { machine: "m".into(), kind: "session".into(), number: 1 };
    let other = Of { number: 2, ..of.clone() };
    let edit = |of: &Of, field| Body::Edited(Edited { of: of.clone(), at: 2, field });
    let project =
        |path: &str| SyncScope::Project(SyncProject { path: path.into(), identity: None });
    let bodies = [
        session(1, Some("git:h/p"), "/elsewhere"),
        session(2, Some("git:h/q"), "/p"),
        session(3, None, "/p"),
        said(1, &texts),
        said(2, &texts),
        memory(1, project("/p"), "known"),
        memory(2, project("/q"), "unknown"),
        memory(3, SyncScope::Everywhere, "mine"),
        memory(4, SyncScope::Session(of.clone()), &token),
        edit(&of, Field::Name("new".into())),
        edit(&other, Field::Name("private".into())),
        edit(&other, Field::Gone(Some(7))),
    ];
    let (mut pieces, mut held) = (Vec::new(), Vec::new());
    for (seq, body) in (1..).zip(&bodies) {
        let (new, back) = shares.pieces(&sent(seq, body)).unwrap();
        pieces.extend(new);
        held.extend(back);
    }
    let told = format!("{pieces:?}");
    for word in ["why?", "known", "s1", "s3", "new"] {
        assert!(told.contains(word), "{word}: {told}");
    }
    for word in ["ghp_", "a file", "unknown", "mine", "s2", "private"] {
        assert!(!told.contains(word), "{word}: {told}");
    }
    let back = |kind, number, part| HeldBack { kind, number, part };
    assert_eq!(held, [back("session", 1, 3), back("memory", 4, 0)]);
    let share = &shares.projects["git:h/p"];
    assert_eq!((share.messages, share.held, shares.seq), (1, 2, 12));
    assert_eq!(share.sessions.iter().copied().collect::<Vec<_>>(), [1, 3]);
}
