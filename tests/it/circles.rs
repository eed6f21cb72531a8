//! Imports run one way: no circle between modules, nor between the files and folders within one.
//!
//! A module's own file (`mod.rs`) may name what is below it, and what is below may name it: it
//! holds what they share. Only imports between siblings count, at every depth, with each name
//! traced through the `use` that passes it on.

use std::collections::{BTreeMap, BTreeSet};

use crate::house::{Source, sources};

/// A module or an item, as the names that lead to it from the crate.
type Names = Vec<String>;

/// The code of a module and what it names.
struct Module {
    /// The paths that the code names, from the crate.
    named: Vec<Names>,
    /// The names that a `use` brings in, with what they stand for.
    brought_in: BTreeMap<String, Names>,
}

#[test]
fn imports_have_no_circles() {
    let sources = sources();
    let checked = |source: &&Source| {
        !source.is_test() && source.name != "src/main.rs" && source.place().0 != "map"
    };
    let mut crates: BTreeMap<&str, Vec<(Names, String)>> = BTreeMap::new();
    for source in sources.iter().filter(checked) {
        let (name, path) = source.place();
        let lines: Vec<&str> = source.code().collect();
        crates.entry(name).or_default().push((module_of(path), lines.join("\n")));
    }
    for (name, code) in crates {
        let found = circles(&code);
        assert!(found.is_empty(), "imports in crate {name:?} go in circles: {found:#?}");
    }
}

#[test]
fn a_circle_is_found_through_trees_and_what_others_pass_on() {
    let code = |shared: &str| {
        let files = [
            ("a/mod.rs", "mod b;\npub use self::c::{C, D};\npub struct A;"),
            ("a/b.rs", shared),
            ("a/c/mod.rs", "use super::{\n    A,\n    e::*,\n};"),
            ("a/c/f.rs", "fn f() { crate::a::e::call() }"),
            ("a/e.rs", "fn call() { super::b::call::<u8>() }"),
        ];
        circles(&files.map(|(name, text)| (module_of(name), text.to_owned())))
    };
    let expected = BTreeSet::from(["b", "c", "e"].map(str::to_owned));
    assert_eq!(code("use super::A;"), BTreeMap::new());
    assert_eq!(code("use super::{A, D};"), BTreeMap::from([("a".to_owned(), expected)]));
}

/// Returns the names of a source's module: `rpc/call.rs` is `rpc::call`.
fn module_of(source: &str) -> Names {
    let names =
        source.trim_end_matches(".rs").split('/').filter(|name| !["mod", "lib"].contains(name));
    names.map(str::to_owned).collect()
}

/// Finds the files and folders that import each other in circles, by the module that has them.
fn circles(code: &[(Names, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let modules: BTreeMap<Names, Module> =
        code.iter().map(|(names, text)| (names.clone(), Module::read(names, text))).collect();
    let mut imports: BTreeMap<Names, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (from, module) in &modules {
        for to in module.named.iter().map(|named| resolve(&modules, named, 0)) {
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if shared < from.len() && shared < to.len() {
                let scope = imports.entry(from[..shared].to_vec()).or_default();
                scope.entry(from[shared].clone()).or_default().insert(to[shared].clone());
            }
        }
    }
    let in_circles = imports.into_iter().map(|(scope, imports)| {
        let circular = imports.keys().filter(|name| reached(&imports, name).contains(*name));
        (scope.join("::"), circular.cloned().collect::<BTreeSet<_>>())
    });
    in_circles.filter(|(_, circular)| !circular.is_empty()).collect()
}

/// Returns what is imported from `start`, directly or through others.
fn reached(imports: &BTreeMap<String, BTreeSet<String>>, start: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![start.to_owned()];
    while let Some(name) = waiting.pop() {
        for next in imports.get(&name).into_iter().flatten() {
            if reached.insert(next.clone()) {
                waiting.push(next.clone());
            }
        }
    }
    reached
}

/// Returns the module that has what `named` names, through at most a few `use`s that pass it on.
fn resolve(modules: &BTreeMap<Names, Module>, named: &[String], passed_on: usize) -> Names {
    let mut length = named.len();
    while length > 0 && !modules.contains_key(&named[..length]) {
        length -= 1;
    }
    let (module, rest) = named.split_at(length);
    let other = rest.first().and_then(|name| modules.get(module)?.brought_in.get(name));
    match other {
        Some(other) if passed_on < 5 => {
            let whole: Names = other.iter().chain(&rest[1..]).cloned().collect();
            resolve(modules, &whole, passed_on + 1)
        }
        _ => module.to_vec(),
    }
}

impl Module {
    fn read(names: &[String], text: &str) -> Self {
        let mut module = Self { named: Vec::new(), brought_in: BTreeMap::new() };
        for root in ["crate::", "self::", "super::"] {
            for (at, _) in text.match_indices(root) {
                let before = &text[..at];
                if before.ends_with([':', '$', '_']) || before.ends_with(char::is_alphanumeric) {
                    continue;
                }
                let mut paths = Vec::new();
                expand(&[], &text[at..], &mut paths);
                for path in paths.into_iter().filter_map(|path| absolute(names, &path)) {
                    if before.trim_end().ends_with("use")
                        && let Some(last) = path.last()
                    {
                        module.brought_in.insert(last.clone(), path.clone());
                    }
                    module.named.push(path);
                }
            }
        }
        module
    }
}

/// Reads a path, or a tree of paths in braces, adds each to `found` and returns what follows.
fn expand<'a>(prefix: &[&'a str], text: &'a str, found: &mut Vec<Names>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            match rest.strip_prefix('}') {
                Some(after) => return after,
                None if rest.is_empty() => return rest,
                None => rest = expand(prefix, rest, found),
            }
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let mut path = prefix.to_vec();
    path.extend((!name.is_empty()).then_some(name));
    match rest.strip_prefix("::") {
        Some(after) if after.starts_with(|c: char| c.is_alphabetic() || "_{*".contains(c)) => {
            expand(&path, after, found)
        }
        _ => {
            found.push(path.into_iter().map(str::to_owned).collect());
            if name.is_empty() { rest.get(1..).unwrap_or("") } else { rest }
        }
    }
}

/// Returns a path from the crate, of one that begins with `crate`, `self` or `super` in a module.
fn absolute(module: &[String], path: &[String]) -> Option<Names> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    let base = match path.first()?.as_str() {
        "crate" => &[],
        "self" => module,
        "super" => module.get(..module.len().checked_sub(ups)?)?,
        _ => return None,
    };
    let rest = path.iter().skip(ups.max(1)).filter(|name| *name != "self");
    Some(base.iter().chain(rest).cloned().collect())
}
