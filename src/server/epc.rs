//! The list of methods that EPC clients ask for.

use crate::rpc;
use crate::value::Value;

/// Lists the methods as EPC expects them: name, arguments, documentation. A method is listed under
/// each of its names, those of the contract first, since clients look for them.
pub(super) fn method_rows() -> Value {
    let names = |method: &'static rpc::Method| {
        let names = method.contract_names().chain([method.name]);
        names.map(|name| row(name, method)).collect::<Vec<_>>()
    };
    Value::List(rpc::methods().flat_map(names).collect())
}

fn row(name: &str, method: &rpc::Method) -> Value {
    let arguments: Vec<_> =
        method.params().iter().map(|param| format!(":{} {}", param.name, param.kind)).collect();
    Value::List(vec![
        Value::Symbol(name.into()),
        Value::Str(arguments.join(", ")),
        Value::from(method.doc),
    ])
}
