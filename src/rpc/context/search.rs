//! The search for words in items.

use crate::context::item::State;
use crate::engine::View;
use crate::retrieval::excerpt::excerpt;
use crate::retrieval::scan::scores;
use crate::retrieval::words::stems;
use crate::store::MOST_WORDS;

/// Default number of hits.
pub(super) const DEFAULT_HITS: usize = 20;

/// What a search says about an item that it found.
pub(super) struct HitInItem {
    pub(super) score: f64,
    pub(super) excerpt: String,
}

/// Returns the items that have words of the query, best first; at most `limit`.
pub(super) fn best(
    views: Vec<(View, State)>,
    query: &str,
    limit: usize,
) -> Vec<((View, State), Option<HitInItem>)> {
    let mut sought = stems(query);
    sought.sort_unstable();
    sought.dedup();
    sought.truncate(MOST_WORDS);
    let texts = views
        .iter()
        .map(|(view, _)| [&*view.item.content, view.item.metadata.filename().unwrap_or_default()]);
    let scores = scores(texts, &sought);
    let mut found: Vec<_> =
        views.into_iter().zip(scores).filter(|(_, score)| *score > 0.0).collect();
    // The sort is stable: items with equal scores keep their order.
    found.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let hit = |(shown, score): ((View, State), f64)| {
        let excerpt = excerpt(&shown.0.item.content, query);
        (shown, Some(HitInItem { score, excerpt }))
    };
    found.into_iter().take(limit).map(hit).collect()
}
