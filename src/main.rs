//! The `contexture` program, a thin shell around `contexture_program`.

use std::process::ExitCode;

/// Allocator of the whole program. It is faster than the allocator of the C library for the many
/// short-lived values of requests.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    contexture_program::internals::cli::main()
}
