//! Builds a server from its parts: configuration, store, engine, tools.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use tokio::runtime::Runtime;

use super::Common;
use super::clock::{FixedTime, clock};
use crate::agent::maps::Maps;
use crate::agent::{AvailableModel, Embedding, Providers, Services};
use crate::config::{Config, Embeddings, Folders};
use crate::context::change::ContextSettings;
use crate::engine::{Engine, Models};
use crate::files::Trust;
use crate::hub::Hub;
use crate::provider::embed::HttpEmbedder;
use crate::provider::settings;
use crate::rpc::{ModelAnswerer, ReplSettings, Tools};
use crate::server::Server;
use crate::store::ownership::Owned;
use crate::store::recovery;
use crate::store::recovery::TRUST_FILE;
use crate::store::sqlite::SqliteStore;

/// Folders and settings in effect.
pub(super) struct Setup {
    pub(super) folders: Folders,
    pub(super) config: Config,
    /// State folder; `None` if the server is ephemeral.
    pub(super) state: Option<PathBuf>,
    /// Settings of the REPLs for SLY and SLIME.
    pub(super) repl: ReplSettings,
    pub(super) fixed_time: Option<FixedTime>,
}

impl Common {
    pub(super) fn setup(&self) -> anyhow::Result<Setup> {
        let folders = Folders::of_user().context("cannot find your home folder; set HOME")?;
        let file = self.config.clone().unwrap_or_else(|| folders.config_file.clone());
        let config = Config::load(&file, |name| std::env::var(name).ok(), self.settings.clone())?;
        let state = match (self.ephemeral, &self.state) {
            (true, Some(_)) => anyhow::bail!("--ephemeral keeps no state; omit --state"),
            (true, None) => None,
            (false, state) => Some(state.clone().unwrap_or_else(|| folders.state.clone())),
        };
        let repl = ReplSettings::default();
        Ok(Setup { folders, config, state, repl, fixed_time: self.fixed_time.clone() })
    }

    /// Returns options with which other processes of this program use the same state and
    /// configuration file. Fails if no state is kept.
    pub(super) fn shared(&self) -> anyhow::Result<Vec<PathBuf>> {
        anyhow::ensure!(
            !self.ephemeral,
            "--ephemeral keeps no state that an agent could share; omit the option"
        );
        self.places()
    }

    /// Returns the options that name the state and the configuration file.
    pub(super) fn places(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut options = Vec::new();
        for (name, path) in [("--state", &self.state), ("--config", &self.config)] {
            if let Some(path) = path {
                options.extend([PathBuf::from(name), std::path::absolute(path)?]);
            }
        }
        Ok(options)
    }
}

impl Setup {
    /// Starts a server with the state in the folder `owned`, or with a new state in memory if that
    /// is `None`.
    pub(super) fn start(&self, owned: Option<&Owned>) -> anyhow::Result<Server> {
        let (store, findings) = match owned {
            None => (SqliteStore::in_memory()?, Vec::new()),
            Some(owned) => {
                let opened = recovery::open(owned.folder(), owned.relock())?;
                (opened.store, opened.findings)
            }
        };
        let mut notices: Vec<String> = findings.into_iter().map(|finding| finding.text).collect();
        let limits = self.config.limits;
        let defaults = ContextSettings { max_items: limits.max_items };
        let counter = self.config.tokenizer.counter();
        let (said, default) = (self.config.models.clone(), self.config.model.clone());
        let models = Models::new(Arc::clone(&counter), said, default);
        let clock = clock(self.fixed_time.as_ref())?;
        let engine = Engine::new(Box::new(store), clock, defaults)?.with_models(models);
        let state_folder = self.state.clone();
        let maps = state_folder.as_ref().map(|folder| folder.join("maps"));
        let template_folder = Some(self.folders.config_file.with_file_name("templates"));
        let trust = Arc::new(trust(owned, &mut notices));
        let embedding = self.embedding();
        let hub = self.config.hub.clone().zip(self.state.clone());
        let hub = hub.map(|(address, folder)| Arc::new(Hub::new(address, folder)));
        let providers = self.providers()?;
        let mut repl = self.repl.clone();
        repl.answerer = Arc::new(ModelAnswerer::new(providers.clone()));
        Ok(Server::start(engine, |engine| Tools {
            state_folder,
            notices,
            backups_kept: self.config.backups_kept,
            repl,
            hub,
            ..Tools::with(Services {
                maps: Arc::new(Maps::new(maps)),
                template_folder,
                trust,
                embedding,
                providers,
                summarizer: self.config.summarizer.clone(),
                ..Services::new(engine, counter, limits)
            })
        }))
    }

    fn embedding(&self) -> Option<Embedding> {
        self.config.embeddings.as_ref().map(|settings| {
            let Embeddings { url, model, key, timeout } = settings;
            let embedder = HttpEmbedder::new(url, model, key.clone());
            Embedding::new(Arc::new(embedder), *timeout)
        })
    }

    fn providers(&self) -> anyhow::Result<Providers> {
        let open = |said: &settings::CheckedProvider| {
            let wrong = |why| anyhow::anyhow!("provider {:?}: {why}", said.name);
            AvailableModel::open(said).map_err(wrong)
        };
        let opened: anyhow::Result<Vec<_>> = self.config.providers.iter().map(open).collect();
        opened.map(Providers::new)
    }
}

/// Opens the list of trusted projects in the folder `owned`, or an empty list if that is `None`. If
/// the list cannot be read, adds the reason to `notices`, renames the file of the list, and begins
/// an empty list.
fn trust(owned: Option<&Owned>, notices: &mut Vec<String>) -> Trust {
    let Some(owned) = owned else { return Trust::default() };
    Trust::open(owned.file(TRUST_FILE)).unwrap_or_else(|error| {
        tracing::warn!("{error}");
        notices.push(error.to_string());
        Trust::anew(owned.file(TRUST_FILE))
    })
}

/// Builds a runtime with one thread. Only blocking work runs on other threads.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
