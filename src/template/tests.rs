//! Templates in few words, and those that come with the program.

use super::*;

fn parse(text: &str) -> Result<Template, TemplateError> {
    Template::parse("t", Source::BuiltIn, text)
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    let outcome = parse(text).and_then(|template| render(&template, &Fields::new()));
    assert_eq!(outcome.unwrap_err().to_string(), format!("template t: {expected}"));
}

#[test]
fn front_matter_is_read_and_left_out_of_the_prompt() {
    let text = "---\ndescription: \"x: y\"\n# note\nrecent_runs: 5\ntoken-threshold:\nmodel: m\n---\nHello";
    let template = parse(text).unwrap();
    assert_eq!(template.body, "Hello");
    let front_matter = FrontMatter {
        description: Some("x: y".into()),
        recent_runs: Some(5),
        token_threshold: Some(0),
        model: Some("m".into()),
        passthrough_runs: None,
    };
    assert_eq!(template.front_matter, front_matter);
}

#[test]
fn errors_say_where_they_are() {
    check_error(
        "---\nruns: 3\n---\n",
        "line 2, column 1: there is no setting runs, there are \
        description, recent-runs, passthrough-runs, token-threshold, model",
    );
    check_error(
        "---\n\nrecent-runs: many\n---\n",
        "line 3, column 13: recent-runs must be a whole number, got \"many\"",
    );
    check_error(
        "---\nmodel: m\n",
        "line 1, column 1: the front matter has no end; close it with ---",
    );
    let error = parse("---\nmodel: m\n---\none\n{{ two").unwrap_err();
    assert_eq!(error.line, 5, "{error}");
}

#[test]
fn what_is_missing_is_empty() {
    let template = parse("[{{ a }}][{{ b.c }}]{% if d %}no{% endif %}").unwrap();
    assert_eq!(render(&template, &Fields::from([("a", "x")])).unwrap(), "[x][]");
}

#[test]
fn fields_are_never_templates_themselves() {
    let template = parse("{{ a }}").unwrap();
    let field = "{{ b }} <b> {% if %}";
    assert_eq!(render(&template, &Fields::from([("a", field), ("b", "no")])).unwrap(), field);
}

#[test]
fn a_template_that_loops_ends() {
    let text = "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}";
    let error = parse(text).and_then(|template| render(&template, &Fields::new())).unwrap_err();
    assert!(error.message.contains("does it loop"), "{error}");
}

#[test]
fn the_contract_is_taken_out_and_lines_keep_their_numbers() {
    let template = parse("one\n```json\n{\"a\": \"{{ no }}\"}\n```\ntwo\n{{ x").unwrap_err();
    assert_eq!(template.line, 6);
    let template = parse("one\n```yaml\na: b\n```\ntwo").unwrap();
    let contract = Contract { language: "yaml".into(), text: "a: b\n".into() };
    assert_eq!((template.contract, &*template.body), (Some(contract), "one\n\n\n\ntwo"));
    assert_eq!(parse("```json\nopen").unwrap().contract, None);
}

#[test]
fn built_in_templates_are_sound_and_described() {
    for built_in in BUILT_IN {
        let template = super::built_in(built_in.name).unwrap().unwrap();
        assert!(template.front_matter.description.is_some(), "{}", built_in.name);
        let fields = Fields::from([("recent_conversation", "R"), ("code", "C")]);
        let text = render(&template, &fields).unwrap();
        assert!(text.contains('R') || text.contains('C'), "{}", built_in.name);
        assert_eq!(template.hash.len(), 64);
    }
    assert!(super::built_in("none").is_none());
}

#[test]
fn names_lead_nowhere_else() {
    for name in ["a", "code-review", "My notes_2.v1", "ü"] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", ".", "..", "../a", "a/b", ".hidden", "a\nb", "a\0"] {
        assert!(!is_name(name), "{name:?}");
    }
    assert_eq!(bare_name("x.md"), "x");
}
