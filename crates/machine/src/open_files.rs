//! How many files this process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files to what the system allows this process: many systems set 1,024, for programs that call
/// select(2), and allow more (systemd.exec(5), LimitNOFILE=). A node needs some 20.
pub fn allow_all() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Who has no file left is told so by the call that needs it.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_system_allows() {
        allow_all();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
