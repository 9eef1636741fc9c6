//! Names of received files: one path component, which cannot lead out of the folder. Both ends check, but security
//! rests on the receiver's check. It must not touch a file system.

use std::ffi::OsStr;
use std::path::Path;

use results::whole_file::TEMPORARY_PREFIX;

/// Longest name of a file, in bytes (NAME_MAX of Linux).
pub const MAX_NAME_BYTES: usize = 255;

/// Why a text is not valid as a file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum NameError {
    #[error("it is empty")]
    Empty,
    /// `.` or `..`.
    #[error("it names a folder")]
    Folder,
    #[error("it has a separator in it, and only plain names are taken")]
    Separator,
    #[error("it has a control character in it")]
    Control,
    #[error("it is longer than {MAX_NAME_BYTES} bytes")]
    TooLong,
    #[error("it is not UTF-8, which the protocol needs")]
    NotUtf8,
    #[error("it begins with {TEMPORARY_PREFIX}, as the receiver's temporaries do")]
    Temporary,
}

/// Checks a name that a peer sent.
pub fn check(name: &str) -> Result<(), NameError> {
    match name {
        "" => return Err(NameError::Empty),
        "." | ".." => return Err(NameError::Folder),
        _ => {}
    }
    if name.contains('/') {
        Err(NameError::Separator)
    } else if name.chars().any(char::is_control) {
        Err(NameError::Control)
    } else if name.len() > MAX_NAME_BYTES {
        Err(NameError::TooLong)
    } else if name.starts_with(TEMPORARY_PREFIX) {
        Err(NameError::Temporary)
    } else {
        Ok(())
    }
}

/// The name under which a file is sent: the last component of its path.
///
/// # Errors
/// Why no valid name results.
pub fn of_path(path: &Path) -> Result<&str, NameError> {
    let name = path.file_name().ok_or(if path == Path::new("") {
        NameError::Empty
    } else {
        NameError::Folder
    })?;
    let name = OsStr::to_str(name).ok_or(NameError::NotUtf8)?;
    check(name)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ways_out_are_no_names() {
        for (name, error) in [
            ("", NameError::Empty),
            (".", NameError::Folder),
            ("..", NameError::Folder),
            ("/", NameError::Separator),
            ("a/b", NameError::Separator),
            ("../a", NameError::Separator),
            ("/etc/passwd", NameError::Separator),
            ("a/", NameError::Separator),
            ("a\0b", NameError::Control),
            ("a\nb", NameError::Control),
            ("\u{1b}[31m", NameError::Control),
            ("\u{85}", NameError::Control),
            (".rocebench-unfinished-1", NameError::Temporary),
        ] {
            assert_eq!(check(name), Err(error), "{name:?}");
        }
        assert_eq!(check(&"x".repeat(256)), Err(NameError::TooLong));
        assert_eq!(check(&"é".repeat(128)), Err(NameError::TooLong));
    }

    #[test]
    fn odd_names_are_names() {
        for name in ["a", "...", "..a", "-rf", ".hidden", "a b", "é", "a\\b", "~", "$HOME"] {
            assert_eq!(check(name), Ok(()), "{name:?}");
        }
        assert_eq!(check(&"x".repeat(255)), Ok(()));
    }

    #[test]
    fn a_path_gives_its_last_component() {
        assert_eq!(of_path(Path::new("/tmp/x/a.bin")), Ok("a.bin"));
        assert_eq!(of_path(Path::new("a/")), Ok("a"));
        assert_eq!(of_path(Path::new("/")), Err(NameError::Folder));
        assert_eq!(of_path(Path::new("a/..")), Err(NameError::Folder));
        let odd = OsStr::from_bytes(b"a\xff");
        assert_eq!(of_path(Path::new(odd)), Err(NameError::NotUtf8));
    }

    proptest! {
        #[test]
        fn a_name_that_is_taken_is_one_component(name in ".{0,20}") {
            if check(&name).is_ok() {
                let path = Path::new("/folder").join(&name);
                prop_assert_eq!(path.parent(), Some(Path::new("/folder")));
                prop_assert_eq!(path.file_name(), Some(OsStr::new(&name)));
            }
        }
    }
}
