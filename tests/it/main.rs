//! Tests against the outside: one binary, so that the crate is linked once.

mod sexp_oracle;
mod wire_fuzz;
