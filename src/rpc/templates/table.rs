//! The methods of the template family.

use super::session::SESSION;
use super::{Method, Pace, Param, optional, required};
use crate::rpc::{notes, templates, trust};

const PROJECT: Param = optional(
    "project",
    "string",
    "Folder of the project. Once the project is trusted, its `.contexture/templates/` takes \
     precedence over the user's own templates.",
);
const TRUSTED: Param = required("project", "string", "Folder of the project.");

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    Method {
        name: "list-templates",
        family: "template",
        doc: "Lists the templates: the project's, the user's (`templates/` in the folder of the \
              configuration) and the built-in ones.",
        params: &[PROJECT],
        result: "A list of `:name :source :trusted :description`, with `:path` for templates in files, \
                 and `:error` instead of the description if one cannot be used. Templates of an \
                 untrusted project have `:trusted nil` and are not read; the template used under the \
                 same name is listed before them.",
        pace: Pace::InOrder,
        run: templates::list_templates,
    },
    Method {
        name: "resolve-template",
        family: "template",
        doc: "Reads the template with this name. With `:fields`, also fills in its placeholders; \
              missing fields are empty.",
        params: &[
            required("name", "string", "Name, with or without `.md`."),
            PROJECT,
            optional("fields", "plist", "Texts by name of the placeholder."),
        ],
        result: "`:name :source :path :sha256 :description :recent-runs :passthrough-runs \
                 :token-threshold :model :body`, `:contract` if there is one, and with fields \
                 `:text :tokens`. The errors are `no-such-template`, which lists the existing ones, \
                 `template-untrusted` if only an untrusted project has it, and \
                 `template-malformed` with `:line` and `:column`.",
        pace: Pace::InOrder,
        run: templates::resolve_template,
    },
    Method {
        name: "trust-project",
        family: "template",
        doc: "Trusts a project, so that its own templates are used. Call this only after the user \
              has looked at them. Only over standard input and the Unix socket.",
        params: &[TRUSTED],
        result: "`:project`, its path without links; `:remote`, the address of its Git remote; \
                 `:since`; and `:templates`, the names of its own templates. Trust applies to this \
                 repository at this place: a project that is moved, or has another remote, must be \
                 trusted again. The error is `not-allowed` on other connections.",
        pace: Pace::InOrder,
        run: trust::trust_project,
    },
    Method {
        name: "distrust-project",
        family: "template",
        doc: "Stops trusting a project, so that its templates are no longer used.",
        params: &[TRUSTED],
        result: "`:project :was-trusted`; the error `not-allowed` as for `trust-project`.",
        pace: Pace::InOrder,
        run: trust::distrust_project,
    },
    Method {
        name: "list-trusted-projects",
        family: "template",
        doc: "Lists the trusted projects.",
        params: &[],
        result: "A list of `:project :remote :since :standing`. The standing is `:same`, `:other` if \
                 another repository is at its place now, or `:gone`. The error `not-allowed` as for \
                 `trust-project`.",
        pace: Pace::InOrder,
        run: trust::list_trusted_projects,
    },
    Method {
        name: "manage-context",
        family: "template",
        doc: "Makes the managed view of a session as it is now, with a template and a model, as \
              `chat` does for a managed session. Each turn's view is made once and then taken from \
              the store. A failure is reported in the result, not as an error.",
        params: &[
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
        ],
        result: "`:session :status :step :reason :template :source :sha256 :provider :model :view \
                 :cached :tokens-before :tokens-after`, the view as `:text` and the `:messages` \
                 that follow it, and `:prompt :payload :sections :prompt-tokens :budget :runs-shown`. The status \
                 is `:managed`, `:below-threshold`, `:disabled`, or `:failed` with the step and the \
                 reason.",
        pace: Pace::Aside,
        run: notes::manage_context,
    },
    Method {
        name: "list-views",
        family: "template",
        doc: "Lists the outcomes of managing turns, newest first.",
        params: &[
            optional("session", "string", "List only this session's."),
            optional("status", "name", "List only those with this status.").of(notes::status_names),
            optional("view", "string", "List only the one with this id, `view-N`."),
            optional("limit", "integer", "Maximum number, up to 250; defaults to 20."),
            optional("brief", "boolean", "Leave out `:prompt`, `:payload` and `:output`."),
        ],
        result: "A list of `:view :session :turn :message :created :status :step :reason :template \
                 :source :path :sha256 :provider :model :recent-runs :passthrough-runs \
                 :token-threshold :runs-shown :sections :budget :prompt-tokens :input-tokens \
                 :output-tokens :tokens-before :tokens-after :prompt :payload :output`; \
                 `:runs-shown` is the number of `:recent-runs` that the prompt had room for.",
        pace: Pace::Prompt,
        run: notes::list_views,
    },
];
