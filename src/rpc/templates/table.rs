//! The methods of the template family.

use super::trust;
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;
use crate::rpc::shapes::Either;

/// Methods, in the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("template", "list-templates", super::list_templates => Vec<super::TemplateLine>)
        .pages(&Paged::LIST)
        .doc("Lists the templates: the project's, the user's (`templates/` in the folder of the \
              configuration) and the built-in ones.")
        .result(
            "A list of templates. A template of an untrusted project is not read. If another \
             template of the same name is used instead, that one is listed right before it.",
        )
        .pace(Pace::InOrder),
    method!("template", "resolve-template", super::resolve_template => super::TemplateShown<'static>)
        .doc("Reads the template with this name. With `:fields`, also fills in its placeholders; \
              missing fields are empty.")
        .result(
            "The template. The errors are `no-such-template`, `template-untrusted` if only an \
             untrusted project has the template, `template-unreadable` and `template-malformed`.",
        )
        .pace(Pace::InOrder),
    method!("template", "trust-project", trust::trust_project => Either<trust::TrustedShown, trust::Distrusted>)
        .changes_after_work()
        .doc("Trusts a project, so that its own templates are used, or with `:trusted nil` no longer. \
              Trust a project only after the user has looked at them. Available only over standard input and the Unix socket.")
        .result(
            "The project. Trust applies to this repository at this place: a project that is \
             moved, or has another remote, must be trusted again. On other connections, the error \
             is `not-allowed`.",
        )
        .pace(Pace::InOrder),
    method!("template", "list-trusted-projects", trust::list_trusted_projects => Vec<trust::TrustedShown>)
        .pages(&Paged::LIST)
        .doc("Lists the trusted projects.")
        .result("A list of projects. The error is `not-allowed` as for `trust-project`.")
        .pace(Pace::InOrder),
];
