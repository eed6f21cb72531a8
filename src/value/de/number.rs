//! Converts data to numbers: exactly or with an error that gives the range.

use std::fmt::Display;
use std::str::FromStr;

use crate::value::{Error, Value};

/// An integer type, and the range that error messages name.
pub(super) trait Integer: FromStr + TryFrom<i64> + Display {
    const LEAST: Self;
    const MOST: Self;
    const SIGNED: bool;
}

macro_rules! integer_types {
    ($($type:ty)*) => {
        $(impl Integer for $type {
            const LEAST: Self = <$type>::MIN;
            const MOST: Self = <$type>::MAX;
            const SIGNED: bool = <$type>::MIN != 0;
        })*
    };
}

integer_types! { i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 }

/// Returns the datum as an integer of type `T`.
pub(super) fn integer<T: Integer>(value: &Value) -> Result<T, Error> {
    let (fitting, negative) = match value {
        Value::Int(number) => (T::try_from(*number).ok(), *number < 0),
        Value::BigInt(digits) => (digits.parse().ok(), digits.starts_with('-')),
        _ => return Err(misfit::<T>(value)),
    };
    match fitting {
        Some(number) => Ok(number),
        None if !negative => Err(bounded("at most", T::MOST, value)),
        None if T::SIGNED => Err(bounded("at least", T::LEAST, value)),
        None => Err(misfit::<T>(value)),
    }
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

fn misfit<T: Integer>(value: &Value) -> Error {
    let expected = if T::SIGNED { "an integer" } else { "an integer of 0 or more" };
    Error::misfit(expected, value.describe())
}

fn bounded(relation: &str, bound: impl Display, value: &Value) -> Error {
    Error::misfit(format_args!("an integer of {relation} {bound}"), value.describe())
}
