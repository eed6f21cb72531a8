//! Parameters that several methods share, and their checks.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::error::param_error;
use crate::context::filter::{TypeName, valid_names};
use crate::context::item::{Metadata, Origin};
use crate::context::manager::MAX_CAPACITY;
use crate::context::picture::PICTURE;
use crate::engine::{SHARED_MANAGER, Selection};
use crate::ids::{ItemId, SessionId};
use crate::value::{Key, Value};
use crate::wire::message::WireError;

/// Maximum length of a request key, or of the name of a manager, set or session, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 1024;

/// Maximum length in bytes of a path, or of an id or name from another program. No path on Linux is
/// longer.
pub(super) const MAX_SHORT_BYTES: usize = 4096;

/// Maximum size of an item's metadata, in bytes as [`Value::exceeds`] counts them.
pub(super) const MAX_METADATA_BYTES: usize = 64 << 10;

/// Maximum number of managers, ids or metadata entries in a call: no manager holds more items.
pub(super) const MAX_NAMED: usize = MAX_CAPACITY;

pub(super) fn decode<T: for<'de> Deserialize<'de>>(params: Value) -> Result<T, WireError> {
    params.decode_strictly().map_err(|error| param_error(&error.path, &error.message))
}

/// The parameters of a method without parameters.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Nothing {}

/// Name of the manager; defaults to the shared manager `*shared*`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(inline)]
pub(super) struct ManagerName(pub(super) String);

impl Default for ManagerName {
    fn default() -> Self {
        Self(SHARED_MANAGER.to_owned())
    }
}

impl<'de> Deserialize<'de> for ManagerName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(name) = Option::<String>::deserialize(deserializer)? else {
            return Ok(Self::default());
        };
        check_bytes(&name, 1..=MAX_NAME_BYTES).map_err(serde::de::Error::custom)?;
        Ok(Self(name))
    }
}

/// Declares types for texts in calls, each with its allowed length in bytes.
macro_rules! texts {
    ($($(#[$attribute:meta])* $name:ident: $bytes:expr;)*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
        #[schemars(inline)]
        $(#[$attribute])*
        pub(super) struct $name(pub(super) String);

        impl std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                check_bytes(&text, $bytes).map_err(serde::de::Error::custom)?;
                Ok(Self(text))
            }
        }
    )*};
}

texts! {
    /// A path, or an id or name from another program; may be empty.
    Short: 0..=MAX_SHORT_BYTES;
    /// The name of a set or a session.
    Name: 1..=MAX_NAME_BYTES;
    /// Name or id of the session, `ses-N`; defaults to the current session.
    #[schemars(extend("x-current-session" = true))]
    InSession: 1..=MAX_NAME_BYTES;
    /// Model whose limit and token counts apply; defaults to the session's model, else to the
    /// server's.
    ModelName: 0..=MAX_NAME_BYTES;
    /// Key that identifies this call, at most 1,024 bytes. A repeated call with the same key gets
    /// the first answer and changes nothing.
    RequestKey: 1..=MAX_NAME_BYTES;
}

/// Name of the parameter with the request key.
pub(super) const KEY: &str = "request-key";

/// Returns whether a call omits a parameter or passes `nil` for it.
pub(super) fn lacks(params: &Value, name: &str) -> bool {
    matches!(params.get(name), None | Some(Value::Nil))
}

/// Returns the name in a parameter of a call; `None` if the parameter is absent or is not a name.
pub(super) fn named(params: &Value, parameter: &str) -> Option<String> {
    params.get(parameter)?.as_text().map(str::to_owned)
}

/// Returns whether a text has the form of a session's id, `ses-N`.
pub(super) fn is_session_id(text: &str) -> bool {
    text.parse::<SessionId>().is_ok()
}

/// Checks the new name of a session. A name in the form of an id would hide the session with that
/// id.
pub(super) fn new_name(Name(name): Name) -> Result<String, WireError> {
    match is_session_id(&name) {
        false => Ok(name),
        true => Err(param_error("name", &format!("must not have the form of an id, got {name:?}"))),
    }
}

/// Checks the length of a text. The error continues from the name of the parameter.
pub(super) fn check_bytes(text: &str, bytes: RangeInclusive<usize>) -> Result<(), String> {
    match text.len() {
        given if bytes.contains(&given) => Ok(()),
        0 => Err("must not be empty".to_owned()),
        long => Err(format!("must have at most {} bytes, got {long}", bytes.end())),
    }
}

/// Reads a list that selects the subjects of a call. In an s-expression, `nil` could mean an empty
/// list, or no list and therefore everything, so it is refused.
pub(super) fn given_list<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let if_nil = "must not be nil: write [] for an empty list, or leave the parameter out";
    let given = Option::deserialize(deserializer)?;
    given.map(Some).ok_or_else(|| serde::de::Error::custom(if_nil))
}

/// Returns the ids in `:id` or `:ids`, exactly one of which is required.
pub(super) fn ids(
    one: Option<ItemId>,
    many: Option<Vec<ItemId>>,
) -> Result<Vec<ItemId>, WireError> {
    match (one, many) {
        (Some(id), None) => Ok(vec![id]),
        (None, Some(ids)) if !ids.is_empty() => {
            at_most("ids", MAX_NAMED, ids.len())?;
            Ok(ids)
        }
        (Some(_), Some(_)) => {
            Err(param_error("ids", "cannot be combined with the parameter id; give one of them"))
        }
        _ => Err(param_error("id", "is required, or ids for more than one")),
    }
}

/// Checks the number of entries in the list of a parameter.
pub(super) fn at_most(name: &str, most: usize, given: usize) -> Result<(), WireError> {
    match given <= most {
        true => Ok(()),
        false => Err(param_error(name, &format!("must have at most {most} entries, got {given}"))),
    }
}

/// Returns the selection of items that `:manager`, `:managers`, `:types` and `:limit` describe.
pub(super) fn selection(
    manager: Option<ManagerName>,
    managers: Option<Vec<ManagerName>>,
    types: Option<Vec<ItemType>>,
    limit: Option<i64>,
) -> Result<Selection, WireError> {
    let names = match (manager, managers) {
        (Some(_), Some(_)) => {
            return Err(param_error(
                "managers",
                "cannot be combined with the parameter manager; give one of them",
            ));
        }
        (manager, None) => vec![manager.unwrap_or_default().0],
        (None, Some(many)) => manager_names(many)?,
    };
    Ok(Selection {
        managers: names,
        types: types.into_iter().flatten().map(|ItemType(name)| name).collect(),
        limit: not_negative("limit", limit)?,
        ..Selection::default()
    })
}

/// Returns the names in `:managers`, each once.
pub(super) fn manager_names(managers: Vec<ManagerName>) -> Result<Vec<String>, WireError> {
    at_most("managers", MAX_NAMED, managers.len())?;
    let mut seen = HashSet::new();
    let names = managers.into_iter().map(|ManagerName(name)| name);
    Ok(names.filter(|name| seen.insert(name.clone())).collect())
}

/// A type or origin of items.
pub(super) struct ItemType(TypeName);

impl<'de> Deserialize<'de> for ItemType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        TypeName::from_name(&name.replace('_', "-")).map(Self).map_err(|_| {
            let valid = valid_names().join(", ");
            let problem = format!("must be a type or origin, got {name:?}; use one of {valid}");
            serde::de::Error::custom(problem)
        })
    }
}

impl JsonSchema for ItemType {
    fn schema_name() -> Cow<'static, str> {
        "ItemType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": valid_names()})
    }
}

/// Checks that `number` is not negative, and converts it. `None` stays `None`.
pub(super) fn not_negative<T: TryFrom<i64>>(
    name: &str,
    number: Option<i64>,
) -> Result<Option<T>, WireError> {
    let checked = number.map(|number| {
        T::try_from(number)
            .map_err(|_| param_error(name, &format!("must be 0 or more, got {number}")))
    });
    checked.transpose()
}

/// Reads a number of runs or tokens that a client sets for a session. Returns `Some(None)` for -1,
/// which stands for the template's value, and `None` if no number is given.
pub(super) fn stored_count(
    name: &str,
    given: Option<i64>,
) -> Result<Option<Option<u64>>, WireError> {
    match given {
        None => Ok(None),
        Some(-1) => Ok(Some(None)),
        Some(number) => u64::try_from(number).map(|number| Some(Some(number))).map_err(|_| {
            let message =
                format!("must be 0 or more, or -1 to use the template's value, got {number}");
            param_error(name, &message)
        }),
    }
}

/// Metadata of the item, stored completely. Names with a meaning to the server include `:filename`,
/// `:project`, `:start-line`, `:end-line`, `:language`, `:symbol`, `:package` and `:origin`. The
/// listed values are those of `:origin`.
#[derive(JsonSchema)]
#[schemars(rename = "Metadata", rename_all = "kebab-case", extend("additionalProperties" = true))]
#[expect(dead_code, reason = "it only describes what metadata may be")]
pub(super) struct KnownMetadata {
    /// File that the text is from.
    filename: Option<String>,
    /// Folder of the project. A file in this folder is shown by its path relative to the folder.
    project: Option<String>,
    /// First line in the file, counted from 1.
    start_line: Option<u64>,
    /// Last line in the file.
    end_line: Option<u64>,
    /// Name of the language, or of the major mode of Emacs.
    language: Option<String>,
    /// Symbol that the text defines.
    symbol: Option<String>,
    /// Package of the symbol.
    package: Option<String>,
    /// Way in which the text was chosen.
    origin: Option<Origin>,
}

/// Checks changes to metadata from a client, in which `nil` removes an entry.
pub(super) fn changes_of_metadata(value: Option<Value>) -> Result<Metadata, WireError> {
    let Some(Value::Map(entries)) = value else { return metadata(value) };
    let (removed, set): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|(_, value)| *value == Value::Nil);
    let set = metadata(Some(Value::Map(set)))?;
    Ok(Metadata(Metadata::of(removed).0.into_iter().chain(set.0).collect()))
}

/// Checks metadata from a client. Entries with a meaning to the server must be well-formed; all
/// others are kept as they are.
pub(super) fn metadata(value: Option<Value>) -> Result<Metadata, WireError> {
    if value.as_ref().is_some_and(|value| value.exceeds(MAX_METADATA_BYTES)) {
        let message = format!(
            "must have at most {MAX_METADATA_BYTES} bytes, counting {} more for each value; put \
             long texts into the content",
            Value::DATUM_BYTES
        );
        return Err(param_error("metadata", &message));
    }
    let entries = match value {
        None | Some(Value::Nil) => Vec::new(),
        Some(Value::Map(entries)) => entries,
        Some(Value::Vector(items)) if items.is_empty() => Vec::new(),
        Some(Value::List(flat)) => pairs(flat)?,
        Some(_) => return Err(not_a_plist()),
    };
    let metadata = Metadata::of(entries);
    check_metadata(&metadata)?;
    Ok(metadata)
}

/// Returns the default of a parameter that is true unless the client passes `nil`.
pub(super) fn yes() -> bool {
    true
}

/// A switch that stays unchanged if it is not given. An `Option` would treat `nil` as not given,
/// but `nil` turns the switch off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
#[schemars(inline)]
pub(super) struct Switch(pub(super) Option<bool>);

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bool::deserialize(deserializer).map(|on| Self(Some(on)))
    }
}

fn pairs(flat: Vec<Value>) -> Result<Vec<(Key, Value)>, WireError> {
    at_most("metadata", 2 * MAX_NAMED, flat.len())?;
    let mut entries = Vec::with_capacity(flat.len() / 2);
    let mut flat = flat.into_iter();
    while let Some(name) = flat.next() {
        let (Value::Keyword(name), Some(value)) = (name, flat.next()) else {
            return Err(not_a_plist());
        };
        entries.push((Key::from(name), value));
    }
    Ok(entries)
}

fn not_a_plist() -> WireError {
    param_error("metadata", "must be a property list, with names such as :start-line")
}

fn check_metadata(metadata: &Metadata) -> Result<(), WireError> {
    for name in ["filename", "project", "language", "symbol", "package"] {
        if !matches!(metadata.get(name), None | Some(Value::Nil)) && metadata.text(name).is_none() {
            return Err(param_error(&format!("metadata.{name}"), "must be a string"));
        }
    }
    for name in ["start-line", "end-line"] {
        if !matches!(metadata.get(name), None | Some(Value::Nil) | Some(Value::Int(1..))) {
            return Err(param_error(
                &format!("metadata.{name}"),
                "must be an integer of 1 or more",
            ));
        }
    }
    // Whoever could set it would get the content that another item has.
    if !matches!(metadata.get(PICTURE), None | Some(Value::Nil)) {
        let why = "is set by the server; add the picture with add-file";
        return Err(param_error("metadata.picture", why));
    }
    if let Some((start, end)) = metadata.lines().filter(|(start, end)| start > end) {
        let message = format!("must not be before start-line {start}, got {end}");
        return Err(param_error("metadata.end-line", &message));
    }
    if !matches!(metadata.get("origin"), None | Some(Value::Nil)) && metadata.origin().is_none() {
        let valid: Vec<_> = Origin::ALL.iter().map(|origin| origin.name()).collect();
        let message = format!("must be one of {}", valid.join(", "));
        return Err(param_error("metadata.origin", &message));
    }
    Ok(())
}
