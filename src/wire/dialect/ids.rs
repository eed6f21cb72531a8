//! Finds the id of a line that cannot be read as a whole, in the first and last bytes of the line.
//! The sender of the line waits for an answer with this id.

use serde::de::IgnoredAny;

use super::id_of;
use crate::value::Value;
use crate::value::json::from_json;
use crate::value::sexp;
use crate::wire::frame::MessageEnds;
use crate::wire::message::RequestId;

/// Returns the id at the beginning of a property list, or else right before its end.
pub(super) fn native(ends: &MessageEnds) -> Option<RequestId> {
    native_first(&ends.first).or_else(|| {
        let inside = ends.last.trim_ascii_end().strip_suffix(b")")?;
        let after = |name| after_last(inside, name, u8::is_ascii_whitespace);
        let id = after(b":id ").or_else(|| after(b":ID "))?;
        id_in(sexp::read(id).ok()?)
    })
}

/// Returns the id at the beginning of a property list.
pub(super) fn native_first(first: &[u8]) -> Option<RequestId> {
    let items = sexp::read_beginning(text_of(first));
    let mut pairs = items.chunks_exact(2);
    let is_id = |pair: &&[Value]| matches!(&pair[0], Value::Keyword(name) if name.eq_ignore_ascii_case("id"));
    id_in(pairs.find(is_id)?[1].clone())
}

/// Returns the id at the beginning of an object, or else right before its end.
pub(super) fn json(ends: &MessageEnds) -> Option<RequestId> {
    json_first(&ends.first).or_else(|| {
        let inside = ends.last.trim_ascii_end().strip_suffix(b"}")?;
        let after = after_last(inside, br#""id""#, |before| b",{ \t".contains(before))?;
        id_in(from_json(after.trim_start().strip_prefix(':')?.as_bytes()).ok()?)
    })
}

/// Returns the id at the beginning of an object.
pub(super) fn json_first(first: &[u8]) -> Option<RequestId> {
    let mut rest = text_of(first).trim_start().strip_prefix('{')?;
    loop {
        let key = next_datum(&mut rest)?;
        rest = rest.trim_start().strip_prefix(':')?;
        let value = next_datum(&mut rest)?;
        if key == Value::Str("id".to_owned()) {
            return id_in(value);
        }
        rest = rest.trim_start().strip_prefix(',')?;
    }
}

/// Takes the next datum from JSON text. Returns `None` for a datum at the very end, since it may be
/// incomplete.
fn next_datum(rest: &mut &str) -> Option<Value> {
    let mut data = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
    data.next()?.ok()?;
    let (datum, after) = rest.split_at(data.byte_offset());
    *rest = Some(after).filter(|after| !after.is_empty())?;
    from_json(datum.as_bytes()).ok()
}

/// Returns the text after the last `name`, if `follows` is true for the byte before this `name`.
fn after_last<'a>(text: &'a [u8], name: &[u8], follows: impl Fn(&u8) -> bool) -> Option<&'a str> {
    let at = memchr::memmem::rfind(text, name)?;
    let before = at.checked_sub(1).and_then(|before| text.get(before))?;
    let after = std::str::from_utf8(&text[at + name.len()..]).ok()?;
    follows(before).then_some(after)
}

/// Returns the text up to the first byte that is not UTF-8.
fn text_of(bytes: &[u8]) -> &str {
    let valid = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(&bytes[..valid]).unwrap_or_default()
}

fn id_in(value: Value) -> Option<RequestId> {
    id_of(value).ok().flatten()
}
