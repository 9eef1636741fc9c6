//! The library that perftest's programs are preloaded with.

use std::path::Path;
use std::process::Command;
use std::sync::Once;

/// Cargo builds no package's cdylib for the tests: done when a test first asks for it. It lies beside the program,
/// where the program looks for it.
pub fn build_library() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let folder = Path::new(assert_cmd::cargo::cargo_bin!("rocebench"))
            .parent()
            .unwrap();
        let profile = match folder.file_name().unwrap().to_str().unwrap() {
            "debug" => "dev",
            other => other,
        };
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| env!("CARGO").to_owned());
        let built = Command::new(cargo)
            .args(["build", "--quiet", "--package", "softroce-preload"])
            .args(["--profile", profile, "--target-dir"])
            .arg(folder.parent().unwrap())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            // That of who asks the test program for the times of tests: cargo would build all anew for it.
            .env_remove("RUSTC_BOOTSTRAP")
            .status()
            .unwrap();
        assert!(built.success() && folder.join("libsoftroce_preload.so").is_file());
    });
}
