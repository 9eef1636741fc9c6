//! The null verbs library as the program's table: devices `null0`,
//! which completes every WR at once, and `loop0`, which moves bytes inside this process; and machines with the adapters of
//! `null-verbs/personas`.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::Path;

use null_verbs::personas::{ALL, Entry};
use null_verbs::{self as library};
use tempfile::TempDir;
use verbs::VerbsLibrary;

/// The table; one for the process.
pub fn null_library() -> &'static VerbsLibrary {
    static NULL: VerbsLibrary = verbs::library_of!("null-verbs", library);
    &NULL
}

/// A machine with an adapter of `null-verbs/personas`: a verbs library and the kernel's files, in a folder of their own. What
/// is sent moves inside this process.
pub struct PersonaMachine {
    entry: &'static Entry,
    root: TempDir,
    library: &'static VerbsLibrary,
}

/// The machine of the table of this name.
///
/// # Panics
/// There is none, or its files cannot be written.
pub fn persona(name: &str) -> PersonaMachine {
    let entry = ALL
        .iter()
        .find(|entry| entry.name == name)
        .unwrap_or_else(|| panic!("there is no persona {name}"));
    let root = tempfile::tempdir().expect("a folder");
    let table = (entry.persona)();
    let place = |path: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a path below the root")).expect("a folder");
        path
    };
    for (path, text) in &table.files {
        fs::write(place(path), format!("{text}\n")).expect("a file");
    }
    for (path, target) in &table.links {
        symlink(target, place(path)).expect("a link");
    }
    let library = VerbsLibrary {
        // Its name stands in results.
        name: VerbsLibrary::system().name,
        root: Box::leak(root.path().to_str().expect("UTF-8").into()),
        prefixes,
        get_device_list: entry.get_device_list,
        ..*null_library()
    };
    PersonaMachine { entry, library: Box::leak(Box::new(library)), root }
}

/// The addresses of all personas, each in a network of 256 or, of IPv6, 2^64 addresses.
fn prefixes() -> Vec<(IpAddr, u8)> {
    ALL.iter()
        .flat_map(|entry| (entry.persona)().gids())
        .map(|gid| IpAddr::from(gid).to_canonical())
        .map(|address| (address, if address.is_ipv4() { 24 } else { 64 }))
        .collect()
}

impl PersonaMachine {
    /// The names of all personas, but of this project's own devices.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|entry| entry.name).filter(|name| *name != "plain")
    }

    /// The adapter and its mode, in a line.
    pub fn about(&self) -> &str {
        &(self.entry.persona)().about
    }

    /// The null library with the answers of this adapter.
    pub fn library(&self) -> &'static VerbsLibrary {
        self.library
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }
}
