//! Tests of pruned histories.

use super::*;
use crate::curation::testing::{Random, history, messages, plain};
use crate::curation::unit::Unit;
use crate::session::message::Message;

#[track_caller]
fn check(words: &str, max_tokens: Option<u64>, kept: &[u64], removed: &[u64]) -> Pruned {
    let (messages, measure) = (messages(words), plain());
    let history = history(&messages, &measure);
    let model = Model::named("unknown", &[]);
    let pruned = prune(&history, max_tokens, &model).unwrap();
    assert_eq!((&*pruned.kept, &*pruned.removed), (kept, removed), "{words}");
    pruned
}

#[test]
fn within_the_target_nothing_changes() {
    check("s u a u a u", Some(6), &[1, 2, 3, 4, 5, 6], &[]);
    // The target is 80 % of the limit of an unknown model, which is 100,000.
    check("u=1 a=79998 u=1", None, &[1, 2, 3], &[]);
    check("u=1 a=79999 u=1", None, &[1, 3], &[2]);
    check("", Some(0), &[], &[]);
}

#[test]
fn the_lowest_scores_go_and_are_listed() {
    let pruned = check("s u a u a u", Some(4), &[1, 2, 4, 6], &[3, 5]);
    let expected = PruneStats { original: 6, remaining: 4, items_removed: 2, items_kept: 4 };
    assert_eq!((pruned.stats, pruned.stats.token_reduction()), (expected, 2));
    assert_eq!(pruned.verdicts[2].score.as_ref().unwrap().total, 18.0);
}

#[test]
fn calls_go_with_their_results() {
    check("u a>1 t<1 a a u a", Some(5), &[1, 4, 5, 6, 7], &[2, 3]);
}

#[test]
fn mandatory_messages_must_fit() {
    let (messages, measure) = (messages("s=5 u=5 a=9 u=5 a=5"), plain());
    let history = history(&messages, &measure);
    let model = Model::named("", &[]);
    let error = prune(&history, Some(19), &model).unwrap_err();
    assert_eq!((error.needed, error.parts.len()), (20, 4));
    assert_eq!(error.parts[3].reason, "the last message");
    assert!(prune(&history, Some(20), &model).is_ok());
}

#[test]
fn beyond_eighty_percent_pruning_is_due() {
    let measure = plain();
    let model = Model::named("gpt-5", &[]);
    for (words, percent, needed) in [("u=102400", 80.0, false), ("u=64000 a=64000", 100.0, true)] {
        let messages = messages(words);
        let history = history(&messages, &measure);
        let stats = stats(&history, &model);
        assert_eq!((stats.utilization_percent, stats.needs_pruning), (percent, needed));
        assert_eq!((stats.limit, stats.items), (128_000, messages.len() as u64));
    }
}

#[test]
fn managing_prunes_only_when_needed() {
    let measure = plain();
    let model = Model::named("", &[]);
    let (fits, over) = (messages("u a u"), messages("u a=50000 a=50000 u"));
    let managed = auto_manage(&history(&fits, &measure), None, &model).unwrap();
    assert_eq!((managed.kept, managed.removed), (vec![1, 2, 3], vec![]));
    let managed = auto_manage(&history(&over, &measure), None, &model).unwrap();
    assert_eq!((managed.kept, managed.removed), (vec![1, 3, 4], vec![2]));
}

#[test]
fn random_histories_are_pruned_within_the_limit_and_whole() {
    let (measure, model) = (plain(), Model::named("", &[]));
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let messages = random.messages(40);
        let history = history(&messages, &measure);
        let max_tokens = random.below(history.tokens() + 5);
        let Ok(pruned) = prune(&history, Some(max_tokens), &model) else { continue };
        assert!(pruned.stats.remaining <= max_tokens, "{seed}");
        assert_eq!(pruned.kept.last(), messages.last().map(|message| &message.number), "{seed}");
        let whole = |unit: &Unit| {
            let stays = |message: &&Message| pruned.kept.contains(&message.number);
            let count = history.members(unit).filter(stays).count();
            count == unit.members.len() || (count == 0 && unit.kept.is_none())
        };
        assert!(history.units.iter().all(whole), "{seed}");
    }
}
