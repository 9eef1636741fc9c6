//! The embedded device as a library to preload. Cargo builds it together with the tests: their packages depend on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Its path, beside the test program.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let own = std::env::current_exe().unwrap();
        let library = own.with_file_name("libsoftroce_preload.so");
        assert!(library.is_file(), "no {}", library.display());
        library
    })
}

/// Puts it where the program looks for it, beside itself: a folder above the test programs.
pub fn place_beside_the_program() {
    static PLACED: OnceLock<()> = OnceLock::new();
    PLACED.get_or_init(|| {
        let folder = library().parent().and_then(Path::parent).unwrap();
        let other = folder.join(format!("preload-{}", std::process::id()));
        fs::hard_link(library(), &other).unwrap();
        // Where both are links to one file, this leaves them.
        fs::rename(&other, folder.join("libsoftroce_preload.so")).unwrap();
        let _ = fs::remove_file(&other);
    });
}
