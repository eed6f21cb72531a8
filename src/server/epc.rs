//! The list of methods that EPC clients ask for.

use crate::rpc;
use crate::value::Value;

/// Lists the methods as EPC expects them: name, arguments, documentation.
pub(super) fn method_rows() -> Value {
    let row = |method: &rpc::Method| {
        let arguments: Vec<_> =
            method.params().iter().map(|param| format!(":{} {}", param.name, param.kind)).collect();
        Value::List(vec![
            Value::Symbol(method.name.into()),
            Value::Str(arguments.join(", ")),
            Value::from(method.doc),
        ])
    };
    Value::List(rpc::methods().map(row).collect())
}
