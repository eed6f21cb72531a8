//! Checks arguments of tool calls against the schemas of the tools.

use boon::{Compiler, Schemas, UrlLoader};
use serde_json::Value;

/// Place of a tool's schema while it is used.
const PLACE: &str = "mem:tool";

/// Refuses all other schemas: a schema of a tool must not read files.
struct NoOtherSchemas;

impl UrlLoader for NoOtherSchemas {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("{url} is not read").into())
    }
}

/// Returns how arguments violate a schema. A schema that cannot be used allows everything.
pub(super) fn violation(schema: &Value, arguments: &Value) -> Option<String> {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.use_loader(Box::new(NoOtherSchemas));
    compiler.add_resource(PLACE, schema.clone()).ok()?;
    let compiled = compiler.compile(PLACE, &mut schemas).ok()?;
    let error = schemas.validate(arguments, compiled).err()?;
    // The innermost errors say what is wrong; the others only where.
    let mut error = &error;
    while let Some(cause) = error.causes.first() {
        error = cause;
    }
    let place = error.instance_location.to_string();
    Some(match place.is_empty() {
        true => error.kind.to_string(),
        false => format!("at {place}: {}", error.kind),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_held_against_the_schema() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        assert_eq!(violation(&schema, &json!({"city": "Rome"})), None);
        let missing = violation(&schema, &json!({})).unwrap();
        assert!(missing.contains("city"), "{missing}");
        let wrong = violation(&schema, &json!({"city": 7})).unwrap();
        assert!(wrong.starts_with("at /city: ") && wrong.contains("string"), "{wrong}");
        for unusable in [json!({"type": 7}), json!({"$ref": "file:///etc/passwd"}), json!(null)] {
            assert_eq!(violation(&unusable, &json!({})), None, "{unusable}");
        }
    }
}
