//! Embeddings over HTTP.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{BATCH, Embedder, MOST_CHARS};
use crate::provider::chat::OnWait;
use crate::provider::error::ErrorKind;
use crate::provider::http::Endpoint;
use crate::provider::secret::KeySource;
use crate::provider::{Answer, ProviderError};

/// Maximum length of an answer in bytes: enough for [`BATCH`] vectors of 8,192 numbers.
const LONGEST_ANSWER: usize = 32 << 20;

/// An embedding model on a server with an interface like `OpenAI`'s `/embeddings`, which most
/// model servers have.
pub struct HttpEmbedder {
    endpoint: Endpoint,
    url: String,
}

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: Vec<&'a str>,
}

#[derive(Deserialize)]
struct EmbeddingAnswer {
    data: Vec<EmbeddingRow>,
}

#[derive(Deserialize)]
struct EmbeddingRow {
    embedding: Vec<f32>,
    index: Option<usize>,
}

impl HttpEmbedder {
    /// Creates an embedder. `url` is the base address, such as `http://localhost:11434/v1`.
    pub fn new(url: &str, model: &str, key: KeySource) -> Self {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let base = base.trim_end_matches('/');
        let base = base.strip_suffix("/embeddings").unwrap_or(base);
        let query = if query.is_empty() { String::new() } else { format!("?{query}") };
        let whole = format!("{base}/embeddings{query}");
        Self { endpoint: Endpoint::new(base.to_owned(), model.to_owned(), key), url: whole }
    }

    async fn embed_batch(
        &self,
        texts: &[String],
        until: Instant,
    ) -> Result<Vec<Vec<f32>>, ProviderError> {
        let model = self.endpoint.model();
        let input = texts.iter().map(|text| beginning(text)).collect();
        let malformed = |what: String| self.endpoint.error(ErrorKind::Malformed, what);
        let body = serde_json::to_vec(&EmbeddingRequest { model, input })
            .map_err(|error| self.endpoint.error(ErrorKind::BadRequest, error.to_string()))?;
        let (response, _) =
            self.endpoint.ask(&self.url, Some(body), until, &OnWait::default()).await?;
        let answer = self.endpoint.whole(response, LONGEST_ANSWER, until).await?;
        let answered: EmbeddingAnswer = serde_json::from_slice(&answer).map_err(|error| {
            malformed(format!("the answer is not a list of embeddings: {error}"))
        })?;
        in_order(answered, texts.len()).map_err(malformed)
    }
}

impl Embedder for HttpEmbedder {
    fn model(&self) -> &str {
        self.endpoint.model()
    }

    fn embed<'a>(&'a self, texts: &'a [String], time: Duration) -> Answer<'a, Vec<Vec<f32>>> {
        let until = Instant::now() + time;
        Box::pin(async move {
            let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(texts.len());
            for batch in texts.chunks(BATCH) {
                vectors.extend(self.embed_batch(batch, until).await?);
            }
            match same_length(&vectors) {
                true => Ok(vectors),
                false => Err(self.endpoint.error(ErrorKind::Malformed, UNLIKE)),
            }
        })
    }
}

const UNLIKE: &str = "the embeddings are not all of the same length";

fn beginning(text: &str) -> &str {
    text.char_indices().nth(MOST_CHARS).map_or(text, |(end, _)| &text[..end])
}

fn same_length(vectors: &[Vec<f32>]) -> bool {
    vectors.windows(2).all(|pair| pair[0].len() == pair[1].len())
}

/// Returns the vectors in the order of the texts, or the reason if their number is wrong or a
/// vector is unusable.
fn in_order(answered: EmbeddingAnswer, texts: usize) -> Result<Vec<Vec<f32>>, String> {
    let mut data = answered.data;
    if data.len() != texts {
        return Err(format!(
            "the number of embeddings ({}) differs from the number of texts ({texts})",
            data.len()
        ));
    }
    data.sort_by_key(|embedding| embedding.index);
    let numbered = data.iter().enumerate().all(|(n, e)| e.index.is_none_or(|index| index == n));
    if !numbered {
        return Err("the indexes of the embeddings do not match the texts".to_owned());
    }
    let vectors: Vec<Vec<f32>> = data.into_iter().map(|embedding| embedding.embedding).collect();
    let sound = |v: &Vec<f32>| v.iter().all(|x| x.is_finite()) && v.iter().any(|x| *x != 0.0);
    match (vectors.iter().all(sound), same_length(&vectors)) {
        (false, _) => Err("an embedding is empty, all zeros, or out of range".to_owned()),
        (_, false) => Err(UNLIKE.to_owned()),
        (true, true) => Ok(vectors),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, texts: usize, expected: Result<&[&[f32]], &str>) {
        let answered = serde_json::from_str(answer).map_err(|error| error.to_string());
        let found = answered.and_then(|answered| in_order(answered, texts));
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (found, expected) => panic!("{found:?} in place of {expected:?}"),
        }
    }

    #[test]
    fn vectors_come_in_the_order_of_the_texts_or_not_at_all() {
        let two =
            r#"{"data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [1.5, 0]}]}"#;
        check(two, 2, Ok(&[&[1.5, 0.0], &[0.0, 2.0]]));
        check(two, 3, Err("the number of embeddings (2) differs from the number of texts (3)"));
        check(r#"{"data": [{"embedding": [1]}, {"embedding": [2]}]}"#, 2, Ok(&[&[1.0], &[2.0]]));
        check(r#"{"data": [{"index": 4, "embedding": [1]}]}"#, 1, Err("indexes"));
        check(r#"{"data": [{"embedding": [1]}, {"embedding": [2, 3]}]}"#, 2, Err("same length"));
        check(r#"{"data": [{"embedding": []}]}"#, 1, Err("empty"));
        check(r#"{"data": [{"embedding": [0, 0]}]}"#, 1, Err("zeros"));
        check(r#"{"data": [{"embedding": [1e60]}]}"#, 1, Err("out of range"));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(beginning("short"), "short");
        assert_eq!(beginning(&"é".repeat(MOST_CHARS + 1)).chars().count(), MOST_CHARS);
    }
}
