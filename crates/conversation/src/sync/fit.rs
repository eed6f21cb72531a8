//! Which texts, names and times other machines accept, and how those of this machine are made to
//! fit.

/// Maximum size of a message's text in a change, in bytes. What is longer is cut, with a note.
pub(super) const LONGEST_TEXT: usize = 2 << 20;
/// Maximum size of a name, in bytes.
pub(super) const LONGEST_NAME: usize = 4 << 10;
/// Largest number of a row, and of seconds, that is taken from another machine.
pub const LARGEST_NUMBER: u64 = 1 << 40;
/// Maximum size of the note in a text that was cut, in bytes.
pub(super) const NOTE_BYTES: usize = 64;

/// Returns a name that other machines take.
pub(super) fn fit_name(name: &str) -> String {
    name[..name.floor_char_boundary(LONGEST_NAME)].replace('\0', "")
}

/// Returns a time that other machines take.
pub fn fit_time(at: i64) -> i64 {
    at.clamp(-LARGEST_NUMBER.cast_signed(), LARGEST_NUMBER.cast_signed())
}

/// Returns a text of at most about `most` bytes, with a note if it was cut.
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most + NOTE_BYTES {
        return text.to_owned();
    }
    let (begin, rest) = text.split_at(text.floor_char_boundary(most));
    format!("{begin}\n[{} more bytes are at the machine of this session]", rest.len())
}
