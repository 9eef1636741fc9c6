//! Writing to what is no file, such as `/dev/stdout` or a named pipe: it waits for a reader, but not after a wish to stop.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Timespec;
use rustix::io::Errno;

/// How often a waiting writer looks around.
const TICK: Duration = Duration::from_millis(50);

/// How long a reader that takes nothing is waited for after the wish to stop.
const STOPPED_PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct SpecialFile<'a> {
    file: File,
    stop: &'a AtomicBool,
}

impl SpecialFile<'_> {
    /// Opens it. A pipe that nobody reads is waited for, once `waits` has been called, until `stop` is set.
    ///
    /// # Errors
    /// The operating system's, or that no program reads it.
    pub(super) fn open<'a>(
        path: &Path,
        stop: &'a AtomicBool,
        waits: impl FnOnce(),
    ) -> io::Result<SpecialFile<'a>> {
        let is_pipe = fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo());
        let mut waits = Some(waits);
        loop {
            let mut options = File::options();
            options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
            match options.write(true).open(path) {
                Err(error) if is_pipe && Errno::from_io_error(&error) == Some(Errno::NXIO) => {}
                opened => return opened.map(|file| SpecialFile { file, stop }),
            }
            if stop.load(Ordering::Relaxed) {
                return Err(io::Error::other("no program reads it"));
            }
            if let Some(waits) = waits.take() {
                waits();
            }
            thread::sleep(TICK);
        }
    }
}

impl Write for SpecialFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stopped: Option<Instant> = None;
        loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            if self.stop.load(Ordering::Relaxed)
                && stopped.get_or_insert_with(Instant::now).elapsed() > STOPPED_PATIENCE
            {
                return Err(io::Error::other("its reader takes nothing"));
            }
            let tick = Timespec::try_from(TICK).ok();
            poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], tick.as_ref())?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn pipe() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        (folder, path)
    }

    #[test]
    fn a_reader_that_comes_late_and_is_slow_gets_all() {
        let (_folder, path) = pipe();
        // More than a pipe holds.
        let text = vec![b'x'; 1 << 20];
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (told, waits) = std::sync::mpsc::channel();
            let writer = scope.spawn(|| {
                let mut file =
                    SpecialFile::open(&path, &stop, move || told.send(()).unwrap()).unwrap();
                file.write_all(&text).unwrap();
            });
            waits.recv().unwrap();
            let mut read = Vec::new();
            File::open(&path).unwrap().read_to_end(&mut read).unwrap();
            writer.join().unwrap();
            assert!(read == text);
        });
    }

    #[test]
    fn a_wish_to_stop_ends_the_waiting() {
        let (_folder, path) = pipe();
        let stop = AtomicBool::new(false);
        let error = SpecialFile::open(&path, &stop, || stop.store(true, Ordering::Relaxed));
        assert_eq!(error.err().unwrap().to_string(), "no program reads it");
        // A reader that takes nothing.
        let _reader = File::options().read(true).write(true).open(&path).unwrap();
        let mut file = SpecialFile::open(&path, &stop, || ()).unwrap();
        let error = file.write_all(&[0; 1 << 20]).unwrap_err();
        assert_eq!(error.to_string(), "its reader takes nothing");
    }
}
