//! Enums whose values have names, which clients write as keywords. This module knows nothing of
//! data formats or of the client protocol.

/// Declares an enum whose variants have the names that clients use, with `ALL`, `name` and
/// `from_name`. A value is displayed and serialized as its name.
#[macro_export]
macro_rules! names {
    ($(#[$attribute:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $text:literal,)* }) => {
        $crate::names::with_schema! {
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[derive(serde::Serialize, serde::Deserialize)]
            $(#[$attribute])*
            #[serde(rename_all = "kebab-case")]
            #[allow(unreachable_pub, reason = "some names are only for the crate")]
            pub enum $name { $($(#[$vdoc])* $variant,)* }
        }

        #[allow(unreachable_pub, dead_code, reason = "some names are only for the crate")]
        impl $name {
            /// All values, in the order in which errors list them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name in kebab-case, as clients write it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns the value with this name in kebab-case, if there is one.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.name() == name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub use names;

/// Gives a type a schema, if this crate has the feature `schema`. The crate that calls it has
/// `schemars` then.
#[cfg(feature = "schema")]
#[doc(hidden)]
#[macro_export]
macro_rules! with_schema {
    ($($type:tt)*) => { #[derive(schemars::JsonSchema)] $($type)* };
}

/// Leaves a type as it is, without the feature `schema`.
#[cfg(not(feature = "schema"))]
#[doc(hidden)]
#[macro_export]
macro_rules! with_schema {
    ($($type:tt)*) => { $($type)* };
}
pub use with_schema;
