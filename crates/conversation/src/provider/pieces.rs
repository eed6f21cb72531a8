//! The pieces of an answer, between the server's words and whoever reads them. Pieces of one text
//! that arrive together become one, and what was sent with the request as a secret is hidden.

use std::collections::VecDeque;

use serde_json::Value;

use super::chat::{Stop, StreamEvent};
use super::secret::RequestSecrets;

/// Pieces that were not read yet.
#[derive(Default)]
pub(super) struct Pieces {
    secrets: RequestSecrets,
    ready: VecDeque<StreamEvent>,
    /// Text or reasoning that may go on with a part of a secret.
    open: Option<StreamEvent>,
}

impl Pieces {
    pub(super) fn new(secrets: RequestSecrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    pub(super) fn take(&mut self) -> Option<StreamEvent> {
        self.ready.pop_front()
    }

    pub(super) fn contains(&self, piece: &StreamEvent) -> bool {
        self.ready.contains(piece)
    }

    /// Adds pieces that arrived together. The end of a text that may be the beginning of a secret
    /// waits for what follows.
    pub(super) fn add(&mut self, pieces: Vec<StreamEvent>) {
        for piece in pieces {
            let piece = match (&mut self.open, piece) {
                (Some(StreamEvent::Text(open)), StreamEvent::Text(more))
                | (Some(StreamEvent::Reasoning(open)), StreamEvent::Reasoning(more)) => {
                    *open += &more;
                    continue;
                }
                (_, piece) => piece,
            };
            self.end();
            match piece {
                StreamEvent::Text(_) | StreamEvent::Reasoning(_) => self.open = Some(piece),
                piece => self.ready.push_back(hidden(piece, &self.secrets)),
            }
        }
        let Some(open) = self.open.take() else { return };
        let (StreamEvent::Text(text) | StreamEvent::Reasoning(text)) = &open else { return };
        let text = self.secrets.hidden_whole(text);
        let (told, begun) = text.split_at(self.secrets.begun_at(&text));
        let like = |text: &str| match &open {
            StreamEvent::Reasoning(_) => StreamEvent::Reasoning(text.to_owned()),
            _ => StreamEvent::Text(text.to_owned()),
        };
        self.ready.extend((!told.is_empty()).then(|| like(told)));
        self.open = (!begun.is_empty()).then(|| like(begun));
    }

    /// Tells what still waits, since nothing follows.
    pub(super) fn end(&mut self) {
        self.ready.extend(self.open.take().map(|piece| hidden(piece, &self.secrets)));
    }
}

/// Hides secrets in a whole piece.
fn hidden(piece: StreamEvent, secrets: &RequestSecrets) -> StreamEvent {
    match piece {
        StreamEvent::Text(text) => StreamEvent::Text(secrets.hidden_whole(&text)),
        StreamEvent::Reasoning(text) => StreamEvent::Reasoning(secrets.hidden_whole(&text)),
        StreamEvent::Call(mut call) => {
            for text in [&mut call.id, &mut call.name, &mut call.arguments] {
                *text = secrets.hidden_whole(text);
            }
            StreamEvent::Call(call)
        }
        StreamEvent::Opaque(opaque) => StreamEvent::Opaque(hidden_value(opaque, secrets)),
        StreamEvent::Stopped(Stop::Other(why)) => {
            StreamEvent::Stopped(Stop::Other(secrets.hidden_whole(&why)))
        }
        piece @ (StreamEvent::Usage(_) | StreamEvent::Stopped(_)) => piece,
    }
}

fn hidden_value(value: Value, secrets: &RequestSecrets) -> Value {
    match value {
        Value::String(text) => secrets.hidden_whole(&text).into(),
        Value::Array(list) => list.into_iter().map(|it| hidden_value(it, secrets)).collect(),
        Value::Object(members) => {
            let hide = |(name, value): (String, Value)| {
                (secrets.hidden_whole(&name), hidden_value(value, secrets))
            };
            members.into_iter().map(hide).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::secret::Secret;
    use crate::session::message::ToolCall;

    const KEY: &str = "sk-proj-aB3dE5fG7hI9";

    fn pieces() -> Pieces {
        let sent = [Secret::new(KEY), Secret::new("ollama")].map(Option::unwrap);
        Pieces::new(RequestSecrets::new(&sent))
    }

    /// Returns what is told of pieces that arrive one after the other.
    fn told(arriving: impl IntoIterator<Item = StreamEvent>) -> Vec<StreamEvent> {
        let mut pieces = pieces();
        arriving.into_iter().for_each(|piece| pieces.add(vec![piece]));
        pieces.end();
        std::iter::from_fn(|| pieces.take()).collect()
    }

    fn said(pieces: &[StreamEvent]) -> String {
        let text = |piece: &StreamEvent| match piece {
            StreamEvent::Text(text) | StreamEvent::Reasoning(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        pieces.iter().map(text).collect()
    }

    #[test]
    fn a_key_is_hidden_wherever_the_answer_is_cut() {
        let text = format!("é {KEY}, {KEY}{KEY} sk-proj-aB3 sk");
        let expected = "é …, …… sk-proj-aB3 sk";
        for make in [StreamEvent::Text, StreamEvent::Reasoning] {
            let chars = told(text.chars().map(|it| make(it.to_string())));
            assert_eq!(said(&chars), expected);
            for (cut, _) in text.char_indices() {
                let (left, right) = text.split_at(cut);
                assert_eq!(said(&told([left, "", right].map(|it| make(it.into())))), expected);
            }
        }
    }

    #[test]
    fn a_key_is_hidden_in_each_kind_of_piece() {
        let call = |key: &str| ToolCall {
            id: key.into(),
            name: key.into(),
            arguments: json!([key]).to_string(),
        };
        let each = |key: &str| {
            let opaque = json!({ key: [{ "text": key }], "n": 1 });
            [
                StreamEvent::Call(call(key)),
                StreamEvent::Opaque(opaque),
                StreamEvent::Stopped(Stop::Other(key.into())),
            ]
        };
        assert_eq!(told(each(KEY)), each("…"));
        // A word that stands for a key is a word.
        assert_eq!(told(each("ollama")), each("ollama"));
        assert_eq!(said(&told([StreamEvent::Text("use ollama".into())])), "use ollama");
    }

    #[test]
    fn what_arrives_together_is_one_piece_and_only_a_begun_key_waits() {
        let mut pieces = pieces();
        pieces.add(["a", "b", "c s"].map(|it| StreamEvent::Text(it.into())).into());
        assert_eq!(pieces.take(), Some(StreamEvent::Text("abc ".into())));
        assert_eq!(pieces.take(), None);
        pieces.add(vec![StreamEvent::Reasoning("x".into())]);
        assert_eq!(pieces.take(), Some(StreamEvent::Text("s".into())));
        assert_eq!(pieces.take(), Some(StreamEvent::Reasoning("x".into())));
        pieces.add(vec![StreamEvent::Text("sk".into()), StreamEvent::Stopped(Stop::Finished)]);
        assert!(pieces.contains(&StreamEvent::Stopped(Stop::Finished)));
        assert_eq!(pieces.take(), Some(StreamEvent::Text("sk".into())));
    }
}
