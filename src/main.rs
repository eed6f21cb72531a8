//! The `contexture` program.

fn main() {}
