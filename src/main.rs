//! The `contexture` program, a thin shell around the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    contexture::internals::cli::main()
}
