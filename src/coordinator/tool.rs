//! Which program this is, as result files name it.

use results::model::Tool;

/// This program with its version, and the revision that it was built from if that is known.
pub fn tool() -> Tool {
    Tool {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: protocol::PROGRAM_VERSION.to_owned(),
        git: option_env!("ROCEBENCH_GIT").map(str::to_owned),
    }
}

/// Two checkouts of one version differ in the revision.
#[test]
fn a_build_of_a_checkout_knows_its_revision() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let (tool, is_checkout) = (tool(), root.join(".git").exists());
    assert_eq!((&*tool.name, tool.git.is_some()), ("rocebench", is_checkout));
}
