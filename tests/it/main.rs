//! Tests against the outside: one binary, so that the crate is linked once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod sexp_oracle;
mod wire_fuzz;
