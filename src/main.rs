//! The program: see the library crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    match rocebench::cli::main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}
