//! The `contexture` program; see the library for what it does.

use std::process::ExitCode;

fn main() -> ExitCode {
    contexture::cli::main()
}
