//! Tests that need clients that others wrote, and the tiers of `scripts/test` that run them.

use crate::skips::skipped;
pub(crate) use contexture_core::testing::rounds;

/// Says which tier of the tests runs (`scripts/test`): `check`, `most` or `all`. Without it, a test that
/// needs a client that others wrote runs if the client is installed.
const TIER: &str = "CONTEXTURE_TESTS";

/// Reports whether the calling test, which needs a client that others wrote, is to run. `make test-all`
/// installs all of them, so there the test fails if its client is missing. The quicker tiers leave such
/// tests to it.
#[track_caller]
pub(crate) fn may_use(client: &str, installed: bool) -> bool {
    match std::env::var(TIER).as_deref() {
        Ok("all") => assert!(installed, "there is no {client}, which `make setup-all` installs"),
        Ok(_) => {
            skipped(&format!("`make test-all` runs it, with {client}"));
            return false;
        }
        Err(_) if !installed => skipped(&format!("there is no {client}")),
        Err(_) => {}
    }
    installed
}
