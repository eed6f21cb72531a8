//! Tests of request keys.

use super::*;
use crate::context::change::Settings;
use crate::store::sqlite::SqliteStore;
use crate::value::json::from_json;

fn keyed(mut params: Value) -> Keyed {
    let keyed = Keyed::take("undo", &mut params, true).unwrap().unwrap();
    assert_eq!(params.get(KEY), None);
    keyed
}

#[test]
fn a_call_is_the_same_in_either_notation() {
    let lisp = r#"(:request-key k :types (:code :file) :metadata (:b_c 1 :a (2 t)) :limit nil :request-key other)"#;
    let json =
        br#"{"metadata": {"a": [2, true], "b_c": 1}, "types": ["code", "file"], "live": false,
                    "request_key": "k"}"#;
    let (lisp, json) = (keyed(sexp::read(lisp).unwrap()), keyed(from_json(json).unwrap()));
    assert_eq!((&lisp.name, &lisp.hash), (&json.name, &json.hash));
    let other = keyed(sexp::read("(:request-key k :types (:file))").unwrap());
    assert_eq!(other.name, lisp.name);
    assert_ne!(other.hash, lisp.hash);
    let elsewhere = keyed(sexp::read("(:request-key k :manager m)").unwrap());
    assert_ne!(elsewhere.name, lisp.name);
}

#[test]
fn a_part_of_a_method_is_the_same_in_either_spelling() {
    let name = |params: &str| {
        let mut params = sexp::read(params).unwrap();
        Keyed::take("prune-session", &mut params, true).unwrap().unwrap().earlier
    };
    let names = ["(:request-key k :if-needed t)", "(:request_key k :if_needed t)"].map(name);
    assert_eq!(names, ["auto-manage-context k"; 2]);
}

fn engine() -> Engine {
    let store = Box::new(SqliteStore::in_memory().unwrap());
    Engine::new(store, Box::new(|| 0), Settings { max_items: 3 }).unwrap()
}

#[test]
fn what_an_earlier_release_applied_is_not_applied_again() {
    let mut engine = engine();
    engine.record("undo k", "null").unwrap();
    let once = keyed(sexp::read("(:request-key k)").unwrap())
        .once(Box::new(|_| panic!("it was applied before")));
    let Ok(Finish::Refused(error)) = once(&mut engine) else { panic!("it must be refused") };
    assert!(error.message.contains("earlier release"), "{}", error.message);
    let once = keyed(sexp::read("(:request-key l)").unwrap())
        .once(Box::new(|_| Ok(Finish::Now(Value::Nil))));
    assert!(matches!(once(&mut engine), Ok(Finish::Now(Value::Nil))));
}

#[test]
fn a_call_whose_answer_is_damaged_is_not_applied_again() {
    let mut engine = engine();
    let keyed = keyed(sexp::read("(:request-key k)").unwrap());
    engine.record(&keyed.name, &format!("{} (", keyed.hash)).unwrap();
    let once = keyed.once(Box::new(|_| panic!("it was applied before")));
    let Ok(Finish::Refused(error)) = once(&mut engine) else { panic!("it must be refused") };
    assert_eq!(error.data.get("kind"), Some(&Value::Keyword("store-failed".into())));
    assert!(error.message.contains("this one changed nothing"), "{}", error.message);
}
