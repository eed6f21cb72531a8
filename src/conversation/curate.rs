//! Windows for a program that keeps its own history.

use std::sync::Arc;

use super::{Error, Message};
use crate::agent::history::{self, SummarizedHistory};
use crate::agent::window::{self, Purpose};
use crate::curation::report::Report;
use crate::curation::section::{Counted, Section, Sections};
use crate::curation::strategy::Strategy;
use crate::curation::window::Window;
use crate::engine::{Keep, Material, Models, SessionContext, SessionSettings};
use crate::session::message as logged;
use crate::session::message::Phase;
use crate::store::session::SessionRow;
use crate::tokens::TokenizerName;

/// Returns options for choosing the part of a history to show to a model. Nothing is stored.
///
/// ```
/// use contexture::{Message, curate};
///
/// # fn main() -> Result<(), contexture::Error> {
/// let mut history = vec![Message::system("Answer in one word.")];
/// for number in 1..200 {
///     history.push(Message::user(format!("What is {number} plus {number}?")));
///     history.push(Message::assistant(format!("{}", 2 * number)));
/// }
/// let window = curate(&history).max_tokens(500).window()?;
/// assert!(window.tokens <= 500 && window.messages.len() < history.len());
/// assert_eq!(window.messages[0], history[0]);
/// # Ok(())
/// # }
/// ```
pub fn curate(messages: &[Message]) -> Curate<'_> {
    Curate {
        messages,
        max_tokens: None,
        model: None,
        strategy: None,
        query: None,
        phase: None,
        system_prompt: None,
        tokenizer: TokenizerName::default(),
    }
}

/// The options for choosing messages from a history.
#[derive(Debug, Clone)]
#[must_use = "nothing is chosen until `window` or `summarized` is called"]
pub struct Curate<'a> {
    messages: &'a [Message],
    max_tokens: Option<u64>,
    model: Option<String>,
    strategy: Option<String>,
    query: Option<String>,
    phase: Option<Phase>,
    system_prompt: Option<String>,
    tokenizer: TokenizerName,
}

/// The messages chosen from a history.
#[derive(Debug, Clone, PartialEq)]
pub struct Curated {
    /// The messages, in order; notes that replace messages have the system role.
    pub messages: Vec<Message>,
    /// Cost of the messages, in tokens.
    pub tokens: u64,
    /// Report of the parts that were kept and left out, with the reasons. The report names messages
    /// by their places in the history, counted from 1.
    pub report: Report,
}

impl Curate<'_> {
    /// Sets the maximum number of tokens. The default is the model's limit minus some room for the
    /// answer, but at most 96,000.
    pub fn max_tokens(self, max_tokens: u64) -> Self {
        Self { max_tokens: Some(max_tokens), ..self }
    }

    /// Sets the model, which decides the costs of messages and the default budget.
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets the strategy that chooses from the messages, by name; see
    /// [`strategies`](super::strategies).
    pub fn strategy(self, name: impl Into<String>) -> Self {
        Self { strategy: Some(name.into()), ..self }
    }

    /// Sets the current question, for strategies that use it.
    pub fn query(self, query: impl Into<String>) -> Self {
        Self { query: Some(query.into()), ..self }
    }

    /// Sets the phase of the work, which decides which sections the window has.
    pub fn phase(self, phase: Phase) -> Self {
        Self { phase: Some(phase), ..self }
    }

    /// Adds instructions in front of the messages.
    pub fn system_prompt(self, prompt: impl Into<String>) -> Self {
        Self { system_prompt: Some(prompt.into()), ..self }
    }

    /// Sets the tokenizer that counts tokens; o200k by default.
    pub fn tokenizer(self, tokenizer: TokenizerName) -> Self {
        Self { tokenizer, ..self }
    }

    /// Chooses the messages. The same history and options always give the same result.
    ///
    /// # Errors
    /// [`Error::BudgetTooSmall`] if the parts that cannot be left out cost more than the budget;
    /// [`Error::Setting`] for an unknown strategy.
    pub fn window(self) -> Result<Curated, Error> {
        let named = self.strategy.as_deref().map(window::named_strategy);
        let strategy: Option<&'static dyn Strategy> = named.transpose()?;
        let counter = self.tokenizer.counter();
        let system_prompt = self.system_prompt.as_deref();
        let system_prompt = system_prompt.map(|prompt| Counted::new(prompt, &*counter));
        let purpose = Purpose {
            phase: self.phase,
            strategy,
            max_tokens: self.max_tokens,
            query: self.query.clone(),
            sections: Sections { system_prompt, ..Sections::default() },
            is_apart: true,
            ..Purpose::default()
        };
        let context = SessionContext {
            managers: Vec::new(),
            row: SessionRow::default(),
            settings: SessionSettings::default(),
            costs: self.costs(),
        };
        let messages: Vec<_> = self.logged().into_iter().map(Arc::new).collect();
        let material = Material {
            context,
            said: messages.len() as u64,
            messages,
            summary: None,
            items: Vec::new(),
            previous: None,
            vectors: Arc::default(),
            words: None,
        };
        let built = window::build(&*counter, material, purpose)?;
        Ok(Curated::of(built.window))
    }

    /// Replaces the messages of all turns except the last `keep_turns` with a note, without asking
    /// a model, and returns the resulting messages. Messages that cannot be left out stay. Uses
    /// only two of the options: the model and the tokenizer.
    ///
    /// # Errors
    /// [`Error::Refused`] if there are no messages to replace, or if the note would not be smaller
    /// than these messages.
    pub fn summarized(self, keep_turns: usize) -> Result<Vec<Message>, Error> {
        let summarized =
            history::summarized(self.logged(), Keep::Turns(keep_turns), &self.costs())?;
        let SummarizedHistory { kept, prompts, note, .. } = summarized;
        let mut messages: Vec<Message> = kept.iter().map(Message::from).collect();
        messages.insert(prompts, Message::system(note));
        Ok(messages)
    }

    fn costs(&self) -> crate::engine::Costs {
        Models::new(self.tokenizer.counter(), Vec::new(), None).costs(self.model.as_deref())
    }

    /// Returns the messages with numbers and costs.
    fn logged(&self) -> Vec<logged::Message> {
        let counter = self.tokenizer.counter();
        let counted = self.messages.iter().map(|message| message.clone().counted(&*counter));
        history::messages(counted.collect())
    }
}

impl Curated {
    fn of(window: Window) -> Self {
        let said = window.parts.iter().filter(|part| part.section != Section::ToolSchemas);
        Self {
            messages: said.map(Message::from).collect(),
            tokens: window.tokens,
            report: window.report,
        }
    }
}
