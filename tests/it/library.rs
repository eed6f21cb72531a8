//! The library as other programs use it.

use contexture::conversation::{Conversation, Utterance};
use contexture::curation::config::TurnConfig;
use contexture::session::message::Role;
use contexture::tokens::TokenizerName;

#[path = "../../examples/agent_loop.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "it is a program of its own, whose main nobody calls here"
)]
mod agent_loop;

#[test]
fn the_example_summarizes_takes_checkpoints_and_goes_back() {
    let mut told = Vec::new();
    let tally = agent_loop::run(&mut told).unwrap();
    let told = String::from_utf8(told).unwrap();
    assert!(tally.summaries >= 3, "{told}");
    assert!(tally.checkpoints >= 5, "{told}");
    assert!(tally.grounded >= 30, "{tally:?}");
    assert_eq!(tally.rollbacks, 1, "{told}");
    assert!(tally.largest_window <= 1_000, "{tally:?}");
}

#[test]
fn a_conversation_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Conversation::builder("a").state_folder(folder.path()).open();
    let mut conversation = open().unwrap();
    conversation.process_turn("one").unwrap();
    conversation.add_response("re one").unwrap();
    conversation.checkpoint("here").unwrap();
    let taken = open().err().unwrap().to_string();
    assert!(taken.contains("belongs to"), "{taken}");
    drop(conversation);
    let mut conversation = open().unwrap();
    conversation.process_turn("two").unwrap();
    assert_eq!(conversation.rollback(None).unwrap().turns_lost, 1);
    assert_eq!(conversation.undo_rollback().unwrap().turns_restored, 1);
    let words: Vec<_> =
        conversation.session().unwrap().in_view().map(|m| m.content.to_string()).collect();
    assert_eq!(words, ["one", "re one", "two"]);
}

#[test]
fn without_versioning_there_is_nothing_to_go_back_to() {
    let mut conversation = Conversation::builder("a").versioning(false).open().unwrap();
    conversation.process_turn("one").unwrap();
    assert_eq!(conversation.checkpoint("x").unwrap(), None);
    let error = conversation.rollback(None).unwrap_err().to_string();
    assert!(error.starts_with("versioning is not enabled"), "{error}");
}

#[test]
fn settings_out_of_range_and_unknown_strategies_are_refused() {
    let config = TurnConfig { max_tokens: 1, ..TurnConfig::default() };
    let error = Conversation::builder("a").config(config).open().err().unwrap().to_string();
    assert_eq!(error, "max-tokens is 1, but must be a whole number from 256 to 10000000");
    let error = Conversation::builder("a").strategy("best").open().err().unwrap().to_string();
    assert!(error.starts_with("no strategy \"best\"; there are tiered, "), "{error}");
}

#[test]
fn every_message_costs_what_the_tokenizer_says() {
    let mut conversation =
        Conversation::builder("a").tokenizer(TokenizerName::Estimate).open().unwrap();
    let pinned = Utterance { pinned: true, ..Utterance::of(Role::System, "12345678") };
    conversation.say(pinned).unwrap();
    conversation.process_turn("1234").unwrap();
    assert_eq!(conversation.stats().unwrap().tokens, 3);
    let window = conversation.window().unwrap();
    assert_eq!(window.tokens, 3);
    assert_eq!(window.parts.len(), 2);
}
