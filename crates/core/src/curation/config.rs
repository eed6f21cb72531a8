//! The settings for processing turns: defaults, ranges and effective values.

use serde::{Deserialize, Serialize};

/// Size of the history that a summary aims at, relative to the size that triggers the summary: with
/// the default trigger of 0.8 of the window, the aim is 0.5. Because of this gap, few turns need a
/// summary, and prompt caches stay valid between summaries.
const AIM_OF_TRIGGER: f64 = 0.5 / 0.8;
/// Maximum size of the history that a summary aims at, as a share of the window.
const AIM_AT_MOST: f64 = 0.5;
/// Maximum tokens of a conversation that no model answers, if none are set.
const ALONE_MAX_TOKENS: u64 = 8_192;
/// Default share of the maximum at which a conversation is summarized if no model answers in it.
const ALONE_RATIO: f64 = 0.8;

/// A setting with its effective value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Name in the client protocol.
    pub name: &'static str,
    /// Effective value; `None` if the setting is not set and has no default of its own.
    pub value: Option<SettingValue>,
    /// Default value; `None` for a setting that need not be set.
    pub default: Option<SettingValue>,
    /// Allowed values.
    pub range: Range,
}

/// The value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(untagged)]
pub enum SettingValue {
    /// A whole number.
    Count(u64),
    /// A number that may have a fraction.
    Ratio(f64),
    /// On or off.
    Switch(bool),
}

/// The allowed values of a setting. Each range includes both of its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// Whole numbers from the first to the second.
    Count(u64, u64),
    /// Numbers from the first to the second, which may have a fraction.
    Ratio(f64, f64),
    /// On or off.
    Switch,
}

/// The error for an unknown setting or a value that is not allowed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CurationConfigError {
    /// No setting has this name.
    #[error("there is no setting {name}; the settings are {}", names())]
    Unknown {
        /// Name that was given.
        name: String,
    },
    /// The value has the wrong type or is out of range.
    #[error("{name} must be {range}, got {value}")]
    OutOfRange {
        /// Name of the setting.
        name: &'static str,
        /// Value that was given.
        value: SettingValue,
        /// Allowed values.
        range: Range,
    },
}

/// Range of the size of a window, in tokens. Smaller windows are useless. The upper end is far
/// beyond any useful size, but far below the sizes at which calculations overflow.
const WINDOW: Range = Range::Count(256, 10_000_000);

/// Declares the settings: each row has the name, the type, the default and the range of one
/// setting. A setting with the default `None` need not be set.
macro_rules! settings {
    ($($(#[$doc:meta])* $field:ident $name:literal: $type:ty = $default:expr, $range:expr;)*) => {
        /// The settings for processing turns. The fields accept any value; [`Self::check`] finds
        /// invalid values.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
        pub struct TurnConfig { $($(#[$doc])* pub $field: $type,)* }

        /// Names and ranges of the settings, in the order in which errors list them. The upper ends
        /// of the counts are generous, like that of [`WINDOW`].
        const RANGES: &[(&str, Range)] = &[$(($name, $range),)*];

        impl Default for TurnConfig {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl TurnConfig {
            fn values(&self) -> Vec<Option<SettingValue>> {
                vec![$(self.$field.value(),)*]
            }

            fn put(&mut self, name: &str, value: Option<SettingValue>) -> bool {
                match name {
                    $($name => match SettingType::of(value) {
                        Some(value) => self.$field = value,
                        None => return false,
                    },)*
                    _ => return false,
                }
                true
            }
        }
    };
}

/// The type of a setting.
trait SettingType: Sized {
    /// Returns the value; `None` if it is not set.
    fn value(&self) -> Option<SettingValue>;
    /// Converts the value; `None` if it has the wrong type.
    fn of(value: Option<SettingValue>) -> Option<Self>;
}

/// Implements [`SettingType`] for a type that a variant of [`SettingValue`] holds, and for an optional one.
macro_rules! field {
    ($($type:ty: $kind:ident;)*) => {$(
        impl SettingType for $type {
            fn value(&self) -> Option<SettingValue> {
                Some(SettingValue::$kind(*self))
            }

            fn of(value: Option<SettingValue>) -> Option<Self> {
                match value {
                    Some(SettingValue::$kind(value)) => Some(value),
                    _ => None,
                }
            }
        }

        impl SettingType for Option<$type> {
            fn value(&self) -> Option<SettingValue> {
                self.map(SettingValue::$kind)
            }

            fn of(value: Option<SettingValue>) -> Option<Self> {
                match value {
                    Some(_) => <$type>::of(value).map(Some),
                    None => Some(None),
                }
            }
        }
    )*};
}

field! { u64: Count; f64: Ratio; bool: Switch; }

settings! {
    /// Maximum cost of a window, in tokens; `None` for what the model takes.
    max_tokens "max-tokens": Option<u64> = None, WINDOW;
    /// Share of the maximum at which older turns are summarized; `None` if they are summarized
    /// when the window does not hold them.
    summarize_at_ratio "summarize-at-ratio": Option<f64> = None, Range::Ratio(0.1, 1.0);
    /// Quality below which a session is rolled back, if `auto_rollback` is on.
    quality_threshold "quality-threshold": f64 = 0.6, Range::Ratio(0.0, 1.0);
    /// Number of turns between automatic checkpoints.
    checkpoint_interval "checkpoint-interval": u64 = 10, Range::Count(1, 10_000);
    /// Maximum number of memories that a turn is given.
    grounding_memories "grounding-memories": u64 = 5, Range::Count(0, 100);
    /// Minimum number of latest turns that an automatic summary leaves unchanged.
    recent_turns_to_keep "recent-turns-to-keep": u64 = 3, Range::Count(0, 10_000);
    /// True to summarize older turns automatically.
    auto_summarize "auto-summarize": bool = true, Range::Switch;
    /// True to take checkpoints automatically.
    auto_checkpoint "auto-checkpoint": bool = true, Range::Switch;
    /// True to roll back a session of low quality automatically.
    auto_rollback "auto-rollback": bool = false, Range::Switch;
}

impl TurnConfig {
    /// Returns all settings with their effective values.
    pub fn settings(&self) -> Vec<Setting> {
        let values = self.values().into_iter().zip(Self::default().values());
        let named = RANGES.iter().copied().zip(values);
        let setting = |((name, range), (value, default))| Setting { name, value, default, range };
        named.map(setting).collect()
    }

    /// Checks that every setting is within its range.
    ///
    /// # Errors
    ///
    /// [`CurationConfigError::OutOfRange`] for the first setting that is not.
    pub fn check(&self) -> Result<(), CurationConfigError> {
        self.settings().into_iter().try_for_each(|Setting { name, value, range, .. }| match value {
            Some(value) if !range.has(value) => {
                Err(CurationConfigError::OutOfRange { name, value, range })
            }
            _ => Ok(()),
        })
    }

    /// Returns the settings with one value changed. 0 unsets a setting that need not be set.
    ///
    /// # Errors
    ///
    /// [`CurationConfigError`] for an unknown setting or a value that is not allowed.
    pub fn with(mut self, name: &str, value: SettingValue) -> Result<Self, CurationConfigError> {
        let unknown = || CurationConfigError::Unknown { name: name.to_owned() };
        let (name, range) = *RANGES.iter().find(|row| row.0 == name).ok_or_else(unknown)?;
        let value = match (value, range) {
            (SettingValue::Count(count), Range::Ratio(..)) => SettingValue::Ratio(count as f64),
            _ => value,
        };
        let unset = is_zero(value) && need_not_be_set(name);
        if !(unset || range.has(value)) || !self.put(name, Some(value).filter(|_| !unset)) {
            return Err(CurationConfigError::OutOfRange { name, value, range });
        }
        Ok(self)
    }

    /// Returns the settings for a conversation that no model answers: what is not set gets a value,
    /// since no model says what it takes.
    #[must_use]
    pub fn alone(self) -> Self {
        Self {
            max_tokens: self.max_tokens.or(Some(ALONE_MAX_TOKENS)),
            summarize_at_ratio: self.summarize_at_ratio.or(Some(ALONE_RATIO)),
            ..self
        }
    }

    /// Returns the size of the history that a summary aims at, in tokens, if a window may have
    /// `max_tokens`.
    pub fn summarize_to(&self, max_tokens: u64) -> u64 {
        let ratio = self.summarize_at_ratio.unwrap_or(ALONE_RATIO);
        (max_tokens as f64 * (ratio * AIM_OF_TRIGGER).min(AIM_AT_MOST)) as u64
    }
}

/// Returns whether the setting with this name has no default of its own, so that 0 unsets it.
pub fn need_not_be_set(name: &str) -> bool {
    let named = |setting: &Setting| setting.name == name && setting.default.is_none();
    TurnConfig::default().settings().iter().any(named)
}

fn is_zero(value: SettingValue) -> bool {
    matches!(value, SettingValue::Count(0)) || value == SettingValue::Ratio(0.0)
}

impl Range {
    /// Returns whether the value is in the range.
    pub fn has(self, value: SettingValue) -> bool {
        match (self, value) {
            (Self::Count(least, most), SettingValue::Count(count)) => {
                (least..=most).contains(&count)
            }
            (Self::Ratio(least, most), SettingValue::Ratio(ratio)) => {
                (least..=most).contains(&ratio)
            }
            (Self::Switch, SettingValue::Switch(_)) => true,
            _ => false,
        }
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Ratio(least, most) => write!(f, "a number from {least} to {most}"),
            Self::Switch => f.write_str("t or nil"),
        }
    }
}

impl std::fmt::Display for SettingValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Ratio(ratio) => ratio.fmt(f),
            Self::Switch(on) => on.fmt(f),
        }
    }
}

fn names() -> String {
    RANGES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_within_their_ranges() {
        let config = TurnConfig::default();
        let listed = config.settings().into_iter().map(|setting| {
            assert_eq!(setting.value, setting.default);
            let value = setting.value.map_or("nil".to_owned(), |value| value.to_string());
            format!("{} {value}", setting.name)
        });
        let expected = "max-tokens nil, summarize-at-ratio nil, quality-threshold 0.6, \
                        checkpoint-interval 10, grounding-memories 5, recent-turns-to-keep 3, \
                        auto-summarize true, auto-checkpoint true, auto-rollback false";
        assert_eq!(listed.collect::<Vec<_>>().join(", "), expected);
        assert_eq!(config.check(), Ok(()));
        let alone = config.alone();
        assert_eq!((alone.max_tokens, alone.summarize_at_ratio), (Some(8_192), Some(0.8)));
        assert_eq!(alone.summarize_to(8_192), 4_096);
    }

    #[track_caller]
    fn check(name: &str, value: SettingValue, expected: Result<Option<SettingValue>, &str>) {
        let set = TurnConfig::default().with(name, value).map_err(|error| error.to_string());
        let now = |config: TurnConfig| {
            assert_eq!(config.check(), Ok(()));
            config.settings().iter().find(|setting| setting.name == name).map(|now| now.value)
        };
        assert_eq!(set.map(now), expected.map(Some).map_err(Into::into), "{name}");
    }

    #[test]
    fn settings_are_set_within_their_ranges() {
        check("max-tokens", SettingValue::Count(4_096), Ok(Some(SettingValue::Count(4_096))));
        check("max-tokens", SettingValue::Count(0), Ok(None));
        check("summarize-at-ratio", SettingValue::Ratio(0.0), Ok(None));
        check("quality-threshold", SettingValue::Count(1), Ok(Some(SettingValue::Ratio(1.0))));
        check("auto-rollback", SettingValue::Switch(true), Ok(Some(SettingValue::Switch(true))));
        for setting in TurnConfig::default().alone().settings() {
            let value = setting.value.unwrap();
            check(setting.name, value, Ok(Some(value)));
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_the_range() {
        let error = "max-tokens must be a whole number from 256 to 10000000, got 1";
        check("max-tokens", SettingValue::Count(1), Err(error));
        let error = "checkpoint-interval must be a whole number from 1 to 10000, got 0";
        check("checkpoint-interval", SettingValue::Count(0), Err(error));
        let error = "summarize-at-ratio must be a number from 0.1 to 1, got 1.5";
        check("summarize-at-ratio", SettingValue::Ratio(1.5), Err(error));
        let error = "quality-threshold must be a number from 0 to 1, got NaN";
        check("quality-threshold", SettingValue::Ratio(f64::NAN), Err(error));
        let error = "auto-summarize must be t or nil, got 3";
        check("auto-summarize", SettingValue::Count(3), Err(error));
        let error =
            TurnConfig::default().with("speed", SettingValue::Count(1)).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no setting speed; the settings are max-tokens, "),
            "{error}"
        );
    }

    #[test]
    fn values_of_fields_are_checked() {
        let config = TurnConfig { checkpoint_interval: 0, ..TurnConfig::default() };
        let error = config.check().unwrap_err().to_string();
        assert_eq!(error, "checkpoint-interval must be a whole number from 1 to 10000, got 0");
    }

    #[test]
    fn missing_settings_are_read_as_defaults() {
        let config: TurnConfig = serde_json::from_str(r#"{"max-tokens": 4096}"#).unwrap();
        assert_eq!(config, TurnConfig { max_tokens: Some(4_096), ..TurnConfig::default() });
        assert!(serde_json::from_str::<TurnConfig>(r#"{"max-token": 1}"#).is_err());
    }

    #[test]
    fn a_summary_always_aims_below_its_trigger() {
        for ratio in [0.1, 0.3, 0.5, 0.8, 1.0] {
            let config = TurnConfig { summarize_at_ratio: Some(ratio), ..TurnConfig::default() };
            assert!(config.summarize_to(1_000) < (1_000.0 * ratio) as u64, "{ratio}");
        }
    }
}
