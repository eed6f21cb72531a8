//! Puts tool calls together from their pieces, and tells calls apart by what the server gives: ids,
//! indices, names, and whether the arguments so far are whole.

mod piece;

use serde_json::Value;

pub(super) use self::piece::{ArgumentsPiece, CallPiece, arguments, name, piece};
use super::Broken;
use super::shape::{Shaped, list, mended};
use crate::session::message::ToolCall;

/// Maximum number of calls in an answer, which bounds the time for finding a piece's call.
const MOST_CALLS: usize = 1000;

/// The calls of an answer so far.
pub(super) struct AnswerCalls {
    /// Makes generated ids differ from those of other answers.
    stamp: i64,
    calls: Vec<CallSoFar>,
}

/// The calls of a complete answer.
#[derive(Default)]
pub(super) struct Finished {
    pub(super) calls: Vec<ToolCall>,
    /// The ids that the server gave.
    pub(super) ids: Vec<String>,
    /// The extra data of each call; nothing if no call has any.
    pub(super) extras: Vec<Value>,
    /// True if arguments came that belong to no call, so that other calls may lack them.
    pub(super) has_lost: bool,
}

#[derive(Default)]
struct CallSoFar {
    index: Option<u64>,
    /// True if it began in a list of several.
    is_listed: bool,
    id: String,
    name: String,
    /// All pieces of the arguments' text.
    text: String,
    /// The last piece, while each piece repeats the pieces before it.
    repeating: Option<String>,
    /// Arguments that came as JSON.
    whole: Option<Value>,
    /// True if arguments came that contradict earlier ones.
    is_contradicted: bool,
    extra: Value,
}

impl AnswerCalls {
    pub(super) fn new(stamp: i64) -> Self {
        Self { stamp, calls: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds calls, or pieces of calls, as `OpenAI`'s interface writes them.
    pub(super) fn add_all(&mut self, value: &Value) -> Shaped<()> {
        let parts = list("tool_calls", value)?;
        for (at, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_null()) {
            self.add(piece(part)?, (parts.len() > 1).then_some(at))?;
        }
        Ok(())
    }

    /// Adds a call that comes whole.
    pub(super) fn add_whole(&mut self, call: CallPiece) -> Shaped<()> {
        self.add_at(self.calls.len(), call)
    }

    /// Adds a call, or more of it, that is at this place among the parts of the answer.
    pub(super) fn add_at(&mut self, place: usize, piece: CallPiece) -> Shaped<()> {
        self.add(CallPiece { index: Some(place as u64), ..piece }, Some(place))
    }

    /// Adds a piece. `at` is its place among the pieces that came together, if there are several.
    pub(super) fn add(&mut self, piece: CallPiece, at: Option<usize>) -> Shaped<()> {
        if self.is_ambiguous(&piece, at) {
            let what = "a piece of a call does not say which call it continues";
            return Err(Broken::malformed(what));
        }
        let place = self.place(&piece, at).unwrap_or(self.calls.len());
        if place == self.calls.len() {
            if place == MOST_CALLS {
                let what = format!("the answer makes more than {MOST_CALLS} tool calls");
                return Err(Broken::malformed(what));
            }
            let is_listed = at.is_some();
            self.calls.push(CallSoFar { index: piece.index, is_listed, ..CallSoFar::default() });
        }
        self.calls[place].add(piece);
        Ok(())
    }

    /// Returns whether a piece tells nothing by which to find its call, while other calls than the
    /// last may still go on.
    fn is_ambiguous(&self, piece: &CallPiece, at: Option<usize>) -> bool {
        let tells = piece.index.is_some() || at.is_some();
        let before = self.calls.len().saturating_sub(1);
        let goes_on = |call: &CallSoFar| match call.has_arguments() {
            true => object(&call.arguments()).is_none(),
            false => call.index.is_some(),
        };
        !tells && piece.says_only_arguments() && self.calls[..before].iter().any(goes_on)
    }

    /// Finds the call that a piece continues; `None` if it begins a new one.
    fn place(&self, piece: &CallPiece, at: Option<usize>) -> Option<usize> {
        let has_index = |call: &CallSoFar| call.index == piece.index;
        if !piece.id.is_empty() {
            let is_same = |call: &CallSoFar| {
                let differ = call.index.is_some() && piece.index.is_some() && !has_index(call);
                call.id == piece.id && !differ
            };
            if let Some(known) = self.calls.iter().rposition(is_same) {
                return (!self.calls[known].conflicts(piece)).then_some(known);
            }
        }
        let known = match (piece.index, at) {
            (Some(_), _) => match self.calls.iter().rposition(has_index) {
                Some(known) => Some(known),
                // Only the first piece of a call may lack the index.
                None => self.calls.iter().rposition(|call| {
                    let is_again = piece.id.is_empty() && piece.name == call.name;
                    let continues = piece.name.is_empty() || (is_again && !call.has_arguments());
                    call.index.is_none() && continues
                }),
            },
            (None, Some(at)) => (at < self.calls.len()).then_some(at),
            (None, None) => self.calls.len().checked_sub(1),
        }?;
        let call = &self.calls[known];
        let continues = match (piece.id.is_empty(), call.id.is_empty()) {
            // An id that was not known begins a call, unless what comes cannot be a beginning.
            (false, false) => !call.is_whole() && piece.cannot_begin(&call.text),
            (false, true) => piece.name.is_empty() || piece.cannot_begin(&call.text),
            (true, _) => !call.conflicts(piece),
        };
        continues.then_some(known)
    }

    /// Returns the complete calls. Calls whose arguments are not whole keep the text that came.
    pub(super) fn finished(&mut self) -> Finished {
        let mut done = Finished::default();
        let (mut calls, mut known) = (Vec::<CallSoFar>::new(), Vec::new());
        for call in self.calls.drain(..) {
            let new = object(&call.arguments());
            let mut pairs = calls.iter().zip(&known);
            if new.is_none() || !pairs.any(|(it, known)| call.is_again(it) && new == *known) {
                calls.push(call);
                known.push(new);
            }
        }
        if calls.iter().all(|call| call.index.is_some()) {
            calls.sort_by_key(|call| call.index);
        }
        let is_one_of_many = calls.len() > 1;
        for call in calls {
            if call.name.is_empty() && call.id.is_empty() && !call.has_arguments() {
                continue;
            }
            // Without an id, what is no object may be a part of another call.
            let is_part =
                is_one_of_many && call.id.is_empty() && object(&call.arguments()).is_none();
            done.has_lost |= (call.name.is_empty() && call.has_arguments()) || is_part;
            let is_given = !call.id.is_empty() && !done.ids.contains(&call.id);
            let made = || format!("call-{:x}-{}", self.stamp, done.calls.len() + 1);
            let id = if is_given { call.id.clone() } else { made() };
            if is_given {
                done.ids.push(id.clone());
            }
            done.extras.push(call.extra.clone());
            done.calls.push(ToolCall { id, name: call.name.clone(), arguments: call.arguments() });
        }
        if done.extras.iter().all(Value::is_null) {
            done.extras.clear();
        }
        done
    }
}

impl CallSoFar {
    fn add(&mut self, piece: CallPiece) {
        if self.id.is_empty() {
            self.id = piece.id;
        }
        self.index = self.index.or(piece.index);
        if !piece.extra.is_null() {
            self.extra = piece.extra;
        }
        let is_named = !piece.name.is_empty();
        // Some servers send the name again, whole or longer.
        if piece.name.starts_with(&self.name) {
            self.name = piece.name;
        } else if !self.has_arguments() {
            self.name += &piece.name;
        }
        match piece.arguments {
            ArgumentsPiece::Whole(new) => self.add_whole(new),
            ArgumentsPiece::More(more) => {
                // Some servers begin with an empty object, which the arguments replace.
                let is_replaced = !is_named && self.text.trim() == "{}";
                if is_replaced && more.trim_start().starts_with('{') {
                    self.text.clear();
                }
                self.add_text(more);
            }
        }
    }

    fn add_whole(&mut self, new: Value) {
        match &self.whole {
            Some(known) if *known == new || !contains(&new, known) => {
                self.is_contradicted |= *known != new && !contains(known, &new);
            }
            _ => self.whole = Some(new),
        }
    }

    fn add_text(&mut self, more: String) {
        if more.is_empty()
            || (self.has_whole_text() && (more.trim().is_empty() || self.is_repeated(&more)))
        {
            return;
        }
        let repeats = match &self.repeating {
            Some(last) => more.starts_with(&**last),
            None => self.text.is_empty(),
        };
        self.text += &more;
        self.repeating = repeats.then_some(more);
    }

    fn has_arguments(&self) -> bool {
        self.whole.is_some() || !self.text.trim().is_empty()
    }

    /// Returns whether the arguments so far are a whole object.
    fn is_whole(&self) -> bool {
        self.whole.is_some() || self.has_whole_text()
    }

    fn has_whole_text(&self) -> bool {
        self.text.trim_end().ends_with(['}', '"']) && object(&self.text).is_some()
    }

    fn is_repeated(&self, more: &str) -> bool {
        object(more).is_some_and(|new| object(&self.text).as_ref() == Some(&new))
    }

    /// Returns whether this is another call once more, because it lacks what would tell it apart: a
    /// place in a list, an id of its own, or an index where nothing has ids.
    fn is_again(&self, known: &Self) -> bool {
        let lacks = match known.id.is_empty() {
            true => self.id.is_empty() && self.index.is_none() && known.index.is_some(),
            false => self.id.is_empty() || self.id == known.id,
        };
        lacks && !self.is_listed && !self.name.is_empty() && self.name == known.name
    }

    /// Returns whether a piece belongs to another call, although its place is that of this call.
    fn conflicts(&self, piece: &CallPiece) -> bool {
        let differs = |new| {
            let known = self.whole.clone().or_else(|| object(&self.text));
            known.is_some_and(|known| !contains(&new, &known) && !contains(&known, &new))
        };
        match &piece.arguments {
            _ if piece.name.is_empty() => false,
            _ if self.has_arguments() && !piece.name.starts_with(&self.name) => true,
            ArgumentsPiece::More(_) if !self.is_whole() => false,
            ArgumentsPiece::More(more) => {
                object(more).map_or_else(|| more.trim_start().starts_with('{'), differs)
            }
            ArgumentsPiece::Whole(new) => differs(new.clone()),
        }
    }

    /// Returns the arguments as the text of an object. If they are not whole, or contradict each
    /// other, returns a text that is no object.
    fn arguments(&self) -> String {
        let text = mended(&self.text);
        let of_text = completed(&text).or_else(|| completed(&mended(self.repeating.as_deref()?)));
        let whole = self.whole.as_ref().map(|whole| mended(&whole.to_string()));
        let broken = || whole.clone().unwrap_or_default() + &text;
        match (&whole, of_text) {
            _ if self.is_contradicted => format!("{}…", broken()),
            (None, of_text) => of_text.unwrap_or_else(broken),
            (Some(whole), _) if text.trim().is_empty() => whole.clone(),
            (Some(whole), Some(of_text)) => match (&**whole, &*of_text) {
                // An empty object stands for arguments that come later, or came before.
                ("{}", _) => of_text,
                (_, "{}") => whole.clone(),
                _ if object(whole) == object(&of_text) => of_text,
                _ => broken(),
            },
            (Some(_), None) => broken(),
        }
    }
}

/// Returns whether an object has all entries of another.
fn contains(new: &Value, old: &Value) -> bool {
    let has = |(name, value): (&String, &Value)| new[name] == *value;
    new.is_object() && old.as_object().is_some_and(|old| old.iter().all(has))
}

/// Reads the text of an object, perhaps encoded twice.
fn object(text: &str) -> Option<Value> {
    let text = mended(text);
    let is_nothing = matches!(text.trim(), "" | "null");
    (!is_nothing).then(|| serde_json::from_str(&completed(&text)?).ok())?
}

/// Returns a text as that of an object, if it is one, is nothing, was encoded twice, or is in a
/// fence of Markdown.
fn completed(text: &str) -> Option<String> {
    match text.trim() {
        "" | "null" => Some("{}".to_owned()),
        text if text.starts_with("```") => {
            let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"))?;
            completed(inner.strip_suffix("```")?)
        }
        text if text.starts_with('"') => {
            let inner: String = serde_json::from_str(text).ok()?;
            (!inner.trim_start().starts_with('"')).then(|| completed(&inner))?
        }
        text => serde_json::from_str::<Value>(text).ok()?.is_object().then(|| text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
