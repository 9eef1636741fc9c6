//! The library to preload. It is built when a test first needs it, because Cargo does not build a package's cdylib
//! for its tests.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(build)
}

fn build() -> PathBuf {
    // The path of this test is TARGET/PROFILE/deps/programs-HASH.
    let own = env::current_exe().unwrap();
    let profile_directory = own.parent().and_then(Path::parent).unwrap();
    let profile = match profile_directory.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let cargo = env::var("CARGO").unwrap_or_else(|_| env!("CARGO").to_owned());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "softroce-preload"])
        .args(["--profile", profile, "--target-dir"])
        .arg(profile_directory.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "cargo build failed:\n{errors}");
    let library = profile_directory.join("libsoftroce_preload.so");
    assert!(library.is_file(), "no {}", library.display());
    library
}
