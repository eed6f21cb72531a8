//! The methods of the template family.

use super::trust;
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;

/// In the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("template", "list-templates", super::list_templates => Vec<super::TemplateLine>)
        .pages(&Paged::LIST)
        .doc("Lists the templates: the project's, the user's (`templates/` in the folder of the \
              configuration) and the built-in ones.")
        .result("A list of `:name :source :trusted :description`, with `:path` for templates in files, \
                 and `:error` instead of the description if one cannot be used. Templates of an \
                 untrusted project have `:trusted nil` and are not read; the template used under the \
                 same name is listed before them.")
        .pace(Pace::InOrder),
    method!("template", "resolve-template", super::resolve_template => super::TemplateShown<'static>)
        .doc("Reads the template with this name. With `:fields`, also fills in its placeholders; \
              missing fields are empty.")
        .result("`:name :source :path :sha256 :description :recent-runs :passthrough-runs \
                 :token-threshold :model :body`, `:contract` if there is one, and with fields \
                 `:text :tokens`. The errors are `no-such-template`, which lists the existing ones, \
                 `template-untrusted` if only an untrusted project has it, and \
                 `template-malformed` with `:line` and `:column`.")
        .pace(Pace::InOrder),
    method!("template", "trust-project", trust::trust_project => trust::TrustedShown)
        .changes_after_work()
        .doc("Trusts a project, so that its own templates are used. Call this only after the user \
              has looked at them. Available only over standard input and the Unix socket.")
        .result("`:project`, its path without links; `:remote`, the address of its Git remote; \
                 `:since`; and `:templates`, the names of its own templates. Trust applies to this \
                 repository at this place: a project that is moved, or has another remote, must be \
                 trusted again. The error is `not-allowed` on other connections.")
        .pace(Pace::InOrder),
    method!("template", "distrust-project", trust::distrust_project => trust::Distrusted)
        .changes_after_work()
        .doc("Stops trusting a project, so that its templates are no longer used.")
        .result("`:project :was-trusted`; the error `not-allowed` as for `trust-project`.")
        .pace(Pace::InOrder),
    method!("template", "list-trusted-projects", trust::list_trusted_projects => Vec<trust::TrustedShown>)
        .pages(&Paged::LIST)
        .doc("Lists the trusted projects.")
        .result("A list of `:project :remote :since :standing`. The standing is `:same`; `:other` if \
                 another repository is at its place now; `:gone` if nothing is there. The error is \
                 `not-allowed`, as for `trust-project`.")
        .pace(Pace::InOrder),
];
