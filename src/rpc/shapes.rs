//! Schemas of types that have none of their own, and results of several forms.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use crate::template::SOURCES;
use crate::value::Keyword;

/// A result of one of two forms. The second may have several forms itself.
pub(super) struct Either<A, B>(PhantomData<(A, B)>);

impl<A: JsonSchema, B: JsonSchema> JsonSchema for Either<A, B> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}Or{}", A::schema_name(), B::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (one, other) = (generator.subschema_for::<A>(), generator.subschema_for::<B>());
        let mut forms = vec![one.to_value()];
        match other.get("anyOf").and_then(|forms| forms.as_array()) {
            Some(others) => forms.extend(others.clone()),
            None => forms.push(other.to_value()),
        }
        json_schema!({ "anyOf": forms })
    }
}

/// The name of a parameter, or the path of a member in it. A path that is not a plain name, such as
/// `types[0]`, is a string, since a keyword would be printed with backslashes.
pub(super) struct ParamPath<'a>(pub(super) &'a str);

impl Serialize for ParamPath<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        match self.0.chars().all(is_plain) {
            true => Keyword(self.0).serialize(serializer),
            false => self.0.serialize(serializer),
        }
    }
}

/// The id of a call.
pub(super) struct CallId;

/// The kind of place where a template was found.
pub(super) struct TemplateSource;

/// Declares the schemas of types that cannot derive them.
macro_rules! schemas {
    ($($type:ty, $name:literal => $schema:tt;)*) => {$(
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

schemas! {
    CallId, "CallId" => { "type": ["integer", "string"] };
    TemplateSource, "TemplateSource" => { "type": "string", "enum": SOURCES };
    ParamPath<'_>, "ParamPath" => { "type": "string", "format": "keyword or text" };
}
