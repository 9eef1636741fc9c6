//! Programs in perftest's place: shell scripts in a folder of the test's, found before the real ones.

use testing::process::{STEP, script};
use testing::wait::{wait_for, wait_until};

/// A folder with one fake program.
pub struct Fake {
    folder: tempfile::TempDir,
}

impl Fake {
    /// `name` runs `client` as the client and `server` as the server. In both `real` is the real program's
    /// path, and `here` the folder.
    pub fn new(name: &str, client: &str, server: &str) -> Fake {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display();
        let text = format!(
            "here={here}\n\
             real=/usr/bin/{name}\n\
             [ \"$1\" = --version ] && echo 'Version: 9.99' && exit 1\n\
             for last; do :; done\n\
             if [ \"$last\" = 127.0.0.1 ]; then\n echo $$ >$here/client\n {client}\n\
             else\n echo $$ >$here/server\n {server}\nfi\n"
        );
        script(&folder.path().join(name), &text);
        Fake { folder }
    }

    /// `PATH` with it.
    pub fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.folder.path().display())
    }

    /// Process id of the end that ran last, once there is one.
    pub fn id(&self, end: &str) -> u32 {
        let file = self.folder.path().join(end);
        wait_for(&format!("a {end}"), STEP, || {
            std::fs::read_to_string(&file).ok()?.trim().parse().ok()
        })
    }

    /// Neither end is left, in a moment.
    pub fn is_gone(&self) {
        for end in ["client", "server"] {
            self.end_is_gone(end);
        }
    }

    /// This end is not left, in a moment.
    pub fn end_is_gone(&self, end: &str) {
        let stat = format!("/proc/{}/stat", self.id(end));
        // One whose parent died may wait to be reaped.
        wait_until(&format!("the end of {end}"), STEP, || {
            !std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "))
        });
    }
}
