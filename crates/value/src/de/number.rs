//! Converts data to numbers: exactly or with an error that gives the range.

use std::fmt::Display;
use std::str::FromStr;

use crate::{Error, Value};

/// Returns the datum as an integer of type `T`, whose values are those from `least` to `most`.
pub(super) fn integer<T>(value: &Value, least: T, most: T) -> Result<T, Error>
where
    T: FromStr + TryFrom<i64> + Display + Default + PartialEq,
{
    let is_signed = least != T::default();
    let (fitting, negative) = match value {
        Value::Int(number) => (T::try_from(*number).ok(), Some(*number < 0)),
        Value::BigInt(digits) => (digits.parse().ok(), Some(digits.starts_with('-'))),
        _ => (None, None),
    };
    let expected = match (fitting, negative) {
        (Some(number), _) => return Ok(number),
        (None, Some(false)) => format!("an integer of at most {most}"),
        (None, Some(true)) if is_signed => format!("an integer of at least {least}"),
        _ if is_signed => "an integer".to_owned(),
        _ => "an integer of 0 or more".to_owned(),
    };
    Err(Error::misfit(expected, value.describe()))
}

/// Returns the datum as a float. Integers are rounded to the nearest float.
pub(super) fn float(value: &Value) -> Result<f64, Error> {
    match value {
        Value::Float(number) | Value::FloatText(number, _) => Ok(*number),
        #[allow(clippy::cast_precision_loss, reason = "the caller asked for rounding")]
        Value::Int(number) => Ok(*number as f64),
        Value::BigInt(digits) => {
            digits.parse().map_err(|_| Error::misfit("a number", value.describe()))
        }
        _ => Err(Error::misfit("a number", value.describe())),
    }
}
