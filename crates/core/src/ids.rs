//! Ids as clients write them: a prefix and a number, such as `ses-3`.
//!
//! Numbers are never reused. This module knows nothing about the things that have ids.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(feature = "engine")]
use contexture_value::Value;

/// The error for a text that is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be {what} id such as {example}, got {got:?}")]
pub struct BadId {
    what: &'static str,
    example: &'static str,
    got: String,
}

/// Highest number that the store accepts.
const MOST: u64 = i64::MAX as u64;

/// Declares id types. Each has a prefix, two texts for error messages (what has such an id, and an
/// example), and the range of its numbers.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident: $prefix:literal, $what:literal, $example:literal, $numbers:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[allow(unreachable_pub, reason = "some ids are only for the crate")]
        pub struct $name(#[cfg_attr(feature = "schema", schemars(with = "String"))] pub u64);

        impl $name {
            /// Returns the ids with these numbers.
            pub fn all<'a>(numbers: impl IntoIterator<Item = &'a u64>) -> Vec<Self> {
                numbers.into_iter().map(|number| Self(*number)).collect()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                let number = number($prefix, text).filter(|number| ($numbers).contains(number));
                number.map(Self).ok_or_else(|| {
                    BadId { what: $what, example: $example, got: text.to_owned() }
                })
            }
        }

        #[cfg(feature = "engine")]
        impl From<$name> for Value {
            fn from(id: $name) -> Self {
                Self::Str(id.to_string())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// Id of a context item. No two items ever have the same id, even in different managers.
    ItemId: "ctx-", "an item's", "ctx-12", 0..=MOST;
    /// Id of a session.
    SessionId: "ses-", "a session's", "ses-7", 0..=MOST;
    /// Id of a message: its place in the log of its session, counted from 1.
    MessageId: "msg-", "a message's", "msg-3", 1..;
    /// Id of a checkpoint. No two checkpoints have the same id, even in different sessions.
    CheckpointId: "chk-", "a checkpoint's", "chk-2", 0..;
    /// Id of a memory.
    MemoryId: "mem-", "a memory's", "mem-4", 0..;
    /// Id of what somebody shares on a hub: a session or a memory.
    SharedId: "hub-", "a shared session's", "hub-5", 0..;
    /// Id of stored notes, which were once called views.
    ViewId: "view-", "a note's", "view-12", 0..;
}

/// Returns the number after `prefix`; `None` if the text has another form.
fn number(prefix: &str, text: &str) -> Option<u64> {
    let digits = text.strip_prefix(prefix).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok()
}

#[cfg(all(test, feature = "engine"))]
mod tests {
    use super::*;
    use contexture_value::to_value;

    #[test]
    fn ids_read_back_as_they_are_printed() {
        assert_eq!(ItemId(12).to_string().parse(), Ok(ItemId(12)));
        assert_eq!("view-0".parse(), Ok(ViewId(0)));
        for bad in ["", "ctx-", "ctx-1x", "ctx-+1", "12", "ses-1", "ctx-99999999999999999999"] {
            let error = bad.parse::<ItemId>().unwrap_err();
            let expected = format!("must be an item's id such as ctx-12, got {bad:?}");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn the_first_message_has_the_number_1() {
        assert_eq!("msg-1".parse(), Ok(MessageId(1)));
        assert!("msg-0".parse::<MessageId>().is_err());
    }

    #[test]
    fn ids_are_texts_in_data() {
        let ids = [SessionId(3), SessionId(4)];
        assert_eq!(ids[..], SessionId::all(&[3, 4]));
        let value = to_value(&ids).unwrap();
        assert_eq!(value, Value::List(ids.map(Value::from).to_vec()));
        assert_eq!(Value::from(ids[0]), Value::from("ses-3"));
        assert_eq!(value.decode(), Ok(ids));
        let error = Value::from("chk-x").decode::<CheckpointId>().unwrap_err();
        assert_eq!(error.message, "must be a checkpoint's id such as chk-2, got \"chk-x\"");
    }
}
