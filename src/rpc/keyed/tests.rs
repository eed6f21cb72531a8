//! Tests of request keys.

use super::*;
use crate::context::change::ContextSettings;
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

fn engine() -> Engine {
    let store = Box::new(SqliteStore::in_memory().unwrap());
    Engine::new(store, Box::new(|| 0), ContextSettings { max_items: 3 }).unwrap()
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
