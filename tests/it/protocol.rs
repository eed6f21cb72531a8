//! The context family, rule by rule.

use crate::support::*;

#[test]
fn an_item_has_what_the_protocol_says() {
    let mut client = Home::new().ephemeral(&["--fixed-time", "1700000000"]);
    let item = client.ok(
        "add-context",
        r#"(:manager "a" :content "λ x" :type :text :metadata (:filename "a.txt" :origin :region))"#,
    );
    let expected = serde_json::json!({
        "id": "ctx-1", "type": "text", "content": "λ x", "timestamp": 1_700_000_000, "bytes": 4,
        "metadata": {"filename": "a.txt", "origin": "region"}, "state": "fresh", "live": null,
        "pinned": null, "token_counter": "estimate", "tokens": item["tokens"], "manager": "a",
        "count": 1, "total_tokens": item["tokens"], "version": item["version"],
    });
    assert_eq!(item, expected);
    assert!(item["tokens"].as_u64().unwrap() > 0);
}

#[test]
fn the_shared_manager_is_meant_when_none_is_named() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("add-context", "(:content \"a\")");
    client.ok("add-context", "(:manager nil :content \"b\")");
    assert_eq!(client.contents("*shared*"), ["a", "b"]);
    assert_eq!(client.ok("list-managers", "nil")[0]["manager"], "*shared*");
    let error = client.fails("add-context", "(:manager \"\" :content \"a\")");
    assert_eq!((error.code, error.param()), (-32602, "manager"));
}

#[test]
fn a_manager_comes_into_being_with_its_first_item() {
    let mut client = Home::new().ephemeral(&[]);
    assert!(is_nil(&client.ok("get-context", "(:manager \"new\")")));
    assert!(is_nil(&client.ok("list-managers", "nil")));
    client.add("new", "a");
    assert_eq!(client.ok("list-managers", "nil").as_array().unwrap().len(), 1);
}

#[test]
fn filters_match_types_and_origins() {
    let mut client = Home::new().ephemeral(&[]);
    for (kind, origin) in
        [("code", "region"), ("file", "buffer"), ("text", "file"), ("error", "debugger")]
    {
        let params = format!("(:content \"{kind}\" :type :{kind} :metadata (:origin :{origin}))");
        client.ok("add-context", &params);
    }
    let mut check = |types: &str, expected: &[&str]| {
        let items = client.ok("get-context", &format!("(:types {types})"));
        let items = items.as_array().cloned().unwrap_or_default();
        let found: Vec<_> = items.iter().map(|item| item["content"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{types}");
    };
    check("nil", &["code", "file", "text", "error"]);
    check("(:code)", &["code"]);
    check("(\"code\" error)", &["code", "error"]);
    check("[:region :debugger]", &["code", "error"]);
    check("(:file)", &["file", "text"]);
    check("(:repl-history)", &[]);
    let error = client.fails("get-context", "(:types (:code :colde))");
    assert_eq!((error.code, error.param()), (-32602, "types[1]"));
    for valid in ["code", "repl-history", "diagnostic", "symbol"] {
        assert!(error.message.contains(valid), "{error:?}");
    }
}

#[test]
fn limits_take_the_most_recent_oldest_first() {
    let mut client = Home::new().ephemeral(&[]);
    for content in ["a", "b", "c"] {
        client.add("*shared*", content);
    }
    let mut check = |limit: &str, expected: &[&str]| {
        let items = client.ok("get-context", &format!("(:limit {limit})"));
        let items = items.as_array().cloned().unwrap_or_default();
        let found: Vec<_> = items.iter().map(|item| item["content"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{limit}");
    };
    check("nil", &["a", "b", "c"]);
    check("0", &[]);
    check("1", &["c"]);
    check("2", &["b", "c"]);
    check("99", &["a", "b", "c"]);
    for method in ["get-context", "context-to-string", "render-items"] {
        let error = client.fails(method, "(:limit -3)");
        assert_eq!((error.code, error.param()), (-32602, "limit"));
        assert_eq!(error.message, "limit must be 0 or more, got -3");
    }
}

#[test]
fn the_filter_comes_before_the_limit() {
    let mut client = Home::new().ephemeral(&[]);
    for kind in ["code", "code", "text", "text"] {
        client.ok("add-context", &format!("(:content \"x\" :type :{kind})"));
    }
    let items = client.ok("get-context", "(:types (:code) :limit 1)");
    assert_eq!((items.as_array().unwrap().len(), &items[0]["id"]), (1, &"ctx-2".into()));
}

#[test]
fn the_capacity_is_fifty_and_the_reply_says_which_item_went() {
    let mut client = Home::new().ephemeral(&[]);
    for number in 1..=50 {
        let item = client.ok("add-context", "(:content \"x\")");
        assert_eq!((&item["count"], item.get("evicted")), (&number.into(), None));
    }
    let item = client.ok("add-context", "(:content \"x\")");
    assert_eq!(ids(&item["evicted"]), ["ctx-1"]);
    assert_eq!(item["count"], 50);
}

#[test]
fn capacities_go_from_1_to_1000() {
    let mut client = Home::new().ephemeral(&[]);
    for max_items in [0, -1, 1001] {
        let error = client.fails("configure-manager", &format!("(:max-items {max_items})"));
        assert_eq!((error.code, error.param()), (-32602, "max-items"));
        assert!(error.message.contains("1 to 1000"), "{error:?}");
    }
    for max_items in [1000, 1] {
        let answer = client.ok("configure-manager", &format!("(:max-items {max_items})"));
        assert_eq!(answer["max_items"], max_items);
    }
    client.add("*shared*", "a");
    assert_eq!(ids(&client.ok("add-context", "(:content \"b\")")["evicted"]), ["ctx-1"]);
}

#[test]
fn a_shrinking_capacity_evicts_the_oldest() {
    let mut client = Home::new().ephemeral(&[]);
    for content in ["a", "b", "c"] {
        client.add("*shared*", content);
    }
    let answer = client.ok("configure-manager", "(:max-items 1)");
    assert_eq!(ids(&answer["evicted"]), ["ctx-1", "ctx-2"]);
    client.ok("undo", "nil");
    assert_eq!(client.contents("*shared*"), ["a", "b", "c"]);
}

#[test]
fn pinned_items_are_exempt_and_a_manager_full_of_them_refuses() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("configure-manager", "(:max-items 2)");
    client.ok("add-context", "(:content \"a\" :pinned t)");
    client.add("*shared*", "b");
    assert_eq!(ids(&client.ok("add-context", "(:content \"c\")")["evicted"]), ["ctx-2"]);
    client.ok("update-items", "(:pinned t :ids (\"ctx-3\"))");
    let error = client.fails("add-context", "(:content \"d\")");
    assert_eq!((error.code, error.kind()), (1, "capacity-full"));
    assert_eq!((&error.data["capacity"], &error.data["pinned"]), (&2.into(), &2.into()));
    assert_eq!(client.contents("*shared*"), ["a", "c"]);
    let error = client.fails("configure-manager", "(:max-items 1)");
    assert_eq!(error.kind(), "pinned-exceed-capacity");
    client.ok("update-items", "(:id \"ctx-1\" :pinned nil)");
    assert_eq!(ids(&client.ok("add-context", "(:content \"e\")")["evicted"]), ["ctx-1"]);
}

#[test]
fn sixty_steps_are_undone_across_a_restart() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    for number in 0..200 {
        client.add("m", &number.to_string());
    }
    client.end();
    let mut client = home.stdio(&[]);
    for number in (140..200).rev() {
        assert_eq!(client.ok("undo", "(:manager \"m\")")["undone"], "add-item");
        let last = client.ok("get-context", "(:manager \"m\" :limit 1)");
        assert_eq!(last[0]["content"], (number - 1).to_string());
        assert_eq!(client.ok("list-items", "(:count-only t :manager \"m\")")["count"], 50);
    }
}

#[test]
fn every_change_can_be_undone_across_a_restart() {
    let home = Home::new();
    let file = home.write("a.txt", "a\n");
    home.write("b.txt", "b\n");
    let mut client = home.stdio(&[]);
    let mut states = Vec::new();
    let state = |client: &mut Client| client.ok("get-context", "nil");
    // Each with the name that `undo` has for the change, if that is not the method's.
    let names = |method: &str, params: &str| match (method, params) {
        ("update-items", params) if params.contains(":pinned") => "pin-items",
        ("save-set", params) if params.contains(":drop") => "drop-set",
        ("remove-items", "(:all t)") => "clear-manager",
        ("remove-items", "(:all t :reset t)") => "drop-manager",
        _ => "",
    };
    let changes = [
        ("add-item", "(:content \"one\")".to_owned()),
        ("add-file", format!("(:path {})", quoted(&file))),
        ("add-tree", format!("(:path {})", quoted(home.file("").to_str().unwrap()))),
        ("update-items", "(:id \"ctx-1\" :content \"uno\" :type :text)".to_owned()),
        ("update-items", "(:pinned t :id \"ctx-1\")".to_owned()),
        ("move-items", "(:id \"ctx-1\" :after \"ctx-3\")".to_owned()),
        ("configure-manager", "(:max-items 2)".to_owned()),
        ("save-set", "(:name \"s\")".to_owned()),
        ("remove-items", "(:id \"ctx-1\")".to_owned()),
        ("load-set", "(:name \"s\")".to_owned()),
        ("save-set", "(:name \"s\" :drop t)".to_owned()),
        ("remove-items", "(:all t)".to_owned()),
        ("add-item", "(:content \"two\")".to_owned()),
        ("remove-items", "(:all t :reset t)".to_owned()),
    ];
    for (method, params) in &changes {
        states.push(state(&mut client));
        client.ok(method, params);
    }
    client.end();
    let mut client = home.stdio(&[]);
    for ((method, params), before) in changes.iter().zip(&states).rev() {
        let name = Some(names(method, params)).filter(|name| !name.is_empty()).unwrap_or(method);
        assert_eq!(client.ok("undo", "nil")["undone"], name);
        assert_eq!(state(&mut client), *before, "after undoing {method}");
    }
    let error = client.fails("undo", "nil");
    assert_eq!((error.code, error.kind()), (1, "nothing-to-undo"));
}

#[test]
fn a_clear_is_undone() {
    let mut client = Home::new().ephemeral(&[]);
    for content in ["a", "b", "c"] {
        client.add("m", content);
    }
    client.ok("update-items", "(:pinned t :manager \"m\" :id \"ctx-2\")");
    let before = client.ok("get-context", "(:manager \"m\")");
    assert_eq!(client.ok("clear-context", "(:manager \"m\")")["removed"], 3);
    assert!(client.contents("m").is_empty());
    assert_eq!(client.ok("undo", "(:manager \"m\")")["count"], 3);
    assert_eq!(client.ok("get-context", "(:manager \"m\")"), before);
}

#[test]
fn removing_is_all_or_nothing() {
    let mut client = Home::new().ephemeral(&[]);
    client.add("*shared*", "a");
    client.add("other", "b");
    let error = client.fails("remove-items", "(:ids (\"ctx-1\" \"ctx-2\"))");
    assert_eq!((error.code, error.kind()), (1, "no-such-item"));
    assert_eq!(error.data["held_by"], "other");
    assert_eq!(client.contents("*shared*"), ["a"]);
    let error = client.fails("remove-items", "(:id \"one\")");
    assert_eq!((error.code, error.param()), (-32602, "id"));
    assert_eq!(client.fails("remove-items", "nil").param(), "id");
    assert_eq!(client.ok("remove-items", "(:ids (\"ctx-1\" \"ctx-1\"))")["removed"], 1);
}

#[test]
fn an_update_keeps_id_time_place_and_pin() {
    let mut client = Home::new().ephemeral(&["--fixed-time", "5"]);
    client.ok("add-context", "(:content \"a\" :pinned t :metadata (:x 1))");
    client.add("*shared*", "b");
    let update = "(:id \"ctx-1\" :content \"long text\" :type :text)";
    let item = client.ok("update-items", update)["item"].clone();
    assert_eq!((&item["id"], &item["timestamp"]), (&"ctx-1".into(), &5.into()));
    assert_eq!((&item["pinned"], &item["metadata"]["x"]), (&true.into(), &1.into()));
    assert_eq!((&item["type"], &item["bytes"]), (&"text".into(), &9.into()));
    assert_eq!(client.contents("*shared*"), ["long text", "b"]);
}

#[test]
fn items_move() {
    let mut client = Home::new().ephemeral(&[]);
    for content in ["a", "b", "c"] {
        client.add("*shared*", content);
    }
    let mut check = |params: &str, expected: [&str; 3]| {
        assert_eq!(ids(&client.ok("move-items", params)["ids"]), expected, "{params}");
    };
    check("(:id \"ctx-3\" :to 0)", ["ctx-3", "ctx-1", "ctx-2"]);
    check("(:id \"ctx-3\" :after \"ctx-1\")", ["ctx-1", "ctx-3", "ctx-2"]);
    check("(:id \"ctx-2\" :before \"ctx-1\")", ["ctx-2", "ctx-1", "ctx-3"]);
    check("(:id \"ctx-2\" :to 99)", ["ctx-1", "ctx-3", "ctx-2"]);
    assert_eq!(client.fails("move-items", "(:id \"ctx-1\")").param(), "to");
}

#[test]
fn sets_are_kept_across_a_restart_and_loaded_as_copies() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    client.ok("add-context", "(:content \"a\" :pinned t :metadata (:filename \"x.el\"))");
    client.add("*shared*", "b");
    assert_eq!(client.ok("save-set", "(:name \"work\")")["count"], 2);
    client.end();
    let mut client = home.stdio(&[]);
    let sets = client.ok("list-sets", "nil");
    assert_eq!((&sets[0]["name"], &sets[0]["count"]), (&"work".into(), &2.into()));
    client.add("m", "old");
    let loaded = client.ok("load-set", "(:name \"work\" :manager \"m\")");
    assert_eq!(ids(&loaded["ids"]), ["ctx-4", "ctx-5"]);
    assert_eq!(ids(&loaded["left"]), ["ctx-3"]);
    let items = client.ok("get-context", "(:manager \"m\")");
    assert_eq!((&items[0]["pinned"], &items[0]["content"]), (&true.into(), &"a".into()));
    assert_eq!(items[0]["metadata"]["filename"], "x.el");
    let appended = client.ok("load-set", "(:name \"work\" :manager \"m\" :mode :append)");
    assert_eq!(ids(&appended["ids"]), ["ctx-6", "ctx-7"]);
    assert_eq!(client.contents("m"), ["a", "b", "a", "b"]);
    let error = client.fails("load-set", "(:name \"wrok\")");
    assert_eq!((error.code, error.kind()), (1, "no-such-set"));
    assert!(error.message.contains("work"));
}

#[test]
fn ids_grow_across_managers_and_restarts() {
    let home = Home::new();
    let mut expected = 1;
    for _ in 0..3 {
        let mut client = home.stdio(&[]);
        for manager in ["a", "b", "a"] {
            assert_eq!(client.add(manager, "x"), format!("ctx-{expected}"));
            expected += 1;
        }
        client.ok("clear-context", "(:manager \"a\")");
        client.ok("undo", "(:manager \"b\")");
        client.end();
    }
}

#[test]
fn timestamps_never_decrease_when_the_clock_goes_back() {
    let home = Home::new();
    for (now, expected) in [("1000", 1000), ("500", 1000), ("1500", 1500), ("-5", 1500)] {
        let mut client = home.stdio(&[&format!("--fixed-time={now}")]);
        assert_eq!(client.ok("add-context", "(:content \"x\")")["timestamp"], expected);
        client.end();
    }
    let mut client = home.stdio(&[]);
    let items = client.ok("get-context", "nil");
    let ids: Vec<_> = items.as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    assert_eq!(ids, ["ctx-1", "ctx-2", "ctx-3", "ctx-4"]);
}

#[test]
fn metadata_is_kept_whole_in_both_dialects_across_a_restart() {
    const BIG: &str = "123456789012345678901234567890";
    let home = Home::new();
    let native = r#"(:filename "a.el" :my-key (1 2.5 "x" nil t sym :kw [1 (:a 1)]) :other-thing (:deep (:er "é")) :big 123456789012345678901234567890 :package "p")"#;
    let json = r#"{"filename":"a.el","my_key":[1,2.5,"x",null,true,{"a":[]}],"other_thing":{"deep":{"er":"é"}},"no":false,"big":123456789012345678901234567890}"#;
    let mut client = home.stdio(&[]);
    let mut added = vec![
        client.ok("add-context", &format!("(:content \"n\" :metadata {native})"))["metadata"]
            .take(),
    ];
    client.end();
    let mut client = home.stdio(&[]);
    client.dialect = Dialect::Json;
    let line = format!(
        r#"{{"id":1,"method":"add-context","params":{{"content":"j","metadata":{json}}}}}"#
    );
    client.write(format!("{line}\n").as_bytes());
    let answer = client.line().unwrap();
    assert!(answer.contains(BIG), "{answer}");
    added.push(parse(Dialect::Json, &answer)["result"]["metadata"].take());
    client.end();
    assert_eq!(added[0]["my_key"][7][1]["a"], 1);
    assert_eq!(added[0]["other_thing"]["deep"]["er"], "é");
    assert_eq!(added[1], serde_json::from_str::<Json>(json).unwrap());
    for dialect in [Dialect::Native, Dialect::Json] {
        let mut client = home.stdio(&[]);
        client.dialect = dialect;
        let items = client.ok("get-context", "nil");
        for (item, added) in items.as_array().unwrap().iter().zip(&added) {
            let [kept, added] = [&item["metadata"], added].map(nil_as_one);
            assert_eq!(kept, added, "{dialect:?}");
        }
        // The tests read numbers as serde_json does, which rounds so large ones.
        client.write(match dialect {
            Dialect::Native => &b"(:id 9 :method \"get-context\" :params nil)\n"[..],
            _ => &b"{\"id\":9,\"method\":\"get-context\",\"params\":{}}\n"[..],
        });
        let answer = client.line().unwrap();
        assert_eq!(answer.matches(BIG).count(), 2, "{answer}");
        client.end();
    }
}

/// Native has one word for null, false and the empty list.
fn nil_as_one(value: &Json) -> Json {
    match value {
        value if is_nil(value) => Json::Null,
        Json::Array(items) => items.iter().map(nil_as_one).collect(),
        Json::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), nil_as_one(value))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn metadata_that_means_something_must_be_well_formed() {
    let mut client = Home::new().ephemeral(&[]);
    for (metadata, param) in [
        ("(:start-line 0)", "metadata.start-line"),
        ("(:start-line \"1\")", "metadata.start-line"),
        ("(:start-line 5 :end-line 4)", "metadata.end-line"),
        ("(:origin :moon)", "metadata.origin"),
        ("(:filename 3)", "metadata.filename"),
        ("(:filename)", "metadata"),
        ("\"x\"", "metadata"),
    ] {
        let error = client.fails("add-context", &format!("(:content \"x\" :metadata {metadata})"));
        assert_eq!((error.code, error.param()), (-32602, param), "{metadata}");
    }
    assert!(client.contents("*shared*").is_empty());
}

#[test]
fn parameters_are_checked_and_named() {
    let mut client = Home::new().ephemeral(&[]);
    for (method, params, param) in [
        ("add-context", "(:content 3)", "content"),
        ("add-context", "(:content \"x\" :type :novel)", "type"),
        ("add-context", "(:content \"x\" :live t)", "live"),
        ("get-context", "(:limit \"3\")", "limit"),
        ("get-context", "(:manager \"a\" :managers (\"b\"))", "managers"),
        ("add-file", "(:path \"/x\" :end-line 3)", "start-line"),
        ("update-items", "(:id 7)", "id"),
        ("load-set", "(:name \"\")", "name"),
    ] {
        let error = client.fails(method, params);
        assert_eq!((error.code, error.param()), (-32602, param), "{method} {params} {error:?}");
    }
    for (method, params, name) in
        [("add-context", "nil", "content"), ("ping", "(:extra 1)", "extra")]
    {
        let error = client.fails(method, params);
        assert_eq!(error.code, -32602);
        assert!(error.message.contains(name), "{error:?}");
    }
}

#[test]
fn integers_out_of_range_are_errors() {
    let mut client = Home::new().ephemeral(&[]);
    for number in ["99999999999999999999", "-99999999999999999999", "1.5", "1e300"] {
        let error = client.fails("get-context", &format!("(:limit {number})"));
        assert_eq!((error.code, error.param()), (-32602, "limit"), "{error:?}");
        let error = client.fails("configure-manager", &format!("(:max-items {number})"));
        assert_eq!((error.code, error.param()), (-32602, "max-items"), "{error:?}");
    }
    client.add("*shared*", "a");
    let items = client.ok("get-context", "(:limit 9223372036854775807)");
    assert_eq!(items.as_array().unwrap().len(), 1);
    assert_eq!(client.fails("remove-items", "(:id \"ctx-99999999999999999999\")").param(), "id");
    assert_eq!(client.fails("remove-items", "(:id \"ctx-18446744073709551615\")").param(), "id");
}

#[test]
fn what_was_accepted_before_the_end_is_carried_out_and_answered() {
    let home = Home::new();
    let mut client = home.stdio(&[]);
    let add = client.send("add-context", "(:content \"last words\")");
    let summary = client.send("list-items", "(:count-only t)");
    let end = client.send("shutdown", "nil");
    assert_eq!(client.reply(add).unwrap()["content"], "last words");
    assert_eq!(client.reply(summary).unwrap()["count"], 1);
    assert_eq!(client.reply(end).unwrap(), true);
    client.process().wait();
    assert_eq!(home.stdio(&[]).contents("*shared*"), ["last words"]);
}

#[test]
fn a_request_key_is_for_one_method() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("add-context", "(:content \"a\" :request-key \"k\")");
    assert_eq!(client.ok("clear-context", "(:request-key \"k\")")["removed"], 1);
    assert_eq!(client.ok("clear-context", "(:request-key \"k\")")["removed"], 1);
    assert_eq!(client.fails("clear-context", "(:request-key \"\")").param(), "request-key");
    let long = "k".repeat(2000);
    assert_eq!(client.fails("undo", &format!("(:request-key {long:?})")).param(), "request-key");
}

#[test]
fn undoing_a_set_never_takes_what_another_manager_saved_since() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("save-set", "(:manager \"a\" :name \"s\")");
    client.add("b", "content");
    client.ok("save-set", "(:manager \"b\" :name \"s\")");
    assert_eq!(client.fails("undo", "(:manager \"a\")").kind(), "set-changed");
    assert_eq!(client.ok("list-sets", "nil")[0]["count"], 1);
    client.ok("undo", "(:manager \"b\")");
    client.ok("undo", "(:manager \"a\")");
    assert!(client.ok("list-sets", "nil").as_array().is_none_or(Vec::is_empty));
}

#[test]
fn only_items_with_a_file_become_live() {
    let mut client = Home::new().ephemeral(&[]);
    let id = client.add("*shared*", "a");
    assert_eq!(client.fails("update-items", &format!("(:id {id:?} :live t)")).param(), "live");
}

#[test]
fn a_summary_has_count_types_preview_and_tokens() {
    let mut client = Home::new().ephemeral(&[]);
    assert_eq!(client.ok("list-items", "(:count-only t)")["preview"], "0 items");
    for kind in ["code", "error", "code"] {
        client.ok("add-context", &format!("(:content \"x y z\" :type :{kind})"));
    }
    let summary = client.ok("list-items", "(:count-only t)");
    assert_eq!(summary["preview"], "3 items: Code, Error");
    assert_eq!(summary["types"], serde_json::json!(["code", "error"]));
    assert_eq!(summary["count"], 3);
    let items = client.ok("get-context", "nil");
    let tokens = items.as_array().unwrap().iter().map(|item| item["tokens"].as_u64().unwrap());
    assert_eq!(summary["tokens"], tokens.sum::<u64>());
}

#[test]
fn several_managers_are_shown_in_their_order() {
    let home = Home::new();
    for (now, manager, content) in [("1", "a", "1"), ("2", "b", "2"), ("3", "a", "3")] {
        let mut client = home.stdio(&["--fixed-time", now]);
        client.add(manager, content);
        client.end();
    }
    let mut client = home.stdio(&[]);
    let items = client.ok("get-context", "(:managers (\"b\" \"a\" \"b\"))");
    let contents: Vec<_> = items.as_array().unwrap().iter().map(|item| &item["content"]).collect();
    assert_eq!(contents, ["2", "1", "3"]);
    let items = client.ok("get-context", "(:managers (\"b\" \"a\") :limit 2)");
    assert_eq!((&items[0]["content"], &items[1]["content"]), (&"2".into(), &"3".into()));
}

#[test]
fn a_repeated_request_is_answered_and_not_applied_again() {
    let home = Home::new();
    let add = "(:content \"once\" :request-key \"k1\")";
    let clear = "(:manager \"other\" :request-key \"k2\")";
    let mut client = home.stdio(&[]);
    client.add("other", "x");
    let first = client.ok("add-context", add);
    assert_eq!(client.ok("add-context", add), first);
    assert_eq!(client.ok("clear-context", clear)["removed"], 1);
    client.add("other", "y");
    client.process().kill();
    let mut client = home.stdio(&[]);
    assert_eq!(client.ok("add-context", add), first);
    assert_eq!(client.contents("*shared*"), ["once"]);
    assert_eq!(client.ok("clear-context", clear)["removed"], 1);
    assert_eq!(client.contents("other"), ["y"]);
}

#[test]
fn a_repeated_request_tells_of_items_that_have_left_since() {
    let mut client = Home::new().ephemeral(&[]);
    let add = "(:content \"once\" :request-key \"k\")";
    let id = client.ok("add-context", add)["id"].clone();
    client.ok("clear-context", "nil");
    let again = client.ok("add-context", add);
    assert_eq!((&again["id"], &again["count"]), (&id, &1.into()), "as it was answered");
    let update = format!("(:id \"{}\" :content \"z\" :request-key \"u\")", client.add("m", "y"));
    let update = update.replacen('(', "(:manager \"m\" ", 1);
    client.ok("update-items", &update);
    client.ok("clear-context", "(:manager \"m\")");
    assert!(client.call("update-items", &update).is_ok(), "it was applied and must say so");
}

#[test]
fn brief_answers_have_no_content() {
    let mut client = Home::new().ephemeral(&[]);
    let item = client.ok("add-context", "(:content \"abc\" :brief t)");
    assert_eq!((item.get("content"), &item["bytes"]), (None, &3.into()));
    assert_eq!(client.ok("get-context", "(:brief t)")[0].get("content"), None);
}

#[test]
fn dropping_a_manager_forgets_its_configuration() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("configure-manager", "(:manager \"m\" :max-items 2)");
    client.add("m", "a");
    assert_eq!(client.ok("remove-items", "(:all t :reset t :manager \"m\")")["removed"], 1);
    assert_eq!(client.ok("configure-manager", "(:manager \"m\")")["max_items"], 50);
    assert!(is_nil(&client.ok("list-managers", "nil")));
    client.ok("undo", "(:manager \"m\")");
    assert_eq!(client.ok("configure-manager", "(:manager \"m\")")["max_items"], 2);
    assert_eq!(client.contents("m"), ["a"]);
}

#[test]
fn every_method_of_the_contracts_context_and_server_rows_is_there() {
    let methods = contexture_program::internals::rpc::methods();
    let names = methods.flat_map(|method| method.contract_names().chain([method.name]));
    let names: Vec<_> = names.collect();
    for name in [
        "add-context",
        "add-file",
        "add-tree",
        "update-items",
        "remove-items",
        "move-items",
        "clear-context",
        "undo",
        "get-context",
        "context-to-string",
        "render-items",
        "refresh-items",
        "list-managers",
        "configure-manager",
        "save-set",
        "load-set",
        "list-sets",
        "ping",
        "initialize",
        "schema",
        "subscribe",
        "cancel",
        "shutdown",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn unknown_methods_are_told_the_nearest_names() {
    let error = Home::new().ephemeral(&[]).fails("add-contxt", "nil");
    assert_eq!(error.code, -32601);
    assert!(error.message.contains("add-context"), "{error:?}");
    assert_eq!(error.data["nearest"][0], "add-context");
}

#[test]
fn errors_quote_little_of_what_the_call_had() {
    let mut client = Home::new().ephemeral(&[]);
    let long = "x".repeat(200_000);
    let mut seen = 0;
    for method in contexture_program::internals::rpc::methods().filter(|it| it.name != "shutdown") {
        for param in method.params() {
            let others = method.params().iter().filter(|it| it.required && it.name != param.name);
            let others: String = others.map(|it| format!(" :{} \"a\"", it.name)).collect();
            let params = format!("(:{} {long:?}{others})", param.name);
            let Err(error) = client.call(method.name, &params) else { continue };
            let size = error.message.len().max(error.data.to_string().len());
            assert!(size < 40_000, "{} :{} {size}", method.name, param.name);
            seen += 1;
        }
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn server_info_says_what_it_is() {
    let home = Home::new();
    let mut client = home.stdio(&["--max-message-bytes", "12345"]);
    let info = client.ok("initialize", "nil");
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(info["dialects"], serde_json::json!(["native", "json", "epc", "slynk"]));
    assert_eq!(info["limits"]["max_message_bytes"], 12345);
    assert_eq!(info["limits"]["max_depth"], 512);
    assert_eq!(info["state"], home.state().to_str().unwrap());
    assert_eq!(info["pid"], client.process().pid());
    assert!(is_nil(&Home::new().ephemeral(&[]).ok("initialize", "nil")["state"]));
}

#[test]
fn context_changed_goes_to_exactly_the_subscribers() {
    let server = Home::new();
    let server = server.listening(&["--ephemeral"]);
    let mut subscribed = server.unix(Dialect::Native);
    let mut also = server.tcp(Dialect::Json);
    let mut other = server.unix(Dialect::Native);
    let mut elsewhere = server.unix(Dialect::Native);
    subscribed.ok("subscribe", "(:topics (:context-changed))");
    also.ok("subscribe", "(:topics (:context-changed))");
    elsewhere.ok("subscribe", "(:topics (:stats))");
    other.add("m", "a");
    for client in [&mut subscribed, &mut also] {
        let params = client.notification("context-changed");
        assert_eq!((&params["manager"], &params["count"]), (&"m".into(), &1.into()));
        assert!(params["tokens"].as_u64().unwrap() > 0);
    }
    assert_eq!(elsewhere.notification("stats")["items_entered"], 1);
    subscribed.ok("subscribe", "(:topics nil)");
    other.add("m", "b");
    assert_eq!(also.notification("context-changed")["count"], 2);
    for client in [&mut subscribed, &mut other, &mut elsewhere] {
        client.ok("ping", "nil");
        assert_eq!(client.set_aside("context-changed"), 0);
    }
    let error = other.fails("subscribe", "(:topics (:weather))");
    assert_eq!((error.code, error.param()), (-32602, "topics[0]"));
    assert!(error.message.contains("context-changed"), "{error:?}");
}

#[test]
fn reading_notifies_nobody() {
    let mut client = Home::new().ephemeral(&[]);
    client.ok("subscribe", "(:topics (:context-changed))");
    client.ok("get-context", "nil");
    client.ok("clear-context", "nil");
    client.ok("context-to-string", "nil");
    client.ok("ping", "nil");
    assert_eq!(client.set_aside("context-changed"), 0);
}
