//! How long a test runs in the tiers of `scripts/test`. For tests of all crates only.

/// Returns `all` in `make test-all`, else `few`: the number of rounds of a long test.
pub fn rounds<N>(few: N, all: N) -> N {
    if std::env::var("CONTEXTURE_TESTS").as_deref() == Ok("all") { all } else { few }
}
