//! The `contexture` program, a thin shell around the library.

use std::process::ExitCode;

/// Allocator of the whole program: requests make many short-lived values, for which it is quicker
/// than that of the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    contexture::internals::cli::main()
}
