//! Tests of the sources of settings, and of values that are refused.

use super::*;

fn load(file: &str, variable: (&str, &str), flags: Settings) -> Result<Config, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, file).unwrap();
    let environment = |name: &str| (name == variable.0).then(|| variable.1.to_owned());
    Config::load(&path, environment, flags).map_err(|error| error.to_string())
}

#[track_caller]
fn check(config: &Config, name: &str, value: &str, source: &str) {
    let found = config.explained.iter().find(|setting| setting.name == name).unwrap();
    assert_eq!((&*found.value, found.source), (value, source));
}

#[test]
fn later_sources_win_and_are_named() {
    let flags = Settings { max_items: Some(9), ..Settings::default() };
    let file = "max-items = 7\nmax-file-bytes = 5\n";
    let config = load(file, ("CONTEXTURE_MAX_FILE_BYTES", "6"), flags).unwrap();
    check(&config, "max-items", "9", FLAGS);
    check(&config, "max-file-bytes", "6", ENVIRONMENT);
    check(&config, "tokenizer", "o200k", DEFAULTS);
    let config = load(file, ("", ""), Settings::default()).unwrap();
    check(&config, "max-items", "7", FILE);
    assert_eq!(config.limits.max_items, 7);
}

#[test]
fn bad_values_are_refused_with_their_source() {
    let error = load("max-items = 0", ("", ""), Settings::default()).unwrap_err();
    assert_eq!(error, "max-items must be from 1 to 1000, got 0 (from the configuration file)");
    let error = load("", ("CONTEXTURE_MAX_ITEMS", "x"), Settings::default()).unwrap_err();
    assert_eq!(
        error,
        "max-items must be a whole number, 0 or more, got \"x\" (from the environment)"
    );
    let error = load("max-item = 3", ("", ""), Settings::default()).unwrap_err();
    assert!(error.contains("config.toml") && error.contains("max-item"), "{error}");
    let error = load("max-items = \"x\"", ("", ""), Settings::default()).unwrap_err();
    assert!(
        error.ends_with("line 1: invalid type: string \"x\", expected a whole number"),
        "{error}"
    );
}

fn in_file(file: &str) -> Result<Config, String> {
    load(file, ("", ""), Settings::default())
}

#[track_caller]
fn refused(file: &str, expected: &str) {
    let error = in_file(file).unwrap_err();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn users_can_describe_models() {
    let file = "model = \"local/big\"\n[[models]]\nprefix = \"Local/\"\nlimit = 32000\n\
                [[models]]\nprefix = \"claude\"\nfactor = 1.5\ntokenizer = \"cl100k\"\n";
    let config = in_file(file).unwrap();
    check(&config, "model", "local/big", FILE);
    check(&config, "models", "local/*: limit 32000", FILE);
    assert_eq!(config.model.as_deref(), Some("local/big"));
    let [local, claude] = &config.models[..] else { panic!("{:?}", config.models) };
    assert_eq!((&*local.prefix, local.limit), ("local/", Some(32_000)));
    assert_eq!((claude.factor, claude.tokenizer), (Some(1.5), Some(TokenizerName::Cl100k)));
    let flags = Settings { model: Some("gpt-5".into()), ..Settings::default() };
    let config = load(file, ("CONTEXTURE_MODEL", "o3"), flags).unwrap();
    check(&config, "model", "gpt-5", FLAGS);
    check(&in_file("").unwrap(), "model", "none", DEFAULTS);
}

#[test]
fn the_problem_with_a_model_is_reported() {
    let model = |text: &str| format!("[[models]]\n{text}\n");
    refused(&model("prefix = \"x\""), "[[models]] \"x\": needs a limit, a factor or a tokenizer");
    refused(&model("prefix = \"\"\nlimit = 5000"), "must be the beginning of a model's name");
    refused(
        &model("prefix = \"x\"\nlimit = 5"),
        "limit must be from 256 to 100000000 tokens, got 5",
    );
    refused(&model("prefix = \"x\"\nfactor = 0"), "factor must be from 0.1 to 10, got 0");
    refused(&model("prefix = \"x\"\nfactor = nan"), "factor must be from 0.1 to 10, got NaN");
    refused(&model("prefix = \"x\"\ntokenizer = \"bert\""), "o200k");
    refused(
        &model("prefix = \"x\"\nlimt = 5000"),
        "unknown field `limt`, expected one of `prefix`",
    );
    refused(&model("limit = 5000"), "missing field `prefix`");
    let once = model("prefix = \"x\"\nlimit = 5000");
    refused(&format!("{once}{}", once.replace("\"x", "\"X")), "prefix is given twice");
    refused("model = \" \"", "model must not be empty");
}

#[test]
fn embeddings_are_off_until_they_are_configured() {
    check(&in_file("").unwrap(), "embeddings", "off", DEFAULTS);
    let file = "[embeddings]\nurl = \"http://localhost:11434/v1\"\nmodel = \"nomic\"\n\
                api-key-env = \"NOMIC_KEY\"\ntimeout = 1\n";
    let config = in_file(file).unwrap();
    check(&config, "embeddings.url", "http://localhost:11434/v1", FILE);
    check(&config, "embeddings.key", "from the variable NOMIC_KEY", FILE);
    check(&config, "embeddings.timeout", "1 s", FILE);
    let config = in_file(&file.replace("timeout = 1\n", "")).unwrap();
    check(&config, "embeddings.timeout", "2 s", DEFAULTS);
}

#[test]
fn the_problem_with_embeddings_is_reported() {
    let with = |text: &str| {
        let base = "url = \"https://e.example/v1\"\nmodel = \"m\"\n";
        let names: Vec<&str> = text.lines().filter_map(|line| line.split(" =").next()).collect();
        let kept = base.lines().filter(|l| !names.iter().any(|name| l.starts_with(name)));
        format!("[embeddings]\n{}\n{text}", kept.collect::<Vec<_>>().join("\n"))
    };
    assert!(in_file(&with("")).is_ok());
    refused("[embeddings]\nurl = \"http://x\"", "missing field `model`");
    refused(&with("url = \"localhost:1\""), "[embeddings] url must begin with http://");
    refused(&with("url = \"http:///v1\""), "url must be an address");
    refused(&with("url = \"http://h/v1?key=k\""), "url must not contain a key");
    refused(&with("url = \"http://h:99999/v1\""), "url must be an address (invalid port number)");
    refused(&with("url = \"http://[::1/v1\""), "url must be an address (invalid IPv6 address)");
    refused(&with("url = \"http://a b/v1\""), "url must be an address");
    refused(&with("model = \"\""), "model must not be empty");
    refused(&with("timeout = 0"), "timeout must be from 0.1 to 60 seconds, got 0");
    refused(&with("key = \"k3y\""), "expected one of `url`, `model`, `api-key-env`");
    refused(&with("key = \"k3y\""), "line 4: unknown field `key`");
    assert!(!in_file(&with("key = \"k3y\"")).unwrap_err().contains("k3y"));
    let both = "api-key-env = \"A\"\napi-key-command = \"pass a\"";
    refused(
        &with(both),
        "api-key-env cannot be combined with api-key-command; keep only one of them",
    );
    let error = in_file(&with("url = \"https://me:k3y@h/v1\"")).unwrap_err();
    assert!(
        error.contains("must not contain a user name or a key") && !error.contains("k3y"),
        "{error}"
    );
}

#[test]
fn providers_are_served_or_scripted() {
    check(&in_file("").unwrap(), "providers", "none", DEFAULTS);
    let file = "[[providers]]\nname = \"claude\"\nkind = \"anthropic\"\nmodel = \"m-1\"\n\
                [[providers]]\nname = \"here\"\nkind = \"openai\"\nmodel = \"m-2\"\n\
                base-url = \"http://localhost:8080/v1\"\n\
                [[providers]]\nname = \"play\"\nkind = \"scripted\"\nmodel = \"m-3\"\n\
                script = \"/none/play.toml\"\n";
    let config = in_file(file).unwrap();
    let told: Vec<&str> = config
        .explained
        .iter()
        .filter(|setting| setting.name == "providers")
        .map(|setting| &*setting.value)
        .collect();
    assert_eq!(
        told,
        [
            "claude: m-1 of anthropic at https://api.anthropic.com, key from the variable \
             ANTHROPIC_API_KEY",
            "here: m-2 of openai at http://localhost:8080/v1, key none",
            "play: m-3 of the script /none/play.toml",
        ]
    );
    let opened = config.providers[1].open().unwrap();
    assert_eq!((opened.name(), opened.model()), ("here", "m-2"));
    let missing = config.providers[2].open().err().unwrap().to_string();
    assert!(missing.contains("/none/play.toml"), "{missing}");
}

#[test]
fn the_problem_with_a_provider_is_reported() {
    let with =
        |more: &str| format!("[[providers]]\nname = \"a\"\nmodel = \"m\"\nkind = \"{}", more);
    refused(
        &with("gpt\""),
        "[[providers]] \"a\": kind must be one of openai, responses, anthropic, gemini",
    );
    refused(&with("scripted\""), "\"a\": script is missing");
    refused(&with("ollama\"\nscript = \"x\""), "script is only for the kind scripted");
    refused(&with("ollama\"\nbase-url = \"x\""), "base-url must begin with http://");
    refused(&with("ollama\"\nkey = \"k3y\""), "unknown field `key`, expected one of `name`");
    refused(&with("ollama\"\napi-key-env = \"\""), "api-key-env must not be empty");
    refused(&with("ollama\"\nanswer-tokens = 0"), "answer-tokens must be 1 or more");
    refused(&with("ollama\"\nprice-input = 1"), "price-input and price-output must both be");
    refused(&with("ollama\"\nprice-input = nan\nprice-output = 1"), "must both be 0 or more");
    refused(&with("ollama\"\ncontext = 5"), "context must be from 256 to 100000000 tokens");
    // API keys do not belong in the configuration file.
    let error = in_file(&with("ollama\"\napi-key = \"k3y\"")).unwrap_err();
    assert!(error.contains("api-key must not be in a file") && !error.contains("k3y"), "{error}");
    let once = with("ollama\"\n");
    let twice = "in the configuration file, [[providers]] \"a\": name is given twice; give each";
    refused(&format!("{once}{once}"), twice);
}

#[test]
fn the_manual_names_the_defaults() {
    let manual = include_str!("../../docs/contexture.texi");
    let config = load("", ("", ""), Settings::default()).unwrap();
    for name in ["max-items", "backups-kept", "max-file-bytes", "max-message-bytes", "tokenizer"] {
        let default = config.explained.iter().find(|setting| setting.name == name).unwrap();
        let (_, text) = manual.split_once(&format!("\n@item {name}\n")).unwrap();
        let (text, _) = text.split_once("\n@item ").unwrap();
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        assert!(words.any(|word| word == default.value), "{name} is {}: {text}", default.value);
    }
}
