//! Tests of the rules of templates, and of the templates that come with the program.

use super::*;

fn parse(text: &str) -> Result<Template, TemplateError> {
    Template::parse("t", TemplatePlace::BuiltIn, text)
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
        "line 2, column 1: there is no setting runs; the settings are \
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
fn missing_fields_are_empty() {
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
fn a_template_cannot_become_large() {
    let conversation = "x".repeat(1_000_000);
    let fields = Fields::from([("c", &*conversation)]);
    let error = |text: &str| parse(text).and_then(|t| render(&t, &fields)).unwrap_err().message;
    let longer = "it produces more than 4194304 bytes";
    assert_eq!(error("{{ c }}{{ c }}{{ c }}{{ c }}{{ c }}"), longer);
    assert_eq!(error("{% for n in range(50000) %}{{ c }}{% endfor %}"), longer);
    let busy = "{% for n in range(50000) %}{% if c|length == n %}{% endif %}{% endfor %}";
    assert!(error(busy).contains("does it loop"));
    let four = parse("{{ c }}{{ c|upper }}{{ c[:5] }}{{ c }}{{ c }}").unwrap();
    assert_eq!(render(&four, &fields).unwrap().len(), 4_000_005);
}

#[test]
fn text_cannot_grow_from_itself() {
    for (text, what) in [
        ("{% set a = a ~ a %}", "`~`"),
        ("{% set a = a + a %}", "`+`"),
        ("{{ 'x' * 1000000000 }}", "`*`"),
        (
            "{% set a %}{{ a }}{{ a }}{% endset %}",
            "{% set %} in another form than {% set NAME = VALUE %}",
        ),
        ("{% set a, b = c %}", "{% set %} in another form than {% set NAME = VALUE %}"),
        ("{% with a = 1 %}{% endwith %}", "{% with %}"),
        ("{% filter upper %}{% endfilter %}", "{% filter %}"),
        ("{%- macro m() %}{% endmacro %}", "{% macro %}"),
        ("{% include 'x' %}", "{% include %}"),
        ("{% for x in 'ab' recursive %}{% endfor %}", "a recursive loop"),
        ("{% for x in 'ab' if c recursive %}{% endfor %}", "a recursive loop"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.message, format!("{what} cannot be used in a template"), "{text}");
    }
    let error = parse("---\nmodel: m\n---\none\ntwo {{ a ~ b }}").unwrap_err();
    assert_eq!((error.line, error.column), (5, 10), "{error}");
    for (text, what) in [
        ("{{ a|replace('x', 'xx') }}", "filter replace"),
        ("{{ a|join }}", "filter join"),
        ("{{ a is mapping }}", "test mapping"),
    ] {
        let error = parse(text).and_then(|template| render(&template, &Fields::new())).unwrap_err();
        assert!(error.message.contains(what), "{text}: {error}");
    }
    assert!(parse("{{ namespace(a=1) }}").and_then(|t| render(&t, &Fields::new())).is_err());
}

#[test]
fn the_longer_the_fields_the_fewer_steps() {
    let each = |steps: usize| {
        let text = format!(
            "{{% for n in range({steps}) %}}{{% if a|upper %}}{{% endif %}}{{% endfor %}}b"
        );
        parse(&text).unwrap()
    };
    let (short, long) = ("x".repeat(1_000), "x".repeat(10 << 20));
    let rendered = |steps, field| render(&each(steps), &Fields::from([("a", field)]));
    assert_eq!(rendered(5_000, &short).as_deref(), Ok("b"));
    assert_eq!(rendered(5, &long).as_deref(), Ok("b"));
    let error = rendered(100, &long).unwrap_err();
    assert!(error.message.contains("too many steps"), "{error}");
}

#[test]
fn conditions_loops_and_plain_filters_are_there() {
    let fields = Fields::from([("a", "one\ntwo"), ("b", "")]);
    let check = |text: &str, expected: &str| {
        let rendered = parse(text).and_then(|template| render(&template, &fields));
        assert_eq!(rendered.as_deref(), Ok(expected), "{text}");
    };
    check("{% for line in a|lines %}{{ loop.index }} {{ line }};{% endfor %}", "1 one;2 two;");
    check("{% if b %}b{% elif a and not b %}a{% else %}c{% endif %}", "a");
    check("{% set n = a|length - 1 %}{{ n }} {{ a[0] }}{{ a[-3:] }}", "6 otwo");
    check(
        "{{ b or 'nothing' }} {{ c|default('d') }} {{ (a|split('\n'))[1]|upper }}",
        "nothing d TWO",
    );
    check(
        "{{ (a|lines)|length }}{{ (a|lines)[-1] }}{{ a|lines|last }}{{ 'one' in a|lines }}",
        "2twotwoTrue",
    );
    check(
        "{% for n in range(2) %}{{ n }}/{{ loop.length }}{{ loop.last }} {% endfor %}{{ range(9)[7:] }}",
        "0/2False 1/2True [7, 8]",
    );
    check("{{ range(4)|length }}{{ range(2) }}{{ 7|upper }}{{ 8|title }}", "4[0, 1]78");
    check("{{ 'yes' if 'two' in a and a is startingwith('o') else 'no' }}", "yes");
    check(
        "{# a ~ b #}{% raw %}{{ a + b }}{% endraw %} 1 + 1 * {x} [y]",
        "{{ a + b }} 1 + 1 * {x} [y]",
    );
    check("{%- if b is not defined or c is undefined -%} x {%- endif +%} y", "x y");
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
fn names_cannot_leave_the_folder() {
    for name in ["a", "code-review", "My notes_2.v1", "ü"] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", ".", "..", "../a", "a/b", ".hidden", "a\nb", "a\0"] {
        assert!(!is_name(name), "{name:?}");
    }
    assert_eq!(bare_name("x.md"), "x");
}
