//! Token costs for a model, and their calibration with the counts that providers report.

use std::sync::Arc;

use super::{Costs, Engine, EngineError, Models};
use crate::store::StoreError;
use crate::tokens::Counter;
use crate::tokens::calibration::Calibration;
use crate::tokens::model::Model;

impl Engine {
    /// Replaces the token counter, the overrides and the default model with those in `models`.
    #[must_use]
    pub fn with_models(mut self, models: Models) -> Self {
        self.models = models;
        self
    }

    /// Returns the token counter for new content.
    pub fn counter(&self) -> Arc<dyn Counter> {
        Arc::clone(&self.models.counter)
    }

    /// Returns the calibrated costs for the named model, or for the default one. If there is no
    /// default either, the counter's counts are taken as they are.
    ///
    /// # Errors
    /// [`EngineError::Store`].
    pub fn costs(&mut self, model: Option<&str>) -> Result<Costs, EngineError> {
        let named = model.map(str::to_owned).or_else(|| self.models.default.clone());
        let Some(name) = named else { return Ok(self.models.costs(None)) };
        let model = self.models.costs(Some(&name)).model.calibrated(&self.calibration(&name)?);
        let measure = model.measure(&self.models.counter);
        Ok(Costs { model, measure })
    }

    /// Returns what is known of a model, without calibration.
    pub fn model(&self, name: &str) -> Model {
        Model::named(name, &self.models.overrides)
    }

    /// Calibrates a model with a provider's report: the provider counted `reported` input tokens
    /// for a request for which Contexture counted `counted`. Returns the updated calibration.
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
        let text = serde_json::to_string(&calibration).map_err(StoreError::from)?;
        if let Some(store) = self.store.note()? {
            store.set_calibration(model, &text)?;
        }
        self.moments.models = self.counters.give_version();
        self.models.keep(model, calibration);
        Ok(calibration)
    }

    pub(super) fn calibration(&mut self, model: &str) -> Result<Calibration, EngineError> {
        if let Some(known) = self.models.calibrations.get(model) {
            return Ok(*known);
        }
        let stored = self.store.read().calibration(model)?;
        let calibration =
            stored.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        self.models.keep(model, calibration);
        Ok(calibration)
    }
}
