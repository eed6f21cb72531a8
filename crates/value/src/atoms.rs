//! Atoms, which are data without parts: conversions from plain values, and methods for serde's
//! visitors.

use super::Value;

/// Implements the conversions of plain values to atoms.
macro_rules! from_atoms {
    ($($type:ty => $make:expr;)*) => {
        $(impl From<$type> for Value {
            fn from(atom: $type) -> Self {
                $make(atom)
            }
        })*
    };
}

from_atoms! {
    bool => Self::Bool;
    i64 => Self::Int;
    f64 => Self::Float;
    &str => |text: &str| Self::Str(text.to_owned());
    String => Self::Str;
}

impl From<u64> for Value {
    /// Converts the number to [`Value::Int`], or to [`Value::BigInt`] if it needs the 64th bit.
    fn from(number: u64) -> Self {
        i64::try_from(number)
            .map_or_else(|_| Self::BigInt(number.to_string().into_boxed_str()), Self::Int)
    }
}

/// Implements the methods of a visitor that returns atoms as data.
macro_rules! visit_atoms {
    () => { visit_atoms! {
        visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_f64(f64) visit_str(&str) visit_string(String)
    } };
    ($($method:ident($atom:ty))+) => {
        $(fn $method<E>(self, atom: $atom) -> Result<Value, E> {
            Ok(Value::from(atom))
        })+
    };
}
pub(super) use visit_atoms;
