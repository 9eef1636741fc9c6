//! Files that people write: read whole, but no longer than any of them is, so that a wrong name such as `/dev/zero`
//! ends at once.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

pub const MAX_BYTES: u64 = 1 << 20;

/// The bytes of a file; `None` of one that is larger than [`MAX_BYTES`].
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_BYTES);
    Ok(fits.then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        for (length, is_whole) in [(0, true), (MAX_BYTES, true), (MAX_BYTES + 1, false)] {
            std::fs::write(&path, vec![b'a'; length as usize]).unwrap();
            let read = read(&path).unwrap().map(|bytes| bytes.len() as u64);
            assert_eq!(read, is_whole.then_some(length));
        }
        assert!(read(&folder.path().join("none")).is_err());
    }
}
