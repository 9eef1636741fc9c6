//! Threads that are started, and the one error where the system has no room for another.

use std::error::Error;
use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// What helps where a thread cannot be started.
pub const REMEDY: &str = "raise the limit of threads (`ulimit -u`; of a container pids.max or --pids-limit) or of memory \
                          (`ulimit -v`), or lower --workers";

/// A thread could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the thread {name}: {source}")]
pub struct ThreadError {
    name: String,
    source: io::Error,
}

impl From<ThreadError> for io::Error {
    fn from(error: ThreadError) -> io::Error {
        io::Error::other(error)
    }
}

pub fn spawn<T: Send + 'static>(
    thread_name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ThreadError> {
    let name = thread_name.into();
    let spawned = Builder::new().name(name.clone()).spawn(body);
    spawned.map_err(|source| ThreadError { name, source })
}

/// As [`spawn`], of a scope.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    thread_name: impl Into<String>,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, ThreadError> {
    let name = thread_name.into();
    let spawned = Builder::new().name(name.clone()).spawn_scoped(scope, body);
    spawned.map_err(|source| ThreadError { name, source })
}

/// [`REMEDY`], if the error is that of a thread or came of one.
pub fn remedy(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<ThreadError>() {
            return Some(REMEDY);
        }
        // An I/O error passes over the error that it is made of.
        let within = error.downcast_ref().and_then(io::Error::get_ref);
        next = match within {
            Some(within) => Some(within),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_is_found_through_other_errors() {
        let thread = || ThreadError {
            name: "worker-0".to_owned(),
            source: io::Error::from_raw_os_error(11),
        };
        let told =
            "cannot start the thread worker-0: Resource temporarily unavailable (os error 11)";
        let error: io::Error = thread().into();
        assert_eq!(error.to_string(), told);
        for error in [error, io::Error::other(io::Error::from(thread()))] {
            assert_eq!(remedy(&error), Some(REMEDY));
        }
        assert_eq!(remedy(&io::Error::from_raw_os_error(11)), None);
    }
}
