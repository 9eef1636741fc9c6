//! The program: see the library crate.

use std::panic::resume_unwind;
use std::process::ExitCode;

use machine::threads;

fn main() -> ExitCode {
    // On a thread, whose stack does not depend on `ulimit -s`.
    let ended = match threads::spawn("rocebench", rocebench::cli::main) {
        Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
        Err(_) => rocebench::cli::main(),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}
