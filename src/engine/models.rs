//! Which models there are, and what things cost for each: the table, what the user says of it,
//! and what providers have reported.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Engine, EngineError};
use crate::store::StoreError;
use crate::tokens::calibration::Calibration;
use crate::tokens::model::{Model, Override};
use crate::tokens::{Counter, Measure, TokenizerName};

/// What the engine knows of models.
pub struct Models {
    counter: Arc<dyn Counter>,
    overrides: Vec<Override>,
    default: Option<String>,
    calibrations: HashMap<String, Calibration>,
}

/// What things cost for a model.
#[derive(Clone)]
pub struct Costs {
    /// The model. Its `known` says whether it is one that was asked for and is known.
    pub model: Model,
    /// What texts and messages cost.
    pub measure: Measure,
}

impl Models {
    /// `counter` counts; `overrides` is what the user says otherwise than the table; `default` is
    /// the model of sessions that name none.
    pub fn new(
        counter: Arc<dyn Counter>,
        overrides: Vec<Override>,
        default: Option<String>,
    ) -> Self {
        Self { counter, overrides, default, calibrations: HashMap::new() }
    }

    /// After something was not kept: what was learned is read anew.
    pub(super) fn forget(&mut self) {
        self.calibrations.clear();
    }
}

impl Default for Models {
    fn default() -> Self {
        Self::new(TokenizerName::default().counter(), Vec::new(), None)
    }
}

impl Engine {
    /// Uses these models from now on.
    #[must_use]
    pub fn with_models(mut self, models: Models) -> Self {
        self.models = models;
        self
    }

    /// What counts the tokens of what comes in.
    pub fn counter(&self) -> Arc<dyn Counter> {
        Arc::clone(&self.models.counter)
    }

    /// What things cost for the model of this name, or for the default one.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn costs(&mut self, model: Option<&str>) -> Result<Costs, EngineError> {
        let named = model.map(str::to_owned).or_else(|| self.models.default.clone());
        let Some(name) = named else {
            // Without a model there is no factor: counts are those of the counter.
            let measure = Measure::plain(Arc::clone(&self.models.counter));
            return Ok(Costs { model: Model::named("default", &self.models.overrides), measure });
        };
        let calibration = self.calibration(&name)?;
        let model = Model::named(&name, &self.models.overrides).calibrated(&calibration);
        let measure = model.measure(&self.models.counter);
        Ok(Costs { model, measure })
    }

    /// Learns from what a provider reported: a request that was counted as `counted` tokens had
    /// `reported` tokens of input. Gives the ratio that is used from now on.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn report_usage(
        &mut self,
        model: &str,
        counted: u64,
        reported: u64,
    ) -> Result<Calibration, EngineError> {
        let mut calibration = self.calibration(model)?;
        // What was counted had the ratio of then in it already.
        let plain = (counted as f64 / calibration.ratio()).round() as u64;
        calibration.observe(plain, reported);
        let text = serde_json::to_string(&calibration)
            .map_err(|error| StoreError::Damaged(error.to_string()))?;
        self.store.set_calibration(model, &text)?;
        self.models.calibrations.insert(model.to_owned(), calibration);
        Ok(calibration)
    }

    fn calibration(&mut self, model: &str) -> Result<Calibration, EngineError> {
        if let Some(known) = self.models.calibrations.get(model) {
            return Ok(*known);
        }
        let stored = self.store.calibration(model)?;
        let calibration =
            stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        self.models.calibrations.insert(model.to_owned(), calibration);
        Ok(calibration)
    }
}
