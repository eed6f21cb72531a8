//! Methods of the template family for taking notes.

use crate::rpc::method::{Method, Pace, method};
use crate::rpc::notes;
use crate::rpc::page::Paged;

/// Methods, in the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    method!("template", "take-notes", notes::take_notes => notes::ManagedResult<'static>)
        .doc(
            "Takes notes on a session as it is now, with a template and a model, as `chat` does \
              if `:manage` is on. The notes for a turn are made once and then read from the \
              store. A failed step is reported in the \
              result; without a model, the call fails.",
        )
        .result("The outcome: the notes and the messages that follow them, with the prompt.")
        .changes_after_work()
        .in_steps()
        .pace(Pace::Aside),
    method!("template", "list-notes", notes::list_notes => Vec<notes::ViewResult<'static>>)
        .pages(&Paged {
            page: Some(notes::DEFAULT_LISTED as usize),
            most: Some(notes::MAX_LISTED as i64),
            ..Paged::LIST
        })
        .doc("Lists the outcomes of note-taking, newest first.")
        .result("A list of outcomes, with their notes."),
];
