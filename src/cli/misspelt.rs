//! Names of managers on the command line that are probably misspelt. A call with such a name would
//! make a new manager, or read one that is empty.

use anyhow::bail;

use crate::engine::SHARED_MANAGER;
use crate::value::Value;

/// Maximum number of letters by which a misspelt name differs.
const MOST_TYPOS: usize = 2;
/// Minimum length of a name that can be recognised as misspelt: short names are all alike.
const SHORTEST: usize = 4;
/// The call that makes a manager on purpose.
const MAKES_ONE: &str = "configure-manager";

/// Fails if a call names a manager that does not exist, while another has nearly that name. `list`
/// lists the managers that exist.
pub(super) fn check_managers(
    method: &str,
    params: &Value,
    list: impl FnOnce() -> anyhow::Result<Value>,
) -> anyhow::Result<()> {
    let mut named: Vec<&str> = params.get("manager").and_then(Value::as_text).into_iter().collect();
    if let Some(Value::List(managers)) = params.get("managers") {
        named.extend(managers.iter().filter_map(Value::as_text));
    }
    // Names of projects and files come from Emacs, and are not typed.
    named.retain(|name| *name != SHARED_MANAGER && !name.contains('/'));
    if named.is_empty() || method == MAKES_ONE {
        return Ok(());
    }
    let Value::List(lines) = list()? else {
        return Ok(());
    };
    let known: Vec<&str> =
        lines.iter().filter_map(|line| line.get("manager").and_then(Value::as_text)).collect();
    for name in named.iter().filter(|name| !known.contains(name)) {
        let near: Vec<String> =
            known.iter().filter(|it| is_near(name, it)).map(|it| format!("{it:?}")).collect();
        if !near.is_empty() {
            bail!(
                "there is no manager {name:?}, but {}; to make it, call {MAKES_ONE} first",
                near.join(" and ")
            );
        }
    }
    Ok(())
}

/// Returns whether two names differ by a typing error. Numbered names are meant to be alike.
fn is_near(name: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        name.chars().filter(|c| !c.is_ascii_digit()).flat_map(char::to_lowercase).collect()
    };
    let (one, two) = (letters(name), letters(other));
    let typos = strsim::osa_distance(&one, &two);
    let is_typed_alike = typos > 0 || name.to_lowercase() == other.to_lowercase();
    one.chars().count() >= SHORTEST && typos <= MOST_TYPOS && is_typed_alike
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_near_if_a_few_letters_differ() {
        for (name, other) in [("reveiw", "review"), ("Review", "review"), ("notez", "notes")] {
            assert!(is_near(name, other), "{name} {other}");
        }
        for (name, other) in [("task-1", "task-2"), ("a", "b"), ("notes", "review")] {
            assert!(!is_near(name, other), "{name} {other}");
        }
    }
}
