//! The `contexture` program, a thin shell around the library.

use std::process::ExitCode;

/// Allocator of the whole program. Requests make many short-lived values, which it allocates faster
/// than the C library does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    contexture::internals::cli::main()
}
