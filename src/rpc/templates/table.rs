//! The methods of the template family.

use super::trust;
use crate::rpc::method::{Method, Pace, Param, Run, optional, required, typed};

const PROJECT: Param = optional(
    "project",
    "string",
    "Folder of the project. Once the project is trusted, its `.contexture/templates/` takes \
     precedence over the user's own templates.",
);
const TRUSTED: Param = required("project", "string", "Folder of the project.");

const fn method(name: &'static str, run: Run) -> Method {
    Method::new("template", name, run)
}

/// In the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method("list-templates", typed!(super::list_templates))
        .doc("Lists the templates: the project's, the user's (`templates/` in the folder of the \
              configuration) and the built-in ones.")
        .params(&[PROJECT])
        .result("A list of `:name :source :trusted :description`, with `:path` for templates in files, \
                 and `:error` instead of the description if one cannot be used. Templates of an \
                 untrusted project have `:trusted nil` and are not read; the template used under the \
                 same name is listed before them.")
        .pace(Pace::InOrder),
    method("resolve-template", typed!(super::resolve_template))
        .doc("Reads the template with this name. With `:fields`, also fills in its placeholders; \
              missing fields are empty.")
        .params(&[
            required("name", "string", "Name, with or without `.md`."),
            PROJECT,
            optional("fields", "plist", "Texts by name of the placeholder."),
        ])
        .result("`:name :source :path :sha256 :description :recent-runs :passthrough-runs \
                 :token-threshold :model :body`, `:contract` if there is one, and with fields \
                 `:text :tokens`. The errors are `no-such-template`, which lists the existing ones, \
                 `template-untrusted` if only an untrusted project has it, and \
                 `template-malformed` with `:line` and `:column`.")
        .pace(Pace::InOrder),
    method("trust-project", typed!(trust::trust_project))
        .doc("Trusts a project, so that its own templates are used. Call this only after the user \
              has looked at them. Only over standard input and the Unix socket.")
        .params(&[TRUSTED])
        .result("`:project`, its path without links; `:remote`, the address of its Git remote; \
                 `:since`; and `:templates`, the names of its own templates. Trust applies to this \
                 repository at this place: a project that is moved, or has another remote, must be \
                 trusted again. The error is `not-allowed` on other connections.")
        .pace(Pace::InOrder),
    method("distrust-project", typed!(trust::distrust_project))
        .doc("Stops trusting a project, so that its templates are no longer used.")
        .params(&[TRUSTED])
        .result("`:project :was-trusted`; the error `not-allowed` as for `trust-project`.")
        .pace(Pace::InOrder),
    method("list-trusted-projects", typed!(trust::list_trusted_projects))
        .doc("Lists the trusted projects.")
        .result("A list of `:project :remote :since :standing`. The standing is `:same`, `:other` if \
                 another repository is at its place now, or `:gone`. The error `not-allowed` as for \
                 `trust-project`.")
        .pace(Pace::InOrder),
];
