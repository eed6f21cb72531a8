//! The methods of the template family.

use super::trust;
use crate::rpc::method::{Method, Pace, method};
use crate::rpc::page::Paged;
use crate::rpc::shapes::Either;

/// Methods, in the order of the documentation.
pub(in crate::rpc) static METHODS: &[Method] = &[
    method!("template", "list-templates", super::list_templates => Either<Vec<super::TemplateLine>, super::TemplateShown<'static>>)
        .pages(&Paged::LIST)
        .doc("Lists the templates: the project's, the user's (`templates/` in the folder of the \
              configuration) and the built-in ones. With `:name`, reads that template.")
        .result(
            "A list of templates. A template of an untrusted project is not read. If another \
             template of the same name is used instead, that one is listed right before it. With \
             `:name`, the template. The errors are then `no-such-template`, `template-untrusted` if \
             only an untrusted project has the template, `template-unreadable` and \
             `template-malformed`.",
        )
        .pace(Pace::InOrder),
    method!("template", "trust-project", trust::trust_project => Either<Vec<trust::TrustedShown>, Either<trust::TrustedShown, trust::Distrusted>>)
        .changes_after_work()
        .doc("Trusts a project, so that its own templates are used, or with `:trusted nil` no longer. \
              Without `:project`, lists the trusted projects. Trust a project only after the user has looked at them. Available only over standard input and the Unix socket.")
        .result(
            "The project, or the list. Trust applies to this repository at this place: a project that is \
             moved, or has another remote, must be trusted again. On other connections, the error \
             is `not-allowed`.",
        )
        .pace(Pace::InOrder),
];
