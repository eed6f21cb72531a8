//! The methods of the template family.

use super::{Method, Pace, Param, optional, required};
use crate::rpc::templates;

const PROJECT: Param = optional(
    "project",
    "string",
    "The project's folder, whose `.contexture/templates/` comes before the user's own templates.",
);

/// In the order of the documentation.
pub(super) static METHODS: &[Method] = &[
    Method {
        name: "list-templates",
        family: "template",
        doc: "Lists the templates: the project's, the user's (`templates/` in the folder of the \
              configuration) and those that come with the program.",
        params: &[PROJECT],
        result: "A list of `:name :source :description`, with `:path` of those in files, and \
                 `:error` in place of the description of one that cannot be used.",
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
                 `:text :tokens`. The errors `no-such-template`, which lists what exists, and \
                 `template-malformed` with `:line` and `:column`.",
        pace: Pace::InOrder,
        run: templates::resolve_template,
    },
];
