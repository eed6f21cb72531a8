//! The configuration. The configuration file overrides the defaults, the environment overrides the
//! file, and flags override the environment.

mod embeddings;
mod hub;
mod models;
mod providers;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use etcetera::base_strategy::{BaseStrategy, Xdg};
use serde::Deserialize;

use crate::agent::Limits;
use crate::context::manager::{DEFAULT_CAPACITY, MAX_CAPACITY};
use crate::files::DEFAULT_MAX_FILE_BYTES;
use crate::hub::HubAddress;
use crate::store::recovery::backup::BACKUPS_KEPT;
use crate::tokens::TokenizerName;
use crate::whole_file::read_text;
use crate::wire::frame::DEFAULT_MAX_MESSAGE;

pub(crate) use self::embeddings::{EmbeddingSettings, Embeddings};
use self::hub::HubSettings;
use crate::provider::settings::{CheckedProvider, ProviderSettings};
use crate::tokens::model::Override;

/// The settings in effect.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Maximum sizes of protocol messages and files, and the default capacity of managers.
    pub limits: Limits,
    /// Number of automatic backups to keep; 0 makes none.
    pub backups_kept: usize,
    /// Tokenizer that counts tokens.
    pub tokenizer: TokenizerName,
    /// Model for sessions that name no model.
    pub model: Option<String>,
    /// Limits, factors and tokenizers that the user configured for models, in place of the built-in
    /// ones.
    pub models: Vec<Override>,
    /// Service that computes vectors for texts.
    pub embeddings: Option<Embeddings>,
    /// Database where people share sessions.
    pub hub: Option<HubAddress>,
    /// Name of the provider whose model describes what a summary replaces.
    pub summarizer: Option<String>,
    /// Models to talk to. The first is the default.
    pub providers: Vec<CheckedProvider>,
    /// File with a secret. Clients must send the secret unless they are known to belong to the same
    /// user; agents over HTTP must always send it.
    pub secret_file: Option<PathBuf>,
    /// Each setting except `secret-file`, with its value and source, to be shown to the user.
    pub explained: Vec<ExplainedSetting>,
}

/// A setting in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExplainedSetting {
    /// Name of the setting, as in the file.
    pub name: &'static str,
    pub value: String,
    /// Source of the value.
    pub source: &'static str,
}

/// The settings from one source. If a setting is absent here, the next source applies.
#[derive(Debug, Clone, Default, Deserialize, clap::Args)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Settings {
    /// Maximum size of a protocol message, in bytes
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "BYTES", value_parser = number::<usize>)]
    pub max_message_bytes: Option<usize>,
    /// Maximum size of a file to read, in bytes
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "BYTES", value_parser = number::<u64>)]
    pub max_file_bytes: Option<u64>,
    /// Default capacity of a manager, in items, from 1 to 1000
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "N", value_parser = number::<usize>)]
    pub max_items: Option<usize>,
    /// Number of automatic backups to keep, one a day; 0 makes none
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "N", value_parser = number::<usize>)]
    pub backups_kept: Option<usize>,
    /// Tokenizer that counts tokens: o200k, cl100k or estimate
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "NAME", value_parser = parse_tokenizer)]
    pub tokenizer: Option<TokenizerName>,
    /// Model for sessions that name no model, such as claude-sonnet-4-5
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "NAME")]
    pub model: Option<String>,
    /// Provider whose model adds a description to each summary, which otherwise only lists facts
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "NAME")]
    pub summarizer: Option<String>,
    /// Limits, factors and tokenizers of models; only in the file.
    #[arg(skip)]
    pub models: Option<Vec<Override>>,
    /// Service that computes vectors for texts; only in the file.
    #[arg(skip)]
    pub embeddings: Option<EmbeddingSettings>,
    /// Database where people share sessions; only in the file.
    #[arg(skip)]
    pub hub: Option<HubSettings>,
    /// Models to talk to; only in the file.
    #[arg(skip)]
    pub providers: Option<Vec<ProviderSettings>>,
    /// File with the secret for clients over TCP and agents over HTTP
    #[arg(long, global = true, help_heading = SETTINGS, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

/// The reason why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file exists but cannot be read.
    #[error("cannot read {}: {cause}", crate::visible::visible_path(path))]
    Unreadable { path: PathBuf, cause: std::io::Error },
    /// The file is not valid TOML, or has an unknown setting or a value of the wrong type.
    #[error("{}: {cause}", crate::visible::visible_path(path))]
    Invalid { path: PathBuf, cause: String },
    /// A value is not allowed, or a value in the environment has the wrong type.
    #[error("{}", bad_value(name, message, origin))]
    BadValue { name: &'static str, message: String, origin: &'static str },
}

/// Describes a bad value and its source. For a table, the source comes first, since the message may
/// end with advice; for any other setting, the source comes last.
fn bad_value(name: &str, message: &str, origin: &str) -> String {
    match name.starts_with('[') {
        true => format!("in the {origin}, {name} {message}"),
        false => format!("{name} {message} (from the {origin})"),
    }
}

/// Heading of the settings in the output of `--help`.
const SETTINGS: &str = "Settings";
const DEFAULTS: &str = "default";
const FILE: &str = "configuration file";
const ENVIRONMENT: &str = "environment";
const FLAGS: &str = "flag";
/// Smallest allowed value of `max-message-bytes`. It leaves room to call every method.
const MIN_MESSAGE_BYTES: usize = 4096;

/// Creates the error of a table in the configuration file.
fn bad_table(name: &'static str, message: String) -> ConfigError {
    ConfigError::BadValue { name, message, origin: FILE }
}

impl Config {
    /// Combines the settings of all sources. `environment` looks up a variable: for example,
    /// `CONTEXTURE_MAX_ITEMS` sets `max-items`. A `file` that does not exist counts as empty.
    ///
    /// # Errors
    /// Fails if a source cannot be read or has a bad value.
    pub(crate) fn load(
        file: &Path,
        environment: impl Fn(&str) -> Option<String>,
        flags: Settings,
    ) -> Result<Self, ConfigError> {
        let [flags, environment, file] = [flags, from_environment(environment)?, read(file)?];
        let layers = [(FLAGS, &flags), (ENVIRONMENT, &environment), (FILE, &file)];
        let mut sources = Sources { layers, explained: Vec::new() };
        let max_message_bytes =
            sources.pick("max-message-bytes", DEFAULT_MAX_MESSAGE, |s| s.max_message_bytes);
        let max_file_bytes =
            sources.pick("max-file-bytes", DEFAULT_MAX_FILE_BYTES, |s| s.max_file_bytes);
        let max_items = sources.pick("max-items", DEFAULT_CAPACITY, |s| s.max_items);
        let tokenizer = sources.pick("tokenizer", TokenizerName::default(), |s| s.tokenizer);
        let model = sources.pick_name("model", |s| &s.model)?;
        let summarizer = sources.pick_name("summarizer", |s| &s.summarizer)?;
        let explained = &mut sources.explained;
        let models = models::overrides(file.models.clone().unwrap_or_default(), explained)?;
        let embeddings = embeddings::embeddings(file.embeddings.clone(), explained)?;
        let hub = hub::hub(file.hub.clone(), explained)?;
        let providers =
            providers::providers(file.providers.clone().unwrap_or_default(), explained)?;
        let secret_file = layers.iter().find_map(|(_, settings)| settings.secret_file.clone());
        let backups_kept = sources.pick("backups-kept", BACKUPS_KEPT, |s| s.backups_kept);
        sources.check("max-items", (1..=MAX_CAPACITY).contains(&max_items), || {
            format!("must be from 1 to {MAX_CAPACITY}, got {max_items}")
        })?;
        sources.check("max-message-bytes", max_message_bytes >= MIN_MESSAGE_BYTES, || {
            format!("must be {MIN_MESSAGE_BYTES} or more, got {max_message_bytes}")
        })?;
        Ok(Self {
            limits: Limits { max_message_bytes, max_file_bytes, max_items },
            backups_kept,
            tokenizer,
            model,
            summarizer,
            models,
            embeddings,
            hub,
            providers,
            secret_file,
            explained: sources.explained,
        })
    }
}

/// The settings from each source, in order of precedence, and the settings picked so far.
struct Sources<'a> {
    layers: [(&'static str, &'a Settings); 3],
    explained: Vec<ExplainedSetting>,
}

impl Sources<'_> {
    /// Returns a setting from the first source that has it, or the default.
    fn pick<T: ToString>(
        &mut self,
        name: &'static str,
        default: T,
        of: impl Fn(&Settings) -> Option<T>,
    ) -> T {
        let found = self.layers.iter().find_map(|(source, layer)| Some((*source, of(layer)?)));
        let (source, value) = found.unwrap_or((DEFAULTS, default));
        self.explained.push(ExplainedSetting { name, value: value.to_string(), source });
        value
    }

    /// Picks a name, which must not be blank. A missing name is shown as `none`.
    fn pick_name(
        &mut self,
        name: &'static str,
        of: fn(&Settings) -> &Option<String>,
    ) -> Result<Option<String>, ConfigError> {
        self.pick(name, "none".to_owned(), |settings| of(settings).clone());
        let found = self.layers.iter().find_map(|(_, settings)| of(settings).clone());
        let is_blank = found.as_ref().is_some_and(|found| found.trim().is_empty());
        self.check(name, !is_blank, || "must not be empty".to_owned())?;
        Ok(found)
    }

    fn check(
        &self,
        name: &'static str,
        is_good: bool,
        message: impl FnOnce() -> String,
    ) -> Result<(), ConfigError> {
        if is_good {
            return Ok(());
        }
        let origin = self.explained.iter().find(|setting| setting.name == name);
        let origin = origin.map_or("", |setting| setting.source);
        Err(ConfigError::BadValue { name, message: message(), origin })
    }
}

/// Maximum size of the file of settings in bytes.
const LARGEST_FILE: u64 = 1 << 20;

fn read(path: &Path) -> Result<Settings, ConfigError> {
    match read_text(path, LARGEST_FILE) {
        Ok(text) => toml::from_str(&text).map_err(|error| {
            // The error does not quote the line, since it may contain a key.
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
            let cause = format!("line {line}: {}", in_words(error.message()));
            ConfigError::Invalid { path: path.to_owned(), cause }
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Settings::default()),
        Err(cause) => Err(ConfigError::Unreadable { path: path.to_owned(), cause }),
    }
}

/// Replaces the names of Rust's number types in an error of the parser with words.
fn in_words(message: &str) -> String {
    ["usize", "u64", "f64"].iter().fold(message.to_owned(), |message, kind| {
        let words = if *kind == "f64" { "a number" } else { "a whole number" };
        message.replace(&format!("expected {kind}"), &format!("expected {words}"))
    })
}

fn from_environment(get: impl Fn(&str) -> Option<String>) -> Result<Settings, ConfigError> {
    fn parsed<T>(
        name: &'static str,
        text: Option<String>,
        parse: fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let bad = |message| ConfigError::BadValue { name, message, origin: ENVIRONMENT };
        text.map(|text| parse(&text).map_err(bad)).transpose()
    }
    let message_bytes = get("CONTEXTURE_MAX_MESSAGE_BYTES");
    Ok(Settings {
        max_message_bytes: parsed("max-message-bytes", message_bytes, number)?,
        max_file_bytes: parsed("max-file-bytes", get("CONTEXTURE_MAX_FILE_BYTES"), number)?,
        max_items: parsed("max-items", get("CONTEXTURE_MAX_ITEMS"), number)?,
        backups_kept: parsed("backups-kept", get("CONTEXTURE_BACKUPS_KEPT"), number)?,
        tokenizer: parsed("tokenizer", get("CONTEXTURE_TOKENIZER"), parse_tokenizer)?,
        model: get("CONTEXTURE_MODEL"),
        summarizer: get("CONTEXTURE_SUMMARIZER"),
        secret_file: get("CONTEXTURE_SECRET_FILE").map(PathBuf::from),
        ..Settings::default()
    })
}

/// Parses the value of an option that must be a whole number.
pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true if !text.is_empty() => format!("{text} is too large"),
        _ => format!("must be a whole number, 0 or more, got {text:?}"),
    })
}

fn parse_tokenizer(name: &str) -> Result<TokenizerName, String> {
    TokenizerName::from_name(name).ok_or_else(|| {
        let valid: Vec<_> = TokenizerName::ALL.iter().map(|name| name.name()).collect();
        format!("must be one of {}, got {name:?}", valid.join(", "))
    })
}

/// The folders that Contexture uses, according to the XDG Base Directory Specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folders {
    /// Folder that holds the state, unless the user chooses another.
    pub state: PathBuf,
    /// Path of the configuration file, unless the user chooses another.
    pub config_file: PathBuf,
    /// Folder for sockets, which only the user may enter.
    pub runtime: PathBuf,
    /// Home folder of the user.
    pub home: PathBuf,
}

impl Folders {
    /// Returns the folders, as the environment (`HOME` and the XDG variables) determines them.
    ///
    /// # Errors
    /// Fails if the home folder cannot be found.
    pub(crate) fn of_user() -> anyhow::Result<Self> {
        let xdg = Xdg::new()?;
        let user = rustix::process::geteuid().as_raw();
        let runtime = xdg.runtime_dir().map_or_else(
            || std::env::temp_dir().join(format!("contexture-{user}")),
            |folder| folder.join("contexture"),
        );
        Ok(Self {
            state: xdg.state_dir().unwrap_or_else(|| xdg.data_dir()).join("contexture"),
            config_file: xdg.config_dir().join("contexture/config.toml"),
            runtime,
            home: xdg.home_dir().to_owned(),
        })
    }

    /// Returns folders that are all below one folder, whatever the environment says.
    pub(crate) fn below(folder: &Path) -> Self {
        Self {
            state: folder.join("state/contexture"),
            config_file: folder.join("config/contexture/config.toml"),
            runtime: folder.join("run/contexture"),
            home: folder.join("home"),
        }
    }
}
