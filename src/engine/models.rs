//! Models and their token costs: the built-in table, the user's overrides, and calibration from
//! what providers report.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Engine, EngineError};
use crate::store::StoreError;
use crate::tokens::calibration::Calibration;
use crate::tokens::model::{Model, Override};
use crate::tokens::{Counter, Measure, TokenizerName};

/// Everything the engine knows about models.
pub struct Models {
    counter: Arc<dyn Counter>,
    overrides: Vec<Override>,
    default: Option<String>,
    calibrations: HashMap<String, Calibration>,
}

/// Token costs for a model.
#[derive(Clone)]
pub struct Costs {
    /// The model. `known` tells whether a model was named and is known.
    pub model: Model,
    /// Token measure for texts and messages.
    pub measure: Measure,
}

impl Models {
    /// Creates the registry. `overrides` take precedence over the table; `default` is the model of
    /// sessions that name none.
    pub fn new(
        counter: Arc<dyn Counter>,
        overrides: Vec<Override>,
        default: Option<String>,
    ) -> Self {
        Self { counter, overrides, default, calibrations: HashMap::new() }
    }

    /// Drops calibrations after a failed commit, so that they are read again.
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
    /// Sets the models.
    #[must_use]
    pub fn with_models(mut self, models: Models) -> Self {
        self.models = models;
        self
    }

    /// Returns the token counter for new content.
    pub fn counter(&self) -> Arc<dyn Counter> {
        Arc::clone(&self.models.counter)
    }

    /// Returns the costs for the named model, or for the default one.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn costs(&mut self, model: Option<&str>) -> Result<Costs, EngineError> {
        let named = model.map(str::to_owned).or_else(|| self.models.default.clone());
        let Some(name) = named else {
            // Without a model there is no factor: the counter's counts apply as they are.
            let measure = Measure::plain(Arc::clone(&self.models.counter));
            return Ok(Costs { model: Model::named("default", &self.models.overrides), measure });
        };
        let calibration = self.calibration(&name)?;
        let model = Model::named(&name, &self.models.overrides).calibrated(&calibration);
        let measure = model.measure(&self.models.counter);
        Ok(Costs { model, measure })
    }

    /// Calibrates a model with a report: a request counted as `counted` tokens had `reported` input
    /// tokens. Returns the updated calibration.
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
        // The count already includes the previous ratio.
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
