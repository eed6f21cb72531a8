//! The declaration of methods in the tables of the families.

use std::sync::OnceLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value as Json;

use super::Step;
use super::call::MethodCall;
use super::contract::{self, HISTORY, without_session};
use super::error::param_error;
use super::keyed::Keyed;
use super::page::{self, PageParams, Paged};
use super::param::{Param, has_member, key, own_params_of};
use super::params::{KEY, lacks};
use super::version::{IfVersion, Since, VersionOwner, Versions};
use crate::engine::Beside;
use crate::value::Value;
use crate::wire::message::WireError;

/// A method: its parameters, its result, and the function that runs it.
pub struct Method {
    /// Name in calls.
    pub name: &'static str,
    /// Family of the method.
    pub family: &'static str,
    /// Description in a sentence or two.
    pub doc: &'static str,
    /// Description of the result.
    pub result: &'static str,
    /// Thread on which the first part of the method runs.
    pub pace: Pace,
    /// Kind of change that the method makes to the state.
    pub(super) change: ChangeKind,
    /// Parameters of the method's handler.
    pub(super) own_params: fn() -> Vec<Param>,
    /// Cache of all parameters of the method.
    pub(super) all_params: fn() -> &'static OnceLock<Vec<Param>>,
    /// Schemas of the method's parameters and of its result.
    pub(super) schemas: [fn(&mut SchemaGenerator) -> Schema; 2],
    /// Schema of the method's result without references, made once.
    pub(super) inlined_result: fn() -> &'static Json,
    /// Schema of further members of the method's errors, if they have any.
    pub(super) in_errors: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// Schema of the method's progress, if it reports any.
    pub(super) progress: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// The lists in the method's result that are answered in pages, if it has any.
    pub(super) paged: Option<&'static Paged>,
    pub(super) run: fn(MethodCall, Value) -> Result<Step, WireError>,
    pub(super) needs_session: fn(&Value) -> bool,
    /// True if the method changes the session in several steps, and checks the version itself.
    pub(super) is_long: bool,
    /// Session that the method's calls are about; `None` if that follows from the parameters.
    pub(super) session: Option<VersionOwner>,
    /// True if a call may have a history of the client's own in place of a session.
    pub(super) takes_history: bool,
    /// Data in the method's result that can change without a new version.
    pub(super) beside: Beside,
}

/// The kind of change that a method makes to the state. Methods that change something take a
/// request key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// No change.
    Nothing,
    /// A change for which the method itself stores the request keys.
    ByItself,
    /// A change in the engine.
    InEngine,
    /// A change after long work; a repeated call skips the work.
    AfterWork,
    /// Like `AfterWork`, but the change is lost when the server ends.
    OfThisRun,
}

/// Thread on which a method runs until it hands an operation to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// On the connection's own thread, for work that is quick and never waits.
    Prompt,
    /// On a thread that may block. Later calls of the connection wait for this call.
    InOrder,
    /// On a thread that may block, alongside the connection's later calls.
    Aside,
    /// Like `Aside`, but after earlier calls that change what the method reads.
    AsideAfter,
}

/// Declares a method of a family, with [`Pace::Prompt`]. The handler's argument gives the
/// parameters; the type after the arrow is that of the result.
macro_rules! method {
    ($family:literal, $name:literal, $handler:path => $result:ty) => {
        $crate::rpc::method::Method {
            name: $name,
            family: $family,
            doc: "",
            result: "",
            pace: $crate::rpc::method::Pace::Prompt,
            change: $crate::rpc::method::ChangeKind::Nothing,
            own_params: || $crate::rpc::param::params_of($handler),
            all_params: || {
                static PARAMS: ::std::sync::OnceLock<Vec<$crate::rpc::param::Param>> =
                    ::std::sync::OnceLock::new();
                &PARAMS
            },
            schemas: [
                |generator| $crate::rpc::param::schema_of($handler, generator),
                |generator| generator.subschema_for::<$result>(),
            ],
            inlined_result: || {
                static SCHEMA: ::std::sync::LazyLock<::serde_json::Value> =
                    ::std::sync::LazyLock::new($crate::rpc::param::inlined::<$result>);
                &SCHEMA
            },
            in_errors: None,
            progress: None,
            paged: None,
            run: |call, params| $handler(call, $crate::rpc::params::decode(params)?),
            needs_session: |_| true,
            is_long: false,
            session: None,
            takes_history: false,
            beside: $crate::engine::Beside::Nothing,
        }
    };
}
pub(super) use method;

impl Method {
    pub(super) const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

    pub(super) const fn result(self, result: &'static str) -> Self {
        Self { result, ..self }
    }

    /// Declares members that the method's errors have besides the members of the error's kind.
    pub(super) const fn in_errors<T: JsonSchema>(self) -> Self {
        Self { in_errors: Some(|generator| generator.subschema_for::<T>()), ..self }
    }

    /// Declares the parameters of the `progress` notifications that the method sends.
    pub(super) const fn progress<T: JsonSchema>(self) -> Self {
        Self { progress: Some(|generator| generator.subschema_for::<T>()), ..self }
    }

    pub(super) const fn pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Declares that the method changes the state and stores the keys of its calls itself.
    pub(super) const fn changes_by_itself(self) -> Self {
        Self { change: ChangeKind::ByItself, ..self }
    }

    pub(super) const fn changes(self) -> Self {
        Self { change: ChangeKind::InEngine, ..self }
    }

    /// Declares that the method changes the state after work such as reading files.
    pub(super) const fn changes_after_work(self) -> Self {
        Self { change: ChangeKind::AfterWork, ..self }
    }

    /// Declares that the method changes, after work, something that does not outlive the server.
    pub(super) const fn changes_this_run(self) -> Self {
        Self { change: ChangeKind::OfThisRun, ..self }
    }

    /// Declares which lists in the result are returned in pages.
    pub(super) const fn pages(self, paged: &'static Paged) -> Self {
        Self { paged: Some(paged), ..self }
    }

    /// Declares which calls need a session; by default, all whose session defaults to the current.
    pub(super) const fn needs_session(self, needs_session: fn(&Value) -> bool) -> Self {
        Self { needs_session, ..self }
    }

    /// Declares that a call with `messages` is about this history, and not about a session.
    pub(super) const fn or_history(self) -> Self {
        Self { takes_history: true, ..self }.needs_session(|params| params.get(HISTORY).is_none())
    }

    /// Declares that the method changes the session in steps, and checks `:if-version` itself.
    pub(super) const fn in_steps(self) -> Self {
        Self { is_long: true, ..self }
    }

    /// Declares which session the calls are about, if that does not follow from the parameters.
    pub(super) const fn about_session(self, about: VersionOwner) -> Self {
        Self { session: Some(about), ..self }
    }

    /// Declares the data in the result that can change without a new version.
    pub(super) const fn shows(self, beside: Beside) -> Self {
        Self { beside, ..self }
    }

    /// Returns the parameters in the order of the documentation.
    pub fn params(&self) -> &'static [Param] {
        (self.all_params)().get_or_init(|| {
            let mut params = (self.own_params)();
            match (self.about_of(&params), self.is_change()) {
                (Some(_), false) => params.extend(own_params_of::<Since>()),
                (None, _) => {}
                (Some(_), true) => params.extend(own_params_of::<IfVersion>()),
            }
            if let Some(paged) = self.paged {
                // A method without a `:brief` for its entries may have one of its own.
                let of_pages = own_params_of::<PageParams>().into_iter();
                params.extend(of_pages.filter(|it| it.name != "brief" || !paged.brief.is_empty()));
            }
            if self.is_change() {
                params.push(key());
            }
            params
        })
    }

    /// Returns which manager or session the method's calls are about, if any. Their results include
    /// its version, except for lists and texts.
    pub(super) fn about(&self) -> Option<VersionOwner> {
        self.about_of(self.params())
    }

    fn about_of(&self, params: &[Param]) -> Option<VersionOwner> {
        let takes = |name: &str| params.iter().any(|param| param.name == name);
        let is_for_current = params.iter().any(|param| param.is_current_session);
        match self.family {
            _ if self.session.is_some() => self.session,
            "context" if takes("manager") => Some(VersionOwner::Manager),
            // Memories are not part of a session.
            "memory" => None,
            _ if is_for_current => Some(VersionOwner::CurrentSession),
            _ => takes("session").then_some(VersionOwner::Session),
        }
    }

    /// Returns whether every call is about exactly one manager or session.
    pub(super) fn is_about_one(&self) -> bool {
        let is_for_several = |param: &Param| param.name == "managers";
        let may_be_left_out = |param: &Param| param.name == "session" && !param.required;
        match self.about() {
            Some(VersionOwner::Session) => !self.params().iter().any(may_be_left_out),
            Some(_) => !self.params().iter().any(is_for_several),
            None => false,
        }
    }

    pub(super) fn is_change(&self) -> bool {
        self.change != ChangeKind::Nothing
    }

    /// Returns the names that the contract has for the method, if they are others.
    pub fn contract_names(&self) -> impl Iterator<Item = &'static str> {
        contract::rows_of(self.name).map(|row| row.name)
    }

    /// Returns the paths of the lists that the method returns in pages, if it returns any.
    pub fn lists_in_pages(&self) -> Option<&'static [&'static str]> {
        self.paged.map(Paged::paths)
    }

    /// Returns whether the first page has the last entries of a list, which are the newest.
    pub fn has_newest_page_first(&self) -> bool {
        self.paged.is_some_and(|paged| paged.newest_last)
    }

    /// Runs the method until it needs the engine.
    ///
    /// # Errors
    /// Fails if the call is refused before it needs the engine, as for an invalid parameter.
    pub fn run(&self, mut call: MethodCall, mut params: Value) -> Result<Step, WireError> {
        if !self.is_change() {
            // A client may repeat any call with the same key, without knowing what it changes.
            params.take_named(KEY);
        }
        self.check_names(&params)?;
        if call.dialect.is_json() {
            self.without_nulls(&mut params);
        }
        if self.takes_history && params.get(HISTORY).is_some() {
            without_session(&mut params)?;
            return self.run_in_pages(call, params);
        }
        let key = match self.change {
            ChangeKind::Nothing => None,
            _ => Keyed::take(self.name, &mut params, call.is_session_named)?,
        };
        let mut versions = match self.about() {
            Some(about) => Versions::take(about, self.beside, &mut params)?,
            None => None,
        };
        if self.is_long {
            call.in_steps.if_version = versions.as_mut().and_then(Versions::take_expected);
        }
        let run = |call, params| {
            let step = self.run_in_pages(call, params)?;
            Ok(match versions {
                Some(versions) => versions.wrap(step),
                None => step,
            })
        };
        let Some(key) = key else { return run(call, params) };
        let key = match self.change {
            ChangeKind::OfThisRun => key.of_this_run(),
            _ => key,
        };
        if self.change == ChangeKind::ByItself {
            call.in_steps.key = Some(key);
            return run(call, params);
        }
        if matches!(self.change, ChangeKind::AfterWork | ChangeKind::OfThisRun)
            && self.pace != Pace::Prompt
            && let Some(answer) = key.look_up(&call.tools.engine)?
        {
            return Ok(Step::Done(answer));
        }
        Ok(key.wrap(run(call, params)?))
    }

    fn run_in_pages(&self, call: MethodCall, params: Value) -> Result<Step, WireError> {
        match self.paged {
            Some(paged) => page::run(self.name, paged, self.inlined_result, call, params, self.run),
            None => (self.run)(call, params),
        }
    }

    /// Returns the members that `:brief` leaves out of the entries of the method's lists.
    pub fn left_out_by_brief(&self) -> &'static [&'static str] {
        self.paged.map_or(&[], |paged| paged.brief)
    }

    /// Returns whether a word names a parameter, or a member of a parameter or of the result.
    pub(super) fn has_name(&self, word: &str) -> bool {
        let of_params =
            self.params().iter().any(|param| param.name == word || param.inner.contains(&word));
        of_params || has_member((self.inlined_result)(), word)
    }

    /// Removes parameters that are `null`, which in JSON counts as absent. Keeps `null` in place of
    /// a list, since some lists refuse it: it could mean no entry or every entry.
    fn without_nulls(&self, params: &mut Value) {
        let Value::Map(entries) = params else { return };
        let is_list = |name: &str| {
            self.params().iter().any(|param| param.name == name && param.kind.starts_with("list"))
        };
        entries.retain(|(key, value)| *value != Value::Nil || is_list(&key.kebab()));
    }

    /// Refuses a parameter that the method does not have.
    fn check_names(&self, params: &Value) -> Result<(), WireError> {
        let known = self.params();
        let is_known = |name: &str| known.iter().any(|param| param.name == name);
        let Some(unknown) = params.names().find(|name| !is_known(name)) else { return Ok(()) };
        let known: Vec<&str> = known.iter().map(|param| param.name).collect();
        let known = match &known[..] {
            [] => "there are no parameters".to_owned(),
            [only] => format!("the only parameter is {only}"),
            names => format!("the parameters are {}", names.join(", ")),
        };
        Err(param_error(&unknown, &format!("is not a parameter here; {known}")))
    }

    /// Returns whether a call with these parameters is about the current session.
    pub fn is_about_current_session(&self, params: &Value) -> bool {
        let is_left_out = |param: &Param| param.is_current_session && lacks(params, param.name);
        self.params().iter().any(is_left_out) && (self.needs_session)(params)
    }
}
