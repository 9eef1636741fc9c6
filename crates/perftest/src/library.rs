//! The library by which perftest runs on the embedded device: `libsoftroce_preload.so`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that names it.
const VARIABLE: &str = "SOFTROCE_LIBRARY";

const FILE: &str = "libsoftroce_preload.so";

/// Where packages install it, from the folder above the program's.
const INSTALLED: &str = "lib/rocebench";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum LibraryError {
    #[error("{VARIABLE}={}: no such file", .0.display())]
    NoSuchFile(PathBuf),
    #[error("perftest runs on the embedded device over {FILE}, and there is none in {}", .0.display())]
    Missing(PathBuf),
    /// The dynamic linker takes blanks and colons for separators.
    #[error("{} cannot be preloaded: there is a blank or a colon in its path", .0.display())]
    Separator(PathBuf),
}

impl LibraryError {
    pub fn hint(&self) -> String {
        match self {
            LibraryError::Missing(folder) => {
                let release = match folder.file_name().and_then(|name| name.to_str()) {
                    Some("debug") => "",
                    _ => " --release",
                };
                format!(
                    "build it with `cargo build{release} -p softroce-preload`, or name it in the variable {VARIABLE}"
                )
            }
            LibraryError::NoSuchFile(_) => format!("correct {VARIABLE}, or leave it out"),
            LibraryError::Separator(_) => {
                format!("copy it to another folder and name it in the variable {VARIABLE}")
            }
        }
    }
}

/// Where the library is: as `SOFTROCE_LIBRARY` says, or else beside this program, or where packages install it.
///
/// # Errors
/// It is not there, or cannot be preloaded.
pub fn find_library() -> Result<PathBuf, LibraryError> {
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(Path::new("."));
    find(std::env::var_os(VARIABLE), folder)
}

fn find(named: Option<OsString>, folder: &Path) -> Result<PathBuf, LibraryError> {
    let library = match named.filter(|name| !name.is_empty()) {
        Some(name) => {
            let path = PathBuf::from(name);
            path.canonicalize().map_err(|_| LibraryError::NoSuchFile(path))?
        }
        None => {
            let installed = folder.parent().map(|above| above.join(INSTALLED));
            [Some(folder.to_owned()), installed]
                .into_iter()
                .flatten()
                .map(|place| place.join(FILE))
                .find(|path| path.is_file())
                .ok_or_else(|| LibraryError::Missing(folder.to_owned()))?
        }
    };
    let text = library.to_string_lossy();
    if text.contains([' ', ':']) {
        return Err(LibraryError::Separator(library));
    }
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_then_the_folder_and_what_is_missing_says_how_to_build_it() {
        let folder = tempfile::tempdir().unwrap();
        let debug = folder.path().join("debug");
        std::fs::create_dir(&debug).unwrap();
        let missing = find(None, &debug).unwrap_err();
        assert_eq!(missing, LibraryError::Missing(debug.clone()));
        assert!(missing.hint().contains("`cargo build -p softroce-preload`"));
        let lib = folder.path().join(INSTALLED);
        std::fs::create_dir_all(&lib).unwrap();
        std::fs::write(lib.join(FILE), "").unwrap();
        assert_eq!(find(None, &debug), Ok(lib.join(FILE)));
        let beside = debug.join(FILE);
        std::fs::write(&beside, "").unwrap();
        assert_eq!(find(None, &debug), Ok(beside.clone()));
        assert_eq!(find(Some("".into()), &debug), Ok(beside));
        let named = folder.path().join("mine.so");
        let absent = find(Some(named.clone().into()), &debug).unwrap_err();
        assert_eq!(absent, LibraryError::NoSuchFile(named.clone()));
        std::fs::write(&named, "").unwrap();
        let named = named.canonicalize().unwrap();
        assert_eq!(find(Some(named.clone().into()), &debug), Ok(named));
        let spaced = folder.path().join("a b.so");
        std::fs::write(&spaced, "").unwrap();
        let refused = find(Some(spaced.into()), &debug);
        assert!(matches!(refused, Err(LibraryError::Separator(_))));
    }
}
