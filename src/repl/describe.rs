//! Information on methods and commands: argument lists, descriptions, apropos.

use super::PACKAGE;
use super::command::COMMANDS;
use super::lisp::{keyword, list, plist, refusal, text};
use crate::rpc::{self, Method};
use crate::value::Value;
use crate::wire::message::WireError;

/// Name of the symbol that marks the position of point in the form that `autodoc` gets.
const CURSOR: &str = "%cursor-marker%";

/// Returns the argument list of the call that contains point, or says that none is available. Marks
/// the argument whose keyword is the last before point.
pub(super) fn autodoc(form: &Value) -> Value {
    let known = innermost(form).and_then(|form| {
        let method = method(form.first()?.as_text()?)?;
        let before = form.iter().rev().skip(1).filter_map(Value::as_text);
        let keyword = before.filter_map(|word| word.strip_prefix(':')).next();
        Some(call(method, keyword))
    });
    match known {
        Some(arglist) => list([text(arglist), Value::Bool(true)]),
        None => list([keyword("not-available"), Value::Bool(true)]),
    }
}

/// Returns the argument list of the method with this name, or nil if there is no such method.
pub(super) fn arglist(name: &Value) -> Value {
    let method = name.as_text().and_then(method);
    method.map_or(Value::Nil, |method| text(call(method, None)))
}

/// Describes the method or command with this name. Fails if there is none.
pub(super) fn description(name: &Value) -> Result<Value, WireError> {
    let name = name.as_text().unwrap_or_default();
    if let Some((name, rest, doc)) = COMMANDS.iter().find(|(known, ..)| *known == name) {
        return Ok(text(format!("{name} {rest}\n\n{doc}\n")));
    }
    let Some(method) = method(name) else {
        return Err(refusal(format!("there is no method or command {name:?}")));
    };
    let params = method.params().iter().map(|param| {
        let need = if param.required { ", required" } else { "" };
        format!("  :{} ({}{need}) {}\n", param.name, param.kind, param.doc)
    });
    let params: String = params.collect();
    let answer = method.result;
    Ok(text(format!("{}\n\n{}\n\n{params}\nResult: {answer}\n", call(method, None), method.doc)))
}

/// Lists the methods whose names contain `part`, in the form that SLIME (if `slime`) or SLY
/// expects.
pub(super) fn apropos(part: &Value, slime: bool) -> Value {
    let part = part.as_text().unwrap_or_default();
    let designator = |name: &str| match slime {
        true => text(format!("{PACKAGE}:{name}")),
        false => list([text(name), text(PACKAGE), Value::Bool(true)]),
    };
    let found = rpc::methods().filter(|method| method.name.contains(part));
    list(found.map(|it| plist([("designator", designator(it.name)), ("function", text(it.doc))])))
}

fn method(name: &str) -> Option<&'static Method> {
    let name = name.strip_prefix(PACKAGE)?.trim_start_matches(':');
    rpc::methods()
        .find(|method| method.name == name || method.contract_names().any(|it| it == name))
}

/// Formats a call of the method with all of its parameters. Points out the parameter `marked`.
fn call(method: &Method, marked: Option<&str>) -> String {
    let params = method.params().iter().map(|param| match marked == Some(param.name) {
        true => format!(" ===> :{} <===", param.name),
        false => format!(" :{}", param.name),
    });
    format!("({PACKAGE}:{}{})", method.name, params.collect::<String>())
}

/// Returns the innermost list that contains [`CURSOR`]; `None` if no list does.
fn innermost(form: &Value) -> Option<&[Value]> {
    let Value::List(items) = form else { return None };
    items.iter().find_map(innermost).or_else(|| {
        let here = |item: &Value| matches!(item, Value::Symbol(name) if name.ends_with(CURSOR));
        items.iter().any(here).then_some(&**items)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::sexp::{print, read};

    #[test]
    fn autodoc_knows_the_methods() {
        let check = |form: &str, expected: &str| {
            assert_eq!(print(&autodoc(&read(form).unwrap())), expected, "{form}");
        };
        let undo = "(\"(contexture:undo :manager :session :dry-run :describe :if-version :request-key)\" t)";
        check("(\"contexture:undo\" slynk::%cursor-marker%)", undo);
        check("(\"f\" (\"contexture:undo\" \"\" swank::%cursor-marker%))", undo);
        check("(\"contexture:undo\" \":manager\" slynk::%cursor-marker%)", {
            "(\"(contexture:undo ===> :manager <=== :session :dry-run :describe :if-version :request-key)\" t)"
        });
        check("(\"me\" slynk::%cursor-marker%)", "(:not-available t)");
        check("nil", "(:not-available t)");
    }

    #[test]
    fn descriptions_and_apropos() {
        let described = print(&description(&text("contexture:undo")).unwrap());
        assert!(described.contains(":request-key (string)"), "{described}");
        assert!(print(&description(&text("/add")).unwrap()).contains("FILE"));
        assert!(description(&text("car")).is_err());
        assert!(print(&apropos(&text("und"), true)).contains("\"contexture:undo\""));
        assert!(print(&apropos(&text("und"), false)).contains("(\"undo\" \"contexture\" t)"));
        assert_eq!(apropos(&text("zzz"), false), Value::Nil);
    }
}
