//! Models and their token costs: the built-in table, the user's overrides, and calibration with the
//! counts that providers report.

use std::collections::HashMap;
use std::sync::Arc;

use crate::tokens::calibration::Calibration;
use crate::tokens::model::{Model, Override};
use crate::tokens::{Counter, Measure, TokenizerName};

/// Everything the engine knows about models.
pub struct Models {
    pub(super) counter: Arc<dyn Counter>,
    pub(super) overrides: Vec<Override>,
    pub(super) default: Option<String>,
    /// Calibrations by model; cleared after a failed request or commit, so that they are read again.
    pub(super) calibrations: HashMap<String, Calibration>,
}

/// Token costs for a model.
#[derive(Clone)]
pub struct Costs {
    /// The model. Its field `known` tells whether a model was named and is known.
    pub model: Model,
    /// Token measure for texts and messages.
    pub measure: Measure,
}

impl Models {
    /// Creates the models' data without calibrations. `overrides` take precedence over the built-in
    /// table; `default` is the model of sessions that name none.
    pub fn new(
        counter: Arc<dyn Counter>,
        overrides: Vec<Override>,
        default: Option<String>,
    ) -> Self {
        Self { counter, overrides, default, calibrations: HashMap::new() }
    }

    /// Returns the costs for the named model, or for the default one, without calibration.
    pub fn costs(&self, model: Option<&str>) -> Costs {
        let Some(name) = model.or(self.default.as_deref()) else {
            // Without a model there is no factor: the counter's counts apply as they are.
            let measure = Measure::plain(Arc::clone(&self.counter));
            return Costs { model: Model::named("default", &self.overrides), measure };
        };
        let model = Model::named(name, &self.overrides);
        let measure = model.measure(&self.counter);
        Costs { model, measure }
    }
}

impl Default for Models {
    fn default() -> Self {
        Self::new(TokenizerName::default().counter(), Vec::new(), None)
    }
}
