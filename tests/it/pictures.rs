//! Pictures and PDFs as items, over each kind of server: what is sent and counted, and what is refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use contexture_program::internals::provider::Family;
use serde_json::json;

use crate::endpoint::{Answer, Asked, Body, Endpoint};
use crate::model;
use crate::support::*;
use crate::tiers::may_use;

/// Each kind of server with a model, and the tokens by which its vendor counts a picture of 640 × 480
/// pixels more than one of 100 × 100.
const KINDS: [(Family, &str, i64); 5] = [
    (Family::Openai, "gpt-4o", 170),
    (Family::Responses, "gpt-5.2", 140),
    (Family::Anthropic, "claude-sonnet-4-5", 410 - 14),
    (Family::Gemini, "gemini-2.5-pro", 0),
    (Family::Ollama, "qwen2.5vl:7b", 414 - 16),
];

/// The beginning of a PNG, which says its size.
pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    let sizes = [width.to_be_bytes(), height.to_be_bytes()].concat();
    [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &sizes, b"\x08\x02\0\0\0\0\0\0\0"].concat()
}

/// A PDF of one page with a text.
pub(crate) fn pdf(text: &str) -> String {
    let drawn = format!("BT /F1 24 Tf 72 700 Td ({text}) Tj ET");
    format!(
        "%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n\
         2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n\
         3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R\
         /Resources<</Font<</F1 5 0 R>>>>>>\nendobj\n\
         4 0 obj\n<</Length {}>>\nstream\n{drawn}\nendstream\nendobj\n\
         5 0 obj\n<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>\nendobj\n\
         trailer\n<</Root 1 0 R>>\n%%EOF\n",
        drawn.len()
    )
}

fn configure(home: &Home, family: Family, model: &str, server: &Endpoint) {
    let provider = model::provider(family, server);
    let usual = format!("model = \"m-{}\"", family.name());
    model::configure(home, &provider.replace(&usual, &format!("model = {model:?}")));
}

fn add(client: &mut Client, file: &str) -> Json {
    client.ok("add-file", &format!("(:manager \"m\" :path {file:?} :live t)"))
}

fn counted(client: &mut Client) -> i64 {
    client.ok("count-window", "(:content \"What is it?\")")["tokens"].as_i64().unwrap()
}

#[test]
fn each_kind_of_server_gets_the_bytes_and_its_own_count() {
    let server = model::serve();
    for (family, model, more) in KINDS {
        let home = Home::new();
        configure(&home, family, model, &server);
        let mut client = home.stdio(&[]);
        client.ok("open-session", "(:name \"s\" :manager \"m\")");
        let file = home.write("shot.png", png(100, 100));
        let small = add(&mut client, &file);
        assert!(small["content"].as_str().unwrap().starts_with("shot.png: png picture"), "{small}");
        let before = counted(&mut client);
        client.ok("clear-context", "(:manager \"m\")");
        let content = png(640, 480);
        home.write("shot.png", &content);
        add(&mut client, &file);
        let difference = counted(&mut client) - before;
        assert!((difference - more).abs() <= 3, "{model}: {difference} and not {more}");
        // The content is kept, whatever becomes of the file and of the server.
        home.write("shot.png", "gone");
        client.end();
        let mut client = home.stdio(&[]);
        client.ok("open-session", "(:name \"s\")");
        let dry = client.ok("chat", "(:content \"What is it?\" :dry-run t)");
        assert!(dry["payload"].as_str().unwrap().contains("bytes)"), "{model}: {dry}");
        let answer = client.ok("chat", "(:content \"What is it?\")");
        assert_eq!(answer["content"], model::ANSWER, "{model}");
        let body = server.asked().last().unwrap().body.to_string();
        assert!(body.contains(&STANDARD.encode(&content)), "{model}: {body}");
        client.end();
    }
}

#[test]
fn a_pdf_is_sent_as_it_is_or_as_its_text_with_the_pages() {
    let works = std::process::Command::new("pdftotext").arg("-v").output().is_ok();
    if !may_use("pdftotext", works) {
        return;
    }
    let server = model::serve();
    for (family, model, _) in KINDS {
        let home = Home::new();
        configure(&home, family, model, &server);
        let mut client = home.stdio(&[]);
        client.ok("open-session", "(:name \"s\" :manager \"m\")");
        let content = pdf("The port is 5433");
        let file = home.write("notes.pdf", &content);
        let item = add(&mut client, &file);
        let text = item["content"].as_str().unwrap();
        assert!(text.contains("[page 1]") && text.contains("The port is 5433"), "{item}");
        client.ok("chat", "(:content \"Which port?\")");
        let body = server.asked().last().unwrap().body.to_string();
        let takes = matches!(family, Family::Anthropic | Family::Gemini | Family::Responses);
        assert_eq!(body.contains(&STANDARD.encode(&content)), takes, "{model}: {body}");
        assert_eq!(body.contains("The port is 5433"), !takes, "{model}: {body}");
        client.end();
    }
}

/// A server that lists `models`, refuses PDFs with `refusal` if it is not empty, and answers else.
fn choosy(models: Json, refusal: Json) -> Endpoint {
    let lists = !models.is_null();
    let answer = move |asked: &Asked, _| match () {
        () if asked.path.contains("/models") && asked.method == "GET" => {
            Answer::new(200, models.to_string())
        }
        () if !refusal.is_null() && asked.body.to_string().contains("application/pdf") => {
            Answer::new(400, refusal.to_string())
        }
        () => {
            let path = asked.path.split('?').next().unwrap_or_default();
            let words = model::words(path, model::ANSWER).into_bytes();
            Answer::streaming(Body::Chunks(vec![words]))
        }
    };
    if lists { Endpoint::listing(answer) } else { Endpoint::new(answer) }
}

#[test]
fn a_pdf_that_a_server_refuses_goes_as_its_text_from_then_on() {
    let works = std::process::Command::new("pdftotext").arg("-v").output().is_ok();
    if !may_use("pdftotext", works) {
        return;
    }
    for (family, model, refusal) in [
        (
            Family::Anthropic,
            "claude-sonnet-4-5",
            json!({"type": "error", "error": {"type": "invalid_request_error",
                   "message": "messages.0.content.0: this model does not support PDF input"}}),
        ),
        (
            Family::Responses,
            "gpt-5.2",
            json!({"error": {"message": "Unsupported content type 'input_file'",
                   "type": "invalid_request_error"}}),
        ),
    ] {
        let server = choosy(Json::Null, refusal);
        let home = Home::new();
        configure(&home, family, model, &server);
        let mut client = home.stdio(&[]);
        client.ok("open-session", "(:name \"s\" :manager \"m\")");
        let content = pdf("The port is 5433");
        add(&mut client, &home.write("notes.pdf", &content));
        for refused in [1, 0] {
            let before = server.asked().len();
            client.ok("chat", "(:content \"Which port?\")");
            let asked = server.asked()[before..].to_vec();
            let asked: Vec<_> = asked.iter().filter(|asked| asked.method == "POST").collect();
            assert_eq!(asked.len(), 1 + refused, "{model}");
            let body = asked.last().unwrap().body.to_string();
            assert!(!body.contains("application/pdf"), "{model}: {body}");
            assert!(body.contains("The port is 5433"), "{model}: {body}");
        }
        client.end();
    }
}

#[test]
fn a_server_that_says_that_a_model_takes_pdfs_gets_them() {
    for takes in [true, false] {
        let words = if takes { vec!["text", "image", "file"] } else { vec!["text", "image"] };
        let models = json!({"data": [{"id": "gpt-4o", "context_length": 90_000,
                                      "architecture": {"input_modalities": words}}]});
        let server = choosy(models, Json::Null);
        let home = Home::new();
        configure(&home, Family::Openai, "gpt-4o", &server);
        let mut client = home.stdio(&[]);
        client.ok("open-session", "(:name \"s\" :manager \"m\")");
        let content = pdf("The port is 5433");
        add(&mut client, &home.write("notes.pdf", &content));
        client.ok("list-providers", "(:models t)");
        client.ok("chat", "(:content \"Which port?\")");
        let asked = server.asked();
        let chat = asked.iter().rfind(|asked| asked.method == "POST").unwrap();
        let body = chat.body.to_string();
        assert_eq!(body.contains(&STANDARD.encode(&content)), takes, "{body}");
        client.end();
    }
}

#[test]
fn a_sound_is_no_picture() {
    let home = Home::new();
    let mut client = home.ephemeral(&[]);
    let sound = [b"RIFF\x24\0\0\0WAVEfmt ".as_slice(), &[0; 20]].concat();
    let file = home.write("sound.wav", sound);
    let refused = client.fails("add-file", &format!("(:manager \"m\" :path {file:?})")).message;
    assert!(refused.contains("NUL") && !refused.contains("PNG"), "{refused}");
    client.end();
}

#[test]
fn a_picture_is_listed_with_its_own_tokens() {
    let server = model::serve();
    let home = Home::new();
    configure(&home, Family::Anthropic, "claude-sonnet-4-5", &server);
    let mut client = home.stdio(&[]);
    let item = add(&mut client, &home.write("shot.png", png(640, 480)));
    let listed = client.ok("list-items", "(:manager \"m\")");
    let counted = client.ok("list-items", "(:manager \"m\" :count-only t)");
    for told in [&item, &listed[0], &counted] {
        assert_eq!(told["tokens"], 410, "{told}");
    }
    client.end();
}

#[test]
fn what_cannot_be_sent_is_refused_with_the_reason() {
    let server = model::serve();
    for (family, model, _) in KINDS {
        refuse_all(&server, family, model);
    }
}

fn refuse_all(server: &Endpoint, family: Family, model: &str) {
    let home = Home::new();
    let provider = model::provider(family, server);
    let usual = format!("model = \"m-{}\"", family.name());
    let blind = format!("[[models]]\nprefix = {model:?}\npictures = false\n");
    model::configure(&home, &(provider.replace(&usual, &format!("model = {model:?}")) + &blind));
    let before = server.asked().len();
    let mut client = home.stdio(&[]);
    client.ok("open-session", "(:name \"s\" :manager \"m\")");
    let mut refused = |name: &str, content: Vec<u8>| {
        let file = home.write(name, content);
        client.fails("add-file", &format!("(:manager \"m\" :path {file:?})")).message
    };
    let cut = refused("cut.png", png(640, 480)[..20].to_vec());
    assert!(cut.contains("not a complete PNG"), "{cut}");
    let wide = refused("wide.png", png(9000, 10));
    assert!(wide.contains("9000 × 10 pixels"), "{wide}");
    let large = refused("large.png", [png(640, 480), vec![0; 4_000_000]].concat());
    assert!(large.contains("large.png"), "{large}");
    let other = refused("other.bin", b"\0\x01\x02".to_vec());
    assert!(other.contains("NUL"), "{other}");
    let file = home.write("shot.png", png(640, 480));
    let id = add(&mut client, &file)["id"].as_str().unwrap().to_owned();
    for method in ["chat", "count-window"] {
        let blind = client.fails(method, "(:content \"What is it?\")");
        assert!(blind.message.contains(&format!("{model} sees no pictures")), "{}", blind.message);
        assert!(blind.message.contains(&id), "{}", blind.message);
    }
    let is_question = |asked: &Asked| asked.body.to_string().contains("What is it?");
    assert!(!server.asked()[before..].iter().any(is_question), "nothing was sent");
    client.ok("remove-items", &format!("(:manager \"m\" :id {id:?})"));
    client.ok("chat", "(:content \"What is it?\")");
    client.end();
}
