//! The records before which the user went back. Codex says how many of the user's turns are undone.
//! In Claude Code's recordings, each record names the record that it follows. A record that does
//! not lead to the last record need not be rewound, since the results of parallel calls each follow
//! one call. Only a prompt that does not lead to the last record is rewound, with all that follows
//! it.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::hash::record_hash;
use super::json::{ContentBlock, content, join};
use super::lines::{LineRead, SourceLines};
use super::said::separated;

/// Ids of records, as hashes.
#[derive(Debug, Clone, Default)]
pub struct Rewound(HashSet<u64>);

impl Rewound {
    pub(super) fn has(&self, id: Option<&str>) -> bool {
        !self.0.is_empty() && id.is_some_and(|id| self.has_hash(record_hash(id)))
    }

    pub(super) fn has_hash(&self, hash: u64) -> bool {
        self.0.contains(&hash)
    }
}

/// A record as far as it shows its place.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RewoundRecord<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    uuid: Option<String>,
    parent_uuid: Option<String>,
    logical_parent_uuid: Option<String>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// A payload of Codex as far as it shows turns.
#[derive(Deserialize)]
struct RewoundPayload<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    role: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    num_turns: Option<usize>,
}

/// Returns the id by which a line without an id is known.
pub(super) fn line_id(line: u64) -> String {
    format!("line {line}")
}

/// The lines of Codex that are part of the session so far.
#[derive(Default)]
struct Turns {
    lines: Vec<u64>,
    /// Of the user's messages, the number of lines before.
    prompts: Vec<usize>,
    undone: HashSet<u64>,
}

impl Turns {
    /// Notes a line with a payload.
    fn note(&mut self, line: u64, payload: &RawValue) {
        let Ok(payload) = serde_json::from_str::<RewoundPayload<'_>>(payload.get()) else { return };
        let text = || payload.content.map_or(String::new(), said_in);
        match (&*payload.kind, payload.role.as_deref()) {
            ("thread_rolled_back", _) => {
                let count = payload.num_turns.unwrap_or_default().min(self.prompts.len());
                let first = self.prompts.len() - count;
                let from = self.prompts.get(first).copied().unwrap_or(self.lines.len());
                self.prompts.truncate(first);
                let undone = self.lines.drain(from..);
                self.undone.extend(undone.map(|line| record_hash(&line_id(line))));
            }
            ("message", Some("user")) if !separated(&text()).by_user.trim().is_empty() => {
                self.prompts.push(self.lines.len());
                self.lines.push(line);
            }
            _ => self.lines.push(line),
        }
    }
}

/// Returns the text of a message.
fn said_in(raw: &RawValue) -> String {
    let (mut text, blocks) = content(Some(raw)).unwrap_or_default();
    blocks.iter().filter_map(ContentBlock::as_text).for_each(|part| join(&mut text, &part));
    text
}

impl RewoundRecord<'_> {
    /// Returns whether the user wrote the record, so that it begins a turn.
    fn is_prompt(&self) -> bool {
        let text = self.message.map_or("", |message| message.get());
        let has = |sign: &str| memchr::memmem::find(text.as_bytes(), sign.as_bytes()).is_some();
        self.kind == "user"
            && self.is_meta != Some(true)
            && self.is_compact_summary != Some(true)
            && !has("\"tool_result\"")
            && !has("[Request interrupted by user")
    }
}

/// The place of a record among those with an id.
struct RewoundPlace {
    id: u64,
    /// Index of the record that this one follows; `None` for the first one.
    parent: Option<usize>,
    is_prompt: bool,
    /// True for what the user or the agent said.
    is_said: bool,
}

/// Returns the records before which the user went back, of a recording of Claude Code or Codex that is
/// read from its beginning.
///
/// # Errors
/// The error of the source.
pub fn rewound(source: impl BufRead) -> io::Result<Rewound> {
    let mut lines = SourceLines::new(source, 0, 0);
    let (mut places, mut known, mut is_linked) =
        (Vec::<RewoundPlace>::new(), HashMap::new(), false);
    let mut turns = Turns::default();
    loop {
        match lines.next()? {
            LineRead::End => break,
            LineRead::TooLong => continue,
            LineRead::Half => lines.take(),
            LineRead::Whole => {}
        }
        let text = lines.text.trim_ascii_end();
        let Ok(record) = serde_json::from_slice::<RewoundRecord<'_>>(text) else { continue };
        if let Some(payload) = record.payload {
            turns.note(lines.count, payload);
        }
        let Some(uuid) = record.uuid.as_deref().filter(|_| record.is_sidechain != Some(true))
        else {
            continue;
        };
        let (id, is_prompt) = (record_hash(uuid), record.is_prompt());
        let named = record.parent_uuid.as_deref().or(record.logical_parent_uuid.as_deref());
        let found = named.and_then(|id| known.get(&record_hash(id)).copied());
        is_linked |= found.is_some();
        let previous = places.len().checked_sub(1);
        // A prompt that follows nothing goes back to the beginning, if records name what they follow.
        let begins = named.is_none() && is_prompt && is_linked;
        let parent = if begins { None } else { found.or(previous) };
        known.entry(id).or_insert(places.len());
        let is_said = matches!(&*record.kind, "user" | "assistant");
        places.push(RewoundPlace { id, parent, is_prompt, is_said });
    }
    turns.undone.extend(off_the_way(&places));
    Ok(Rewound(turns.undone))
}

fn off_the_way(places: &[RewoundPlace]) -> HashSet<u64> {
    let mut is_on = vec![false; places.len()];
    let mut next = places.iter().rposition(|place| place.is_said);
    while let Some(at) = next.filter(|at| !is_on[*at]) {
        is_on[at] = true;
        next = places[at].parent;
    }
    let mut is_cut = vec![false; places.len()];
    for (at, place) in places.iter().enumerate().filter(|(at, _)| !is_on[*at]) {
        is_cut[at] = place.is_prompt || place.parent.is_some_and(|parent| is_cut[parent]);
    }
    let cut = places.iter().zip(is_cut).filter(|(_, is_cut)| *is_cut);
    cut.map(|(place, _)| place.id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks records such as `u2<a1`, of the user (`u`), the agent (`a`) or a result (`r`).
    #[track_caller]
    fn check(records: &str, expected: &str) {
        let line = |record: &str| {
            let (id, parent) = record.split_once('<').unwrap_or((record, ""));
            let parent = if parent.is_empty() { "null".into() } else { format!("\"{parent}\"") };
            let (kind, content) = match &id[..1] {
                "u" => ("user", r#""hello""#),
                "r" => ("user", r#"[{"type":"tool_result","tool_use_id":"x"}]"#),
                _ => ("assistant", r#""yes""#),
            };
            format!(
                "{{\"type\":\"{kind}\",\"uuid\":\"{id}\",\"parentUuid\":{parent},\
                 \"message\":{{\"content\":{content}}}}}\n"
            )
        };
        let text: String = records.split(' ').map(line).collect();
        let rewound = rewound(text.as_bytes()).unwrap();
        let ids = records.split(' ').map(|it| it.split('<').next().unwrap());
        let gone: Vec<&str> = ids.filter(|id| rewound.has(Some(id))).collect();
        assert_eq!(gone.join(" "), expected, "{records}");
    }

    #[test]
    fn prompts_off_the_way_to_the_last_record_are_rewound() {
        check("u1 a1<u1 u2<a1 a2<u2 u3<a1 a3<u3", "u2 a2");
        check("u1 a1<u1 u2 a2<u2", "u1 a1");
        check("u1 a1<u1 u2<a1 a2<u2 r2<a2 u3<a2", "");
        check("u1 a1<u1 u2<gone a2<u2", "");
        check("u1 a1 u2 a2", "");
        check("u1<a1 a1<u1", "");
    }

    #[test]
    fn turns_that_codex_undid_are_rewound() {
        let line = |payload: &str| format!("{{\"type\":\"x\",\"payload\":{payload}}}\n");
        let said = |role: &str, text: &str| {
            line(&format!(
                "{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{text}\"}}]}}"
            ))
        };
        let undo = |turns: usize| {
            line(&format!("{{\"type\":\"thread_rolled_back\",\"num_turns\":{turns}}}"))
        };
        let of_program = said("user", "<turn_aborted>x</turn_aborted>");
        let turn = || said("user", "go") + &said("assistant", "yes");
        let text = [turn(), turn(), of_program, undo(1), turn(), turn(), undo(2), turn()].concat();
        let rewound = rewound(text.as_bytes()).unwrap();
        let gone: Vec<u64> = (1..20).filter(|line| rewound.has(Some(&line_id(*line)))).collect();
        assert_eq!(gone, [3, 4, 5, 7, 8, 9, 10]);
    }

    #[test]
    fn results_of_calls_side_by_side_are_not_rewound() {
        check("u1 a1<u1 a2<a1 r1<a1 r2<a2 a3<r2", "");
    }
}
