//! A program on the preloaded library.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use testing::embedded_device::library;
use testing::process::{Call, Ended, Program, without_variables, words};

/// More than any of these programs takes on an idle machine.
pub const SOON: Duration = Duration::from_secs(12);

/// Held while programs run, so that only one test at a time uses the machine's cores.
pub fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a program; variables of its environment (`NAME=VALUE`) may precede its name, as in a shell.
pub fn start(program: &str, arguments: &str) -> Program {
    let words = words(program);
    let (executable, variables) = words.split_last().unwrap();
    let command = without_variables(executable, &["SOFTROCE_"]);
    let call = Call::new(command, arguments).env("LD_PRELOAD", library().to_str().unwrap());
    let variables = variables.iter().filter_map(|variable| variable.split_once('='));
    variables.fold(call, |call, (name, value)| call.env(name, value)).start()
}

pub fn run_alone(program: &str, arguments: &str) -> Ended {
    let _machine = machine();
    start(program, arguments).wait()
}
