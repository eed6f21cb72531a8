//! The methods of the template family.

use super::session::SESSION;
use super::{Method, Pace, Param, optional, required};
use crate::rpc::{templates, trust, views};

const PROJECT: Param = optional(
    "project",
    "string",
    "The project's folder, whose `.contexture/templates/` comes before the user's own templates once \
     the project is trusted.",
);
const TRUSTED: Param = required("project", "string", "The project's folder.");

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    Method {
        name: "list-templates",
        family: "template",
        doc: "Lists the templates: the project's, the user's (`templates/` in the folder of the \
              configuration) and those that come with the program.",
        params: &[PROJECT],
        result: "A list of `:name :source :trusted :description`, with `:path` of those in files, \
                 and `:error` in place of the description of one that cannot be used. Templates of \
                 a project that is not trusted have `:trusted nil` and are not read; what counts \
                 under their names has a row before theirs.",
        pace: Pace::InOrder,
        run: templates::list_templates,
    },
    Method {
        name: "resolve-template",
        family: "template",
        doc: "Gives the template that a name stands for, read anew, and with `:fields` its text \
              with them in place of the placeholders; those that are missing are empty.",
        params: &[
            required("name", "string", "Its name, with or without `.md`."),
            PROJECT,
            optional("fields", "plist", "Texts by the names of placeholders."),
        ],
        result: "`:name :source :path :sha256 :description :recent-runs :passthrough-runs \
                 :token-threshold :model :body`, `:contract` if there is one, and with fields \
                 `:text :tokens`. The errors `no-such-template`, which lists what exists, \
                 `template-untrusted` for one that only a project has that is not trusted, and \
                 `template-malformed` with `:line` and `:column`.",
        pace: Pace::InOrder,
        run: templates::resolve_template,
    },
    Method {
        name: "trust-project",
        family: "template",
        doc: "Has the templates of a project count from now on, for the user has looked at them. \
              Only over standard input and the Unix socket.",
        params: &[TRUSTED],
        result: "`:project`, its place without links, `:remote`, the address of its Git remote, \
                 `:since`, and `:templates`, the names of its own. The trust is of this repository \
                 at this place: a project that is moved, or has another remote, must be trusted \
                 again. The error `not-allowed` for other connections.",
        pace: Pace::InOrder,
        run: trust::trust_project,
    },
    Method {
        name: "distrust-project",
        family: "template",
        doc: "Has the templates of a project no longer count.",
        params: &[TRUSTED],
        result: "`:project :was-trusted`; the error `not-allowed` as for `trust-project`.",
        pace: Pace::InOrder,
        run: trust::distrust_project,
    },
    Method {
        name: "list-trusted-projects",
        family: "template",
        doc: "Lists the projects whose templates count.",
        params: &[],
        result: "A list of `:project :remote :since :standing`: `:same`, `:other` when another \
                 repository is at its place now, or `:gone`; the error `not-allowed` as for \
                 `trust-project`.",
        pace: Pace::InOrder,
        run: trust::list_trusted_projects,
    },
    Method {
        name: "manage-context",
        family: "template",
        doc: "Has a template and a model make the managed view of a session as it is now, as `chat` \
              does for a session that is managed: once for each turn, then from the store. What \
              fails is no error but in the answer.",
        params: &[
            SESSION,
            optional("template", "string", "The template; the session's by default."),
            optional(
                "recent-runs",
                "integer",
                "How many of the last runs the model is shown; 0: \
                                                nothing is managed.",
            ),
            optional(
                "passthrough-runs",
                "integer",
                "How many of them follow its notes as they \
                                                     are; 0: none.",
            ),
            optional(
                "token-threshold",
                "integer",
                "Below how many tokens of history nothing is \
                                                    managed; 0: it always is.",
            ),
            optional(
                "provider",
                "string",
                "Who makes the notes unless the template names a model.",
            ),
            optional("model", "string", "Which model makes them."),
            optional("dry-run", "boolean", "Show the prompt; nothing is sent or stored."),
        ],
        result: "`:session :status :step :reason :template :source :sha256 :provider :model :view \
                 :cached :tokens-before :tokens-after`, the view as `:text` and the `:messages` \
                 that follow it, and `:prompt :payload :sections :prompt-tokens :budget :runs-shown`. The status \
                 is `:managed`, `:below-threshold`, `:disabled` or `:failed` with the step and the \
                 reason.",
        pace: Pace::Aside,
        run: views::manage_context,
    },
    Method {
        name: "list-views",
        family: "template",
        doc: "Lists what became of the turns that were to be managed, newest first.",
        params: &[
            optional("session", "string", "Only those of this session."),
            optional("status", "name", "Only those with this status.").of(views::status_names),
            optional("view", "string", "Only the one with this id, `view-N`."),
            optional("limit", "integer", "At most so many, 20 by default and 250 at most."),
            optional("brief", "boolean", "Without `:prompt`, `:payload` and `:output`."),
        ],
        result: "A list of `:view :session :turn :message :created :status :step :reason :template \
                 :source :path :sha256 :provider :model :recent-runs :passthrough-runs \
                 :token-threshold :runs-shown :sections :budget :prompt-tokens :input-tokens \
                 :output-tokens :tokens-before :tokens-after :prompt :payload :output`; \
                 `:runs-shown` is how many of the `:recent-runs` the prompt had room for.",
        pace: Pace::Prompt,
        run: views::list_views,
    },
];
