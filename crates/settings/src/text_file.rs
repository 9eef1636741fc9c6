//! Texts that people write into files: configurations, lists of nodes and of racks. What editors and shells do to such
//! a file is dealt with here, so that every file is read alike: a byte order mark is no part of the text, and another
//! encoding gets the command that converts it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The largest such file, so that a wrong name such as `/dev/zero` ends at once.
pub const MAX_TEXT_FILE_BYTES: u64 = 1 << 20;

/// What a file has in place of UTF-8 text, known by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtherEncoding {
    /// Text of two bytes a character, as other systems save it.
    #[error("it is UTF-16 text: convert it with `iconv -f UTF-16 -t UTF-8`")]
    Utf16,
    /// A compressed file of any content.
    #[error("it is compressed by gzip: unpack it with `gunzip`")]
    Gzip,
}

/// Why a file has no text.
#[derive(Debug, thiserror::Error)]
pub enum TextFileError {
    /// It cannot be opened or read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It has more than [`MAX_TEXT_FILE_BYTES`].
    #[error("it is larger than {MAX_TEXT_FILE_BYTES} bytes; no such file is")]
    TooLarge,
    /// Its text is not as this program reads it.
    #[error(transparent)]
    Encoding(#[from] OtherEncoding),
    /// A byte is part of no character.
    #[error("it is not UTF-8 text at {0}")]
    NotUtf8(Place),
}

/// The bytes behind a byte order mark of UTF-8, or all of them.
///
/// # Errors
/// They begin as another encoding does.
pub fn without_mark(bytes: &[u8]) -> Result<&[u8], OtherEncoding> {
    match bytes {
        [0xef, 0xbb, 0xbf, text @ ..] => Ok(text),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Err(OtherEncoding::Utf16),
        [0x1f, 0x8b, ..] => Err(OtherEncoding::Gzip),
        _ => Ok(bytes),
    }
}

/// The text of a file that somebody wrote.
///
/// # Errors
/// It cannot be read, is too large, or is no UTF-8 text.
pub fn read_text(path: &Path) -> Result<String, TextFileError> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_TEXT_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_TEXT_FILE_BYTES {
        return Err(TextFileError::TooLarge);
    }
    let bytes = without_mark(&bytes)?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        TextFileError::NotUtf8(Place::new(&before, before.len()))
    })?;
    Ok(text.to_owned())
}

/// A place in a text: `LINE:COLUMN`, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the line, from 1.
    pub line: usize,
    /// Number of the character in its line, from 1.
    pub column: usize,
}

impl Place {
    /// Where the byte at `offset` stands.
    pub fn new(text: &str, offset: usize) -> Place {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or("").chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_text(&path).map_err(|error| error.to_string())
        };
        assert_eq!(read(b""), Ok(String::new()));
        assert_eq!(read("\u{feff}node1 µ\n".as_bytes()), Ok("node1 µ\n".to_owned()));
        let largest = vec![b'a'; MAX_TEXT_FILE_BYTES as usize];
        assert_eq!(read(&largest).map(|text| text.len()), Ok(largest.len()));
        for (bytes, reason) in [
            ([&largest[..], b"a"].concat(), "larger than 1048576 bytes"),
            (b"\xff\xfen\0".to_vec(), "iconv -f UTF-16"),
            (b"\xfe\xff\0n".to_vec(), "iconv -f UTF-16"),
            (b"\x1f\x8b\x08".to_vec(), "gunzip"),
            (b"# ok\nop = '\xe4'".to_vec(), "it is not UTF-8 text at 2:7"),
        ] {
            let error = read(&bytes).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let missing = read_text(&folder.path().join("none")).unwrap_err();
        assert!(matches!(missing, TextFileError::Io(_)));
    }
}
