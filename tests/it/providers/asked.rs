//! Each setting of a provider with each family: what is sent is what the documentation of the
//! family says, to a server that refuses every other member, and what a family lacks is learned.

use contexture_program::internals::provider::chat::{Effort, Request};
use contexture_program::internals::provider::{Family, Serving};
use serde_json::{Value as Json, json};

use super::{FAMILIES, Kind, asked, provider, request, runtime};
use crate::endpoint::{Answer, Body, Endpoint};

/// Returns the body of a request to `model` with these settings, after a server took it.
fn sent(kind: &'static Kind, model: &str, serving: Serving) -> Json {
    let server = Endpoint::new(|_, _| Answer::streaming(Body::Chunks(vec![kind.stream.into()])));
    let provider = provider(kind, &server).serving(serving);
    let provider =
        contexture_program::internals::provider::chat::ChatProvider::with_model(&provider, model);
    runtime().block_on(async {
        let request = Request { temperature: None, ..request() };
        let mut reply = provider.chat(&request).await.unwrap();
        while reply.next().await.unwrap().is_some() {}
    });
    server.asked().remove(0).body
}

/// Checks that these members are sent, by their places, and those that are `null` are not.
#[track_caller]
fn check(family: Family, model: &str, serving: Serving, members: &[(&str, Json)]) {
    let kind = FAMILIES.iter().find(|kind| kind.family == family).unwrap();
    let body = sent(kind, model, serving);
    for (place, expected) in members {
        let found = body.pointer(place).cloned().unwrap_or_default();
        assert_eq!(found, *expected, "{family:?} {model} {place}: {body}");
    }
}

#[track_caller]
fn check_effort(family: Family, model: &str, efforts: [&[(&str, Json)]; 4]) {
    for (effort, members) in Effort::ALL.iter().zip(efforts) {
        let serving = Serving { effort: Some(*effort), ..Serving::default() };
        check(family, model, serving, members);
    }
}

#[test]
fn one_word_for_effort_becomes_what_each_family_has() {
    let words = ["none", "low", "medium", "high"].map(Json::from);
    let at = "/reasoning_effort";
    let all = words.clone().map(|word| [(at, word)]);
    check_effort(Family::Openai, "m", [&all[0], &all[1], &all[2], &all[3]]);
    let at = "/reasoning/effort";
    let all = words.map(|word| [(at, word)]);
    check_effort(Family::Responses, "m", [&all[0], &all[1], &all[2], &all[3]]);
    let auto = ("/reasoning/summary", json!("auto"));
    check_effort(
        Family::Responses,
        "m",
        [&[("/reasoning/summary", Json::Null)], &[auto], &[], &[]],
    );
    // The length of the answer, 100, has the reasoning added.
    let budget = |tokens: u64| {
        [
            ("/thinking", json!({"type": "enabled", "budget_tokens": tokens})),
            ("/max_tokens", json!(100 + tokens)),
            ("/output_config", Json::Null),
        ]
    };
    let off = [("/thinking", json!({"type": "disabled"})), ("/max_tokens", json!(100))];
    for model in ["claude-sonnet-4-5", "anthropic/claude-3.7-sonnet", "deepseek-chat"] {
        let efforts: [&[(&str, Json)]; 4] = [&off, &budget(2_048), &budget(6_144), &budget(15_360)];
        check_effort(Family::Anthropic, model, efforts);
    }
    let adaptive = |word: &str| {
        [
            ("/thinking", json!({"type": "adaptive"})),
            ("/output_config", json!({"effort": word})),
            ("/max_tokens", json!(100)),
        ]
    };
    for model in ["claude-opus-4-6", "claude-sonnet-5"] {
        let efforts: [&[(&str, Json)]; 4] =
            [&off, &adaptive("low"), &adaptive("medium"), &adaptive("high")];
        check_effort(Family::Anthropic, model, efforts);
    }
    let at = "/generationConfig/thinkingConfig";
    let budget = |tokens: u64| json!({"thinkingBudget": tokens, "includeThoughts": true});
    let efforts: [&[(&str, Json)]; 4] = [
        &[(at, json!({"thinkingBudget": 0}))],
        &[(at, budget(2_048))],
        &[(at, budget(6_144))],
        &[(at, budget(15_360))],
    ];
    check_effort(Family::Gemini, "gemini-2.5-flash", efforts);
    let level = |word: &str| json!({"thinkingLevel": word, "includeThoughts": true});
    let efforts: [&[(&str, Json)]; 4] = [
        &[(at, json!({"thinkingLevel": "minimal"}))],
        &[(at, level("low"))],
        &[(at, level("medium"))],
        &[(at, level("high"))],
    ];
    check_effort(Family::Gemini, "gemini-3-pro", efforts);
    let think = |value: Json| [("/think", value)];
    let efforts: [&[(&str, Json)]; 4] =
        [&think(json!(false)), &think(json!(true)), &think(json!(true)), &think(json!(true))];
    check_effort(Family::Ollama, "qwen3:8b", efforts);
    let efforts: [&[(&str, Json)]; 4] = [
        &think(json!(false)),
        &think(json!("low")),
        &think(json!("medium")),
        &think(json!("high")),
    ];
    check_effort(Family::Ollama, "gpt-oss:20b", efforts);
}

#[test]
fn sampling_and_further_members_go_where_each_family_has_them() {
    for (family, temperature, top_p, extra, place) in [
        (Family::Openai, "/temperature", "/top_p", json!({"seed": 7}), "/seed"),
        (Family::Responses, "/temperature", "/top_p", json!({"service_tier": 7}), "/service_tier"),
        (Family::Anthropic, "/temperature", "/top_p", json!({"top_k": 7}), "/top_k"),
        (
            Family::Gemini,
            "/generationConfig/temperature",
            "/generationConfig/topP",
            json!({"generationConfig": {"topK": 7}}),
            "/generationConfig/topK",
        ),
        (
            Family::Ollama,
            "/options/temperature",
            "/options/top_p",
            json!({"options": {"top_k": 7}}),
            "/options/top_k",
        ),
    ] {
        let Json::Object(extra) = extra else { unreachable!() };
        let serving = Serving { temperature: Some(0.25), extra, ..Serving::default() };
        let members = [(temperature, json!(0.25)), (top_p, Json::Null), (place, json!(7))];
        check(family, "m", serving, &members);
        let serving = Serving { top_p: Some(0.5), ..Serving::default() };
        check(family, "m", serving, &[(temperature, Json::Null), (top_p, json!(0.5))]);
    }
}

/// A refusal of each family, for a model that has no effort, and for one that has another form.
const REFUSALS: &[(Family, &str, &[&str])] = &[
    (
        Family::Openai,
        "m",
        &[
            "Unsupported value: 'reasoning_effort' does not support 'none' with this model.",
            "Unrecognized request argument supplied: reasoning_effort",
        ],
    ),
    (
        Family::Responses,
        "m",
        &[
            "Unsupported value: 'none' is not supported with this model. reasoning.effort",
            "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        ],
    ),
    (
        Family::Gemini,
        "gemini-2.5-pro",
        &[
            "Budget 0 is invalid. This model only works in thinking mode.",
            "Thinking_config is not supported for this model",
        ],
    ),
    (Family::Ollama, "m", &["\"m\" does not support thinking"]),
];

#[test]
fn a_model_without_an_effort_is_asked_without_and_that_is_told_once() {
    for (family, model, refusals) in REFUSALS {
        let kind = FAMILIES.iter().find(|kind| kind.family == *family).unwrap();
        let server = Endpoint::new(move |_, before| match refusals.get(before) {
            Some(said) => {
                let said = Json::from(*said).to_string();
                Answer::new(400, kind.refusal.replace("\"MESSAGE\"", &said))
            }
            None => Answer::streaming(Body::Chunks(vec![kind.stream.into()])),
        });
        let serving = Serving { effort: Some(Effort::Off), ..Serving::default() };
        let provider = provider(kind, &server).serving(serving);
        let provider = contexture_program::internals::provider::chat::ChatProvider::with_model(
            &provider, model,
        );
        runtime().block_on(async {
            assert_eq!(asked(&*provider).await.1, None, "{family:?}");
            assert_eq!(asked(&*provider).await.1, None, "{family:?}");
        });
        let heard = server.asked();
        assert_eq!(heard.len(), refusals.len() + 2, "{family:?}: learned once");
        let last = heard.last().unwrap().body.to_string();
        let words = ["reasoning_effort", "\"reasoning\":", "thinkingConfig", "\"think\""];
        assert!(words.iter().all(|word| !last.contains(word)), "{last}");
    }
}

#[test]
fn claude_is_asked_in_the_form_that_the_model_takes() {
    let kind = FAMILIES.iter().find(|kind| kind.family == Family::Anthropic).unwrap();
    for (model, refusal, place) in [
        (
            "claude-sonnet-4-5",
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\"",
            "/output_config/effort",
        ),
        (
            "claude-opus-9",
            "adaptive thinking is not supported on this model",
            "/thinking/budget_tokens",
        ),
    ] {
        let server = Endpoint::new(move |_, before| match before {
            0 => Answer::new(
                400,
                kind.refusal.replace("\"MESSAGE\"", &Json::from(refusal).to_string()),
            ),
            _ => Answer::streaming(Body::Chunks(vec![kind.stream.into()])),
        });
        let serving = Serving { effort: Some(Effort::High), ..Serving::default() };
        let provider = provider(kind, &server).serving(serving);
        let provider = contexture_program::internals::provider::chat::ChatProvider::with_model(
            &provider, model,
        );
        let request = Request { temperature: None, ..request() };
        runtime().block_on(async {
            let mut reply = provider.chat(&request).await.unwrap();
            while reply.next().await.unwrap().is_some() {}
        });
        let body = server.asked().remove(1).body;
        assert!(!body.pointer(place).is_none_or(Json::is_null), "{body}");
    }
}

#[test]
fn headers_are_sent_and_fetched_again_with_the_key_after_a_refusal() {
    use contexture_program::internals::provider::secret::KeySource;
    for kind in FAMILIES {
        let home = crate::support::Home::new();
        let count = home.path("count");
        // Prints another value each time.
        let print = format!("echo x >> {0}; printf 'v-'; wc -l < {0}", count.display());
        let server = Endpoint::new(move |_, before| match before {
            0 => Answer::new(401, kind.refusal.replace("MESSAGE", "v-1 has expired")),
            _ => Answer::streaming(Body::Chunks(vec![kind.stream.into()])),
        });
        let headers = vec![("x-gate".to_owned(), KeySource::Command(print))];
        let provider = provider(kind, &server).serving(Serving { headers, ..Serving::default() });
        runtime().block_on(async {
            assert_eq!(asked(&provider).await.1, None);
            assert_eq!(asked(&provider).await.1, None);
        });
        let value = |asked: &crate::endpoint::Asked| asked.headers["x-gate"].trim().to_owned();
        let heard: Vec<String> = server.asked().iter().map(value).collect();
        assert_eq!(heard, ["v-1", "v-2", "v-2"], "{:?}", kind.family);
        let key = &server.asked()[1].headers[kind.key.0];
        assert_eq!(key, kind.key.1, "{:?}", kind.family);
    }
}

#[test]
fn the_key_goes_into_the_header_that_the_user_names() {
    for kind in FAMILIES {
        let server =
            Endpoint::new(|_, _| Answer::streaming(Body::Chunks(vec![kind.stream.into()])));
        for (header, value) in [("authorization", "Bearer k-123"), ("x-portal-key", "k-123")] {
            let key_header = Some(header.to_owned());
            let serving = Serving { key_header, ..Serving::default() };
            runtime().block_on(asked(&provider(kind, &server).serving(serving)));
            let headers = server.asked().pop().unwrap().headers;
            assert_eq!(headers[header], value, "{:?}", kind.family);
            let is_other = |name: &&str| *name != header && headers.contains_key(*name);
            let usual = ["authorization", "x-api-key", "x-goog-api-key"];
            assert_eq!(usual.iter().find(|name| is_other(name)), None, "{:?}", kind.family);
        }
    }
}

#[test]
fn a_proxy_is_asked_in_place_of_the_server() {
    let kind = &FAMILIES[0];
    let proxy = Endpoint::new(|_, _| Answer::streaming(Body::Chunks(vec![kind.stream.into()])));
    let server = Endpoint::new(|_, _| Answer::streaming(Body::Chunks(vec![kind.stream.into()])));
    let by = |proxy: &str| Serving { proxy: Some(proxy.to_owned()), ..Serving::default() };
    runtime().block_on(async {
        assert_eq!(asked(&provider(kind, &server).serving(by(&proxy.root))).await.1, None);
        assert_eq!(asked(&provider(kind, &server).serving(by("none"))).await.1, None);
    });
    let path = format!("{}/chat/completions", server.url);
    assert_eq!((proxy.asked().remove(0).path, server.asked().len()), (path, 1));
}

#[test]
fn azure_is_asked_for_the_deployment_and_the_version() {
    for family in [Family::Openai, Family::Responses] {
        let kind = FAMILIES.iter().find(|kind| kind.family == family).unwrap();
        let server = Endpoint::listing(|asked, _| match asked.method == "GET" {
            true => Answer::new(200, "{\"data\": [{\"id\": \"what-could-be-deployed\"}]}"),
            false => Answer::streaming(Body::Chunks(vec![kind.stream.into()])),
        });
        let root = &server.root;
        let key = super::KeySource::Command("echo k-123".to_owned());
        let provider = super::HttpProvider::new(family, "here", root, "mine", key);
        let api_version = Some("2024-10-21".to_owned());
        let provider = provider.serving(Serving { api_version, ..Serving::default() });
        runtime().block_on(async {
            use contexture_program::internals::provider::chat::ChatProvider;
            assert_eq!(asked(&provider).await.1, None);
            let listed = provider.models().await.unwrap();
            assert_eq!((listed.len(), &*listed[0].name), (1, "mine"));
        });
        let heard = server.asked();
        let path = match family {
            Family::Openai => "/openai/deployments/mine/chat/completions?api-version=2024-10-21",
            _ => "/openai/responses?api-version=2024-10-21",
        };
        assert_eq!((&*heard[0].path, &*heard[0].headers["api-key"]), (path, "k-123"));
        assert_eq!(heard[1].path, "/openai/models?api-version=2024-10-21");
    }
}
