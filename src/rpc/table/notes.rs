//! The methods of the template family about the notes that templates make.

use crate::rpc::method::{Method, Pace, Run, SESSION, optional};
use crate::rpc::notes;

const fn method(name: &'static str, run: Run) -> Method {
    Method::new("template", name, run)
}

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    method("manage-context", notes::manage_context)
        .doc("Makes the managed view of a session as it is now, with a template and a model, as \
              `chat` does for a managed session. Each turn's view is made once and then taken from \
              the store. A failure is reported in the result, not as an error.")
        .params(&[
            SESSION,
            optional("template", "string", "Template; defaults to the session's."),
            optional(
                "recent-runs",
                "integer",
                "Number of recent runs to show to the model; 0 turns \
                                                managing off.",
            ),
            optional(
                "passthrough-runs",
                "integer",
                "Number of these runs that follow its notes \
                                                     unchanged; 0 for none.",
            ),
            optional(
                "token-threshold",
                "integer",
                "Tokens of history below which nothing is \
                                                    managed; 0 for always.",
            ),
            optional(
                "provider",
                "string",
                "Provider that writes the notes, unless the template names a model.",
            ),
            optional("model", "string", "Model that writes the notes."),
            optional("dry-run", "boolean", "Show the prompt. Nothing is sent or stored."),
        ])
        .result("`:session :status :step :reason :template :source :sha256 :provider :model :view \
                 :cached :tokens-before :tokens-after`, the view as `:text` and the `:messages` \
                 that follow it, and `:prompt :payload :sections :prompt-tokens :budget :runs-shown`. The status \
                 is `:managed`, `:below-threshold`, `:disabled`, or `:failed` with the step and the \
                 reason.")
        .pace(Pace::Aside),
    method("list-views", notes::list_views)
        .doc("Lists the outcomes of managing turns, newest first.")
        .params(&[
            optional("session", "string", "List only this session's."),
            optional("status", "name", "List only those with this status.").of(notes::status_names),
            optional("view", "string", "List only the one with this id, `view-N`."),
            optional("limit", "integer", "Maximum number, up to 250; defaults to 20."),
            optional("brief", "boolean", "Leave out `:prompt`, `:payload` and `:output`."),
        ])
        .result("A list of `:view :session :turn :message :created :status :step :reason :template \
                 :source :path :sha256 :provider :model :recent-runs :passthrough-runs \
                 :token-threshold :runs-shown :sections :budget :prompt-tokens :input-tokens \
                 :output-tokens :tokens-before :tokens-after :prompt :payload :output`; \
                 `:runs-shown` is the number of `:recent-runs` that the prompt had room for."),
];
