//! Models and their token costs: the built-in table, the user's overrides, and calibration with the
//! counts that providers report.

use std::collections::HashMap;
use std::sync::Arc;

use crate::tokens::calibration::Calibration;
use crate::tokens::model::{Model, Override};
use crate::tokens::{Counter, Measure, TokenizerName};

/// Maximum number of models whose calibrations are kept in memory. Beyond it, all are read again.
const MOST_CALIBRATIONS: usize = 1_000;

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

    /// Keeps the calibration of a model in memory. Any name may be asked for.
    pub(super) fn keep(&mut self, model: &str, calibration: Calibration) {
        if self.calibrations.len() >= MOST_CALIBRATIONS && !self.calibrations.contains_key(model) {
            self.calibrations.clear();
        }
        self.calibrations.insert(model.to_owned(), calibration);
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

#[cfg(test)]
mod tests {
    use crate::context::change::ContextSettings;
    use crate::engine::Engine;
    use crate::store::sqlite::SqliteStore;

    #[test]
    fn models_that_were_asked_for_once_are_not_kept_for_ever() {
        let store = Box::new(SqliteStore::in_memory().unwrap());
        let settings = ContextSettings { max_items: 3 };
        let mut engine = Engine::new(store, Box::new(|| 7_000), settings).unwrap();
        engine.report_usage("kept", 100, 200).unwrap();
        let ratio = engine.report_usage("kept", 100, 200).unwrap().ratio();
        for number in 0..2 * super::MOST_CALIBRATIONS {
            engine.costs(Some(&format!("model-{number}"))).unwrap();
            assert!(engine.models.calibrations.len() <= super::MOST_CALIBRATIONS);
        }
        assert_eq!(engine.calibration("kept").unwrap().ratio(), ratio);
    }
}
