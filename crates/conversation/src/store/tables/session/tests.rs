//! Tests of sessions in each kind of store.

use super::*;
use crate::session::message::{Phase, Role, Signals, ToolCall};
use crate::store::Store;
use crate::store::notes::{NewNotes, NotesQuery, NotesRow};
use crate::store::session::{
    CheckpointRow, NewCheckpoint, PhaseUsage, Spent, StateRow, USAGE_KEPT, UsageRow,
};
use crate::store::sqlite::SqliteStore;
use crate::store::testing::{commit, message, store};

fn named(name: &str) -> NewSession {
    NewSession { name: name.into(), manager: "m".into(), created: 500, ..NewSession::default() }
}

fn texts(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &*message.content).collect()
}

/// Creates a session with these messages, by the user and the assistant in turn.
fn talk(store: &mut dyn Store, name: &str, contents: &[&str]) -> u64 {
    let session = store.change().unwrap().create_session(&named(name)).unwrap();
    say(store, session, contents);
    session
}

fn say(store: &mut dyn Store, session: u64, contents: &[&str]) {
    let roles = [Role::User, Role::Assistant].into_iter().cycle();
    let first = store.read().message_count(session).unwrap() + 1;
    let messages: Vec<Message> = (first..)
        .zip(roles)
        .zip(contents)
        .map(|((number, role), content)| message(number, role, content))
        .collect();
    store.change().unwrap().append_messages(session, &messages).unwrap();
    commit(store);
}

fn names(store: &mut dyn Store, with_deleted: bool) -> Vec<String> {
    store.read().sessions(with_deleted).unwrap().into_iter().map(|row| row.name).collect()
}

#[test]
fn a_session_reads_back_with_its_figures() {
    let mut store = store();
    let session = NewSession {
        name: "größe λ".into(),
        manager: "m".into(),
        project: Some("/p".into()),
        told: Some("/q".into()),
        settings: r#"{"a":1}"#.into(),
        created: 500,
        parent: None,
        source: Some("/f.jsonl".into()),
    };
    let id = store.change().unwrap().create_session(&session).unwrap();
    say(&mut *store, id, &["a", "b", "c"]);
    let row = store.read().session(id).unwrap().unwrap();
    assert_eq!(store.read().session_named("größe λ").unwrap().as_ref(), Some(&row));
    let NewSession { name, manager, project, told, settings, created, parent, source } = session;
    let (messages, turns, tokens, updated, deleted) = (3, 2, 30, 1003, None);
    let expected = SessionRow {
        id,
        name,
        manager,
        project,
        told,
        settings,
        created,
        parent,
        messages,
        turns,
        tokens,
        updated,
        deleted,
        version: 0,
        learned: String::new(),
        source,
        last_role: row.last_role,
        last_words: "c".into(),
        origin: RecordedOrigin::default(),
        machine: None,
    };
    assert_eq!(row, expected);
    let origin = RecordedOrigin {
        agent: Some("codex".into()),
        session: Some("c-1".into()),
        parent: Some("c-0".into()),
        folder: Some("/p/src".into()),
        branch: Some("main".into()),
        remote: Some("https://h/p".into()),
        open_since: Some(7),
        is_stopped: true,
    };
    store.change().unwrap().set_session_origin(id, &origin).unwrap();
    assert_eq!(store.read().session(id).unwrap().unwrap().origin, origin);
    let found = store.read().session_of_agent("codex", "c-1").unwrap();
    assert_eq!(found.map(|row| row.id), Some(id));
    assert_eq!(store.read().latest_session().unwrap(), None, "it is a subagent's");
    store.change().unwrap().set_session_settings(id, "{}").unwrap();
    store.change().unwrap().set_learned(id, "[]").unwrap();
    let row = store.read().session(id).unwrap().unwrap();
    assert_eq!((&*row.settings, &*row.learned), ("{}", "[]"));
    assert_eq!(store.read().session(99).unwrap(), None);
    assert_eq!(store.read().message_count(99).unwrap(), 0);
}

#[test]
fn names_are_unique_among_the_living() {
    let mut store = store();
    let first = talk(&mut *store, "a", &["x"]);
    let taken = store.change().unwrap().create_session(&named("a")).unwrap_err();
    assert!(matches!(taken, StoreError::NameTaken(name) if name == "a"));
    store.abandon().unwrap();
    store.change().unwrap().set_session_deleted(first, Some(7)).unwrap();
    let second = talk(&mut *store, "a", &["y", "z"]);
    assert_eq!(store.read().session_named("a").unwrap().unwrap().id, second);
    assert!(matches!(
        store.change().unwrap().set_session_deleted(first, None),
        Err(StoreError::NameTaken(_))
    ));
    assert!(matches!(
        store.change().unwrap().rename_session(first, "a"),
        Err(StoreError::NameTaken(_))
    ));
    store.change().unwrap().rename_session(first, "b").unwrap();
    store.change().unwrap().rename_session(first, "b").unwrap();
    store.change().unwrap().set_session_deleted(first, None).unwrap();
    assert_eq!(names(&mut *store, false), ["a", "b"], "the newest message first");
    let nobody = store.change().unwrap().rename_session(99, "c").unwrap_err();
    assert_eq!(nobody.to_string(), "there is no session ses-99");
}

#[test]
fn a_deleted_session_keeps_everything() {
    let mut store = store();
    let id = talk(&mut *store, "a", &["x"]);
    store.change().unwrap().set_session_deleted(id, Some(7)).unwrap();
    commit(&mut *store);
    assert!(
        names(&mut *store, false).is_empty() && store.read().session_named("a").unwrap().is_none()
    );
    assert_eq!(names(&mut *store, true), ["a"]);
    assert_eq!(store.read().session(id).unwrap().unwrap().deleted, Some(7));
    assert_eq!(texts(&store.read().messages(id, 1, 9).unwrap()), ["x"]);
}

#[test]
fn every_part_of_a_message_reads_back() {
    let mut store = store();
    let id = store.change().unwrap().create_session(&named("a")).unwrap();
    let call = |id: &str| ToolCall { id: id.into(), name: "read".into(), arguments: "{}".into() };
    let full = Message {
        phase: Some(Phase::Testing),
        tool_calls: vec![call("1"), call("2")],
        tool_call_id: Some("λ".into()),
        pinned: true,
        counted_by: "estimate",
        signals: Signals { error: true, success: false, operation: true, long: false },
        ..message(1, Role::Tool, "a\0b\r\n\u{1f600}")
    };
    let messages = [full, message(2, Role::System, "")];
    store.change().unwrap().append_messages(id, &messages).unwrap();
    assert_eq!(store.read().messages(id, 0, u64::MAX).unwrap(), messages);
    assert_eq!(store.read().messages(id, 2, 2).unwrap(), messages[1..]);
    assert!(store.read().messages(id, 2, 1).unwrap().is_empty());
    assert!(store.read().messages(1 << 40, 1, 9).unwrap().is_empty());
}

#[test]
fn numbers_have_to_follow() {
    let mut store = store();
    let id = talk(&mut *store, "a", &["x"]);
    let gap = [message(2, Role::User, "y"), message(4, Role::User, "z")];
    assert!(matches!(
        store.change().unwrap().append_messages(id, &gap),
        Err(StoreError::Damaged(_))
    ));
    assert!(store.change().unwrap().append_messages(99, &gap[..1]).is_err());
    store.change().unwrap().append_messages(id, &[]).unwrap();
    assert_eq!(texts(&store.read().messages(id, 1, 9).unwrap()), ["x"]);
    assert_eq!(store.read().message_count(id).unwrap(), 1);
}

#[test]
fn a_fork_shares_what_was_said_before_it() {
    let mut store = store();
    let old = talk(&mut *store, "old", &["1", "2", "3", "4"]);
    let fork = |parent, name: &str| NewSession { parent: Some(parent), ..named(name) };
    let first = store.change().unwrap().create_session(&fork((old, 3), "first")).unwrap();
    say(&mut *store, first, &["4'", "5'"]);
    say(&mut *store, old, &["5"]);
    let second = store.change().unwrap().create_session(&fork((first, 4), "second")).unwrap();
    let third = store.change().unwrap().create_session(&fork((second, 2), "third")).unwrap();
    say(&mut *store, second, &["5''"]);
    assert_eq!(texts(&store.read().messages(old, 1, 9).unwrap()), ["1", "2", "3", "4", "5"]);
    assert_eq!(texts(&store.read().messages(second, 1, 9).unwrap()), ["1", "2", "3", "4'", "5''"]);
    assert_eq!(texts(&store.read().messages(second, 3, 4).unwrap()), ["3", "4'"]);
    assert_eq!(texts(&store.read().messages(third, 1, 9).unwrap()), ["1", "2"]);
    let row = store.read().session(second).unwrap().unwrap();
    assert_eq!((row.messages, row.turns, row.tokens), (5, 4, 50));
    assert_eq!(row.parent, Some((first, 4)));
    let numbers: Vec<u64> =
        store.read().messages(second, 1, 9).unwrap().iter().map(|message| message.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert!(store.change().unwrap().create_session(&fork((old, 6), "too long")).is_err());
    assert!(store.change().unwrap().create_session(&fork((99, 1), "of nothing")).is_err());
}

#[test]
fn states_and_checkpoints_read_back() {
    let mut store = store();
    let id = talk(&mut *store, "a", &["x"]);
    let state = |number, kind: &str| StateRow {
        number,
        kind: kind.into(),
        base: 1,
        created: 5,
        state: format!("{{\"n\":{number}}}"),
    };
    assert_eq!(store.read().newest_state(id).unwrap(), None);
    for (number, kind) in [(1, "turn"), (2, "summary"), (3, "rollback")] {
        store.change().unwrap().append_state(id, &state(number, kind)).unwrap();
    }
    assert!(store.change().unwrap().append_state(id, &state(3, "again")).is_err());
    assert_eq!(store.read().newest_state(id).unwrap(), Some(state(3, "rollback")));
    assert_eq!(store.read().state(id, 2).unwrap(), Some(state(2, "summary")));
    assert_eq!(
        (store.read().state(id, 9).unwrap(), store.read().state(9, 1).unwrap()),
        (None, None)
    );
    let listed = store.read().states(id, 2).unwrap();
    assert_eq!(listed.iter().map(|s| &*s.kind).collect::<Vec<_>>(), ["rollback", "summary"]);

    let set = store.change().unwrap().write_set(5, &[]).unwrap();
    let made = NewCheckpoint {
        state: 2,
        position: 1,
        turn: 1,
        message: "Auto checkpoint at turn 1".into(),
        automatic: true,
        created: 6,
        items: Some(set),
    };
    let first = store.change().unwrap().add_checkpoint(id, &made).unwrap();
    let later = NewCheckpoint { items: None, automatic: false, ..made.clone() };
    store.change().unwrap().add_checkpoint(id, &later).unwrap();
    let listed: Vec<NewCheckpoint> =
        store.read().checkpoints(id).unwrap().into_iter().map(|row| row.made).collect();
    assert_eq!(listed, [made.clone(), later]);
    let row = CheckpointRow { id: first, made };
    assert_eq!(store.read().checkpoint(id, first).unwrap(), Some(row));
    assert_eq!(store.read().checkpoint(id + 1, first).unwrap(), None);
}

#[track_caller]
fn check(store: &mut dyn Store, text: &str, expected: &[(&str, Option<u64>)]) {
    let hits = store.read().search_sessions(None, text, 10, false).unwrap();
    let found: Vec<_> = hits.iter().map(|hit| (&*hit.name, hit.message)).collect();
    assert_eq!(found, expected, "{text:?}");
    assert!(hits.iter().all(|hit| hit.score > 0.0 && hit.message.is_some() == hit.role.is_some()));
}

#[test]
fn names_and_messages_are_found_by_their_words() {
    let mut store = store();
    let store = &mut *store;
    talk(store, "Fix the parser", &["parseLine fails", "it does; the größe is off", "日本語 ok"]);
    let other = talk(store, "other", &["parsing is slow", "a parser parses lines"]);
    check(store, "parser", &[("Fix the parser", None), ("other", Some(2))]);
    check(store, "parse line", &[("other", Some(2)), ("Fix the parser", Some(1))]);
    check(store, "parse_line", &[("Fix the parser", Some(1))]);
    check(store, "GRÖSSE grosse größe", &[("Fix the parser", Some(2))]);
    check(store, "日本語", &[("Fix the parser", Some(3))]);
    check(store, "does it", &[("Fix the parser", Some(2))]);
    check(store, "nowhere", &[]);
    let hit = &store.read().search_sessions(None, "slow", 10, false).unwrap()[0];
    assert_eq!((&*hit.snippet, hit.role), ("parsing is slow", Some(Role::User)));
    assert_eq!(store.read().search_sessions(None, "parser", 1, false).unwrap().len(), 1);
    store.change().unwrap().rename_session(other, "Grammar").unwrap();
    check(store, "grammar", &[("Grammar", None)]);
    check(store, "other", &[]);
    store.change().unwrap().set_session_deleted(other, Some(1)).unwrap();
    check(store, "grammar", &[]);
    check(store, "slow", &[]);
    assert_eq!(store.read().search_sessions(None, "slow", 10, true).unwrap().len(), 1);
}

#[test]
fn an_old_message_with_a_rare_word_is_found_beside_many_newer_ones() {
    let mut store = store();
    let store = &mut *store;
    talk(store, "old", &["the error of the zeppelin", "an error"]);
    let often = vec!["error in a file"; words::MOST_RANKED + 10];
    talk(store, "new", &often);
    check(store, "zeppelin error", &[("old", Some(1))]);
    check(store, "error nowhere zeppelin file", &[("old", Some(1))]);
    check(store, "zeppelin nowhere", &[("old", Some(1))]);
    let hits = store.read().search_sessions(None, "error nowhere", 5, false).unwrap();
    assert_eq!(hits.iter().map(|hit| &*hit.name).collect::<Vec<_>>(), ["new"; 5]);
}

#[test]
fn no_text_is_a_syntax_error() {
    let mut store = store();
    talk(&mut *store, "a \" b", &["NEAR(x y) \" ' * ^ : - + { } OR"]);
    let many = "w ".repeat(5) + &(0..5000).map(|n| format!("w{n} ")).collect::<String>();
    let texts = [
        "",
        " ",
        "\"",
        "'",
        "*",
        "a*",
        "\"a",
        "NEAR(a b)",
        "NEAR",
        "OR",
        "AND NOT",
        "words:x",
        "^a",
        "-a",
        "a - b",
        "{a b}: c",
        "(",
        "))",
        "a\0b",
        "\u{feff}",
        "' OR 1=1 --",
        "½ Ⅷ ²",
        "क्षि नी",
        "e\u{301}",
        "🦀",
        "\u{200d}",
        &many,
        "ﬁ ß İ",
        "__",
        "a_b__c",
    ];
    for text in texts {
        let found = store.read().search_sessions(None, text, 5, false);
        assert!(found.is_ok(), "{text:?}: {found:?}");
    }
}

#[test]
fn usage_is_listed_and_summed() {
    let mut store = store();
    let usage = |session, phase, total| UsageRow {
        session,
        at: 5,
        phase,
        strategy: "tiered".into(),
        system: 1,
        total,
        budget: 100,
        ..UsageRow::default()
    };
    let rows = [
        usage(Some(1), Some(Phase::Testing), 10),
        usage(Some(2), Some(Phase::Planning), 20),
        usage(Some(1), None, 30),
        usage(None, Some(Phase::Testing), 40),
    ];
    for row in &rows {
        store.change().unwrap().log_usage(row).unwrap();
    }
    assert_eq!(store.read().usage(None, None, u64::MAX).unwrap(), rows);
    assert_eq!(store.read().usage(None, None, 2).unwrap(), rows[2..]);
    let of_first = [rows[0].clone(), rows[2].clone()];
    assert_eq!(store.read().usage(Some(1), None, 9).unwrap(), of_first);
    assert_eq!(store.read().usage(Some(1), Some(Phase::Testing), 9).unwrap(), rows[..1]);
    let sums = |rows: Vec<PhaseUsage>| -> Vec<_> {
        rows.iter().map(|sum| (sum.phase, sum.windows, sum.system, sum.total)).collect()
    };
    let all = sums(store.read().usage_by_phase(None).unwrap());
    let expected =
        [(Some(Phase::Planning), 1, 1, 20), (Some(Phase::Testing), 2, 2, 50), (None, 1, 1, 30)];
    assert_eq!(all, expected);
    let first = sums(store.read().usage_by_phase(Some(1)).unwrap());
    assert_eq!(first, [(Some(Phase::Testing), 1, 1, 10), (None, 1, 1, 30)]);
}

#[test]
fn what_was_spent_is_added_to_its_window_and_to_the_sums() {
    let mut store = store();
    let window = |phase| UsageRow { session: Some(1), phase, ..UsageRow::default() };
    let spent = |input, output, cost| Spent {
        provider: "p".into(),
        model: "m".into(),
        input,
        output,
        cached: None,
        cost,
    };
    let [first, second, third] = [Some(Phase::Testing), Some(Phase::Testing), None]
        .map(|phase| store.change().unwrap().log_usage(&window(phase)).unwrap());
    store.change().unwrap().add_spent(first, &spent(Some(100), Some(10), Some(0.5))).unwrap();
    store.change().unwrap().add_spent(second, &spent(None, None, None)).unwrap();
    // A model was asked twice with the same window, and both answers cost money.
    store.change().unwrap().add_spent(third, &spent(Some(40), None, None)).unwrap();
    store
        .change()
        .unwrap()
        .add_spent(third, &Spent { cached: Some(9), ..spent(Some(2), Some(7), Some(0.25)) })
        .unwrap();
    store.change().unwrap().add_spent(third + 1, &spent(Some(1000), Some(1000), None)).unwrap();
    let rows = store.read().usage(None, None, 9).unwrap();
    let spents: Vec<_> = rows.into_iter().map(|row| row.spent.unwrap()).collect();
    let both = Spent { cached: Some(9), ..spent(Some(42), Some(7), Some(0.25)) };
    assert_eq!(spents, [spent(Some(100), Some(10), Some(0.5)), spent(None, None, None), both]);
    let sums = store.read().usage_by_phase(Some(1)).unwrap();
    let expected = |windows, phase, [input, output, cached]: [u64; 3], cost| PhaseUsage {
        phase,
        windows,
        reported: 1,
        input,
        output,
        cached,
        priced: 1,
        cost,
        ..PhaseUsage::default()
    };
    let of_testing = expected(2, Some(Phase::Testing), [100, 10, 0], 0.5);
    assert_eq!(sums, [of_testing, expected(1, None, [42, 7, 9], 0.25)]);
}

#[test]
fn old_usage_is_forgotten_but_not_its_sum() {
    let mut store = SqliteStore::in_memory().unwrap();
    let windows = USAGE_KEPT + 600;
    for at in 0..windows {
        let at = at.cast_signed();
        store
            .change()
            .unwrap()
            .log_usage(&UsageRow { at, total: 2, ..UsageRow::default() })
            .unwrap();
    }
    let kept = store.read().usage(None, None, u64::MAX).unwrap();
    assert!((USAGE_KEPT..USAGE_KEPT + 300).contains(&(kept.len() as u64)), "{}", kept.len());
    assert_eq!(kept.last().map(|row| row.at), Some(windows.cast_signed() - 1));
    let sums = store.read().usage_by_phase(None).unwrap();
    assert_eq!((sums[0].windows, sums[0].total), (windows, 2 * windows));
}

#[test]
fn views_are_listed_newest_first_with_every_column() {
    let view = |session, status: &str| NewNotes {
        session,
        message: 7,
        turn: 3,
        created: 5,
        status: status.into(),
        step: Some("answer".into()),
        reason: Some("no".into()),
        template: "t".into(),
        source: Some("user".into()),
        path: Some("/t.md".into()),
        sha256: Some("0f".into()),
        provider: Some("p".into()),
        model: Some("m".into()),
        recent_runs: Some(4),
        passthrough_runs: Some(1),
        token_threshold: Some(0),
        runs_shown: Some(3),
        sections: "task template".into(),
        budget: Some(100),
        prompt_tokens: Some(10),
        prompt: "Keep.".into(),
        payload: "{}".into(),
        output: "Kept.".into(),
        input_tokens: Some(11),
        output_tokens: Some(2),
        tokens_before: 50,
        tokens_after: 20,
    };
    let mut store = store();
    let made = [view(1, "managed"), view(2, "failed"), view(1, "failed")];
    let ids: Vec<u64> =
        made.iter().map(|view| store.change().unwrap().add_notes(view).unwrap()).collect();
    let row = |at: usize| NotesRow { id: ids[at], made: made[at].clone() };
    let mut views = |session, status, limit| {
        let wanted = NotesQuery { session, status, limit, ..NotesQuery::default() };
        store.read().notes(&wanted).unwrap()
    };
    assert_eq!(views(None, None, u64::MAX), [row(2), row(1), row(0)]);
    assert_eq!(views(Some(1), None, 1), [row(2)]);
    assert_eq!(views(Some(1), Some("managed"), 9), [row(0)]);
    assert_eq!(views(Some(3), None, 9), []);
}

/// Checks what a list reads by SQLite's query plan, which is the same on any machine.
#[test]
fn a_list_reads_no_message() {
    let mut store = SqliteStore::in_memory().unwrap();
    for number in 0..20 {
        talk(&mut store, &number.to_string(), &["x"; 50]);
    }
    assert_eq!(
        store.read().sessions(false).unwrap().iter().map(|row| row.messages).sum::<u64>(),
        1000
    );
    let sql = format!("EXPLAIN QUERY PLAN {}", list_sql());
    let reading = store.read();
    let mut plan = reading.db.prepare(&sql).unwrap();
    let steps: Vec<String> =
        plan.query_map([false], |row| row.get(3)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(
        steps,
        [
            "SCAN session",
            "CORRELATED SCALAR SUBQUERY 1",
            "SEARCH known USING PRIMARY KEY (kind=? AND row=?)",
            "SEARCH machine USING PRIMARY KEY (id=?)",
            "USE TEMP B-TREE FOR ORDER BY"
        ]
    );
}
