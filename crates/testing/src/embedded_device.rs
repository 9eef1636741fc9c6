//! For tests of the embedded device: forged input, packets that it wrote to a file, and the library to preload, which
//! cargo builds together with the tests because their packages depend on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The path of the library, beside the test program.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let own = std::env::current_exe().unwrap();
        let library = own.with_file_name("libsoftroce_preload.so");
        assert!(library.is_file(), "no {}", library.display());
        library
    })
}

/// Puts the library where the program looks for it, beside itself: a folder above the test programs.
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

/// Forged inputs between two checks.
const A_ROUND: u64 = 1000;

/// Forged input by the thousand, the same in each run: calls `forge` with the numbers from 1, and `check` after each round
/// and at the end. `SOFTROCE_FUZZ=1000000` forges that many in place of `usual`, of which the first are the usual ones. What
/// fails tells how to run it again; `test` are the arguments of `cargo test`.
pub fn rounds<T>(
    test: &str,
    usual: u64,
    target: &mut T,
    forge: impl Fn(&mut T, u64),
    check: impl Fn(&mut T, u64),
) {
    let rounds = std::env::var("SOFTROCE_FUZZ").ok();
    let count = rounds.map_or(usual, |number| number.parse().unwrap());
    for number in 1..=count {
        let _again = Again(test, number);
        forge(target, number);
        if number % A_ROUND == 0 || number == count {
            check(target, number);
        }
    }
}

struct Again<'a>(&'a str, u64);

impl Drop for Again<'_> {
    #[allow(clippy::print_stderr)] // for who reads why a test failed
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Again(test, number) = self;
            eprintln!("Again: SOFTROCE_FUZZ={number} cargo test {test}");
        }
    }
}

/// The packets of a capture of raw IP packets with stamps in nanoseconds, whose records must be whole and in the order of time.
pub fn packets(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    let (file_header, mut records) = bytes.split_at(24);
    let field =
        |header: &[u8], at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
    assert_eq!((field(file_header, 0), field(file_header, 20)), (0xa1b2_3c4d, 101));
    let mut packets = Vec::new();
    let mut last_s = 0;
    while !records.is_empty() {
        let (record_header, rest) = records.split_at(16);
        let (at_s, nanoseconds) = (field(record_header, 0), field(record_header, 4));
        assert!(at_s >= last_s && nanoseconds < 1_000_000_000);
        last_s = at_s;
        let length = field(record_header, 8);
        assert_eq!(field(record_header, 12), length);
        let (packet, rest) = rest.split_at(length as usize);
        packets.push(packet.to_vec());
        records = rest;
    }
    packets
}
