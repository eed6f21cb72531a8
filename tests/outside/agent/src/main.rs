//! An agent with two conversations at once, whose tools need the user's permission. The model is a
//! server in this program, which speaks as OpenAI's does.

use std::borrow::Cow;
use std::error::Error;

use contexture::{Conversation, Decision, Outcome, Provider, Server, Tool, ToolContext, TurnEvent};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Arguments that `serde_json` cannot read once any crate of the program turns on its feature
/// `arbitrary_precision`.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Wait {
    Seconds { amount: f64 },
}

/// A tool whose name is known when the program runs.
struct Waiter {
    name: String,
}

impl Tool for Waiter {
    type Args = Wait;
    type Error = contexture::Error;

    fn name(&self) -> Cow<'_, str> {
        (&self.name).into()
    }

    fn description(&self) -> String {
        "Waits.".into()
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, args: Wait, context: ToolContext) -> Result<String, contexture::Error> {
        let Wait::Seconds { amount } = args;
        // A turn of this conversation could never begin: the running one waits for this tool.
        let turn = context.conversation().chat("And now?").await;
        assert!(matches!(turn, Err(contexture::Error::Busy(_))));
        context.conversation().add(format!("{} waited", context.call_id())).await?;
        Ok(format!("waited {amount} s"))
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    let server = Server::openai("test").url(url).api_key("k").header("x-team", "blue").retries(0);
    let open = |name: &str| {
        let tool = Waiter { name: format!("wait_{name}") };
        let builder = Conversation::builder(name).provider(server.clone()).tool(tool);
        builder.ask_before([format!("wait_{name}")]).max_tokens(4_000)
    };
    let one = open("one").open().await?;
    let two = open("two").beside(&one).open().await?;
    let turns = [one.clone(), two.clone()].map(|conversation| tokio::spawn(turn(conversation)));
    for ended in turns {
        ended.await?.map_err(|error| error.to_string())?;
    }
    assert_eq!(one.items().await?.len(), 1);
    // A server that is reached by TLS, if there were one.
    let far = Server::openai("test").url("https://127.0.0.1:9/v1").api_key("k").retries(0);
    let three = Conversation::builder("three").provider(far).beside(&one).open().await?;
    assert!(matches!(three.chat("Hello?").await, Err(contexture::Error::Provider(_))));
    // The library leaves the default of the process to the program.
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
    assert!(rustls::crypto::ring::default_provider().install_default().is_ok());
    let again = turn(one.clone()).await;
    again.map_err(|error| error.to_string())?;
    let script = Conversation::builder("four").provider(Provider::scripted(SCRIPT));
    assert_eq!(script.beside(&one).open().await?.chat("Hello?").await?.text, "Hello.");
    one.close().await;
    Ok(())
}

const SCRIPT: &str = "[[answer]]\ntext = 'Hello.'\n";

/// Takes a turn in which the user allows the first call.
async fn turn(conversation: Conversation) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut stream = conversation.chat("Wait a little.").stream();
    let mut asked = 0;
    while let Some(event) = stream.next().await {
        if let TurnEvent::Approval(question) = event {
            asked += 1;
            assert!(conversation.approve(question.number, Decision::Once));
        }
    }
    let reply = stream.reply().await?;
    assert_eq!((asked, &*reply.text), (1, "Done."));
    assert_eq!((reply.calls[0].outcome, &*reply.calls[0].text), (Outcome::Done, "waited 0.5 s"));
    Ok(())
}

/// Answers requests: the first one of a turn with a call, and the next one with a text.
async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut read = Vec::new();
    loop {
        let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else {
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let head = String::from_utf8_lossy(&read[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        while read.len() < end + 4 + length {
            stream.read_buf(&mut read).await?;
        }
        let body = read[end + 4..end + 4 + length].to_vec();
        read.drain(..end + 4 + length);
        assert!(head.contains("x-team: blue"));
        let (status, answer) = match serde_json::from_slice::<Value>(&body) {
            Ok(asked) => ("200 OK", answer(&asked)),
            Err(_) => ("404 Not Found", String::new()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(answer.as_bytes()).await?;
    }
}

fn answer(asked: &Value) -> String {
    let last = asked["messages"].as_array().and_then(|all| all.last()).cloned();
    let has_result = last.is_some_and(|last| last["role"] == "tool");
    let (delta, reason) = match has_result {
        true => (json!({ "content": "Done." }), "stop"),
        false => {
            let name = &asked["tools"][0]["function"]["name"];
            let arguments = r#"{"kind": "seconds", "amount": 0.5}"#;
            let function = json!({ "name": name, "arguments": arguments });
            let call = json!({ "index": 0, "id": "c1", "type": "function", "function": function });
            (json!({ "tool_calls": [call] }), "tool_calls")
        }
    };
    let choice = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] });
    format!("data: {choice}\n\ndata: [DONE]\n\n")
}
