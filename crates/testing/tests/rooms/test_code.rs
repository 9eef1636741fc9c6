//! Tests state facts: no code of a test reads real time, sleeps, or tries a second time, and where threads, processes or
//! guests run none asserts a rate, a ratio, a duration or a latency. Time is only in `crates/testing/src/wait.rs`, which
//! waits for an event. Measuring is for `benches/` and `scripts/performance`, which are not read here.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::visit::{self, Visit};

use super::modules::{is_for_tests, parts, root};

/// The one place that knows real time.
const WAITING: &str = "crates/testing/src/wait.rs";

/// Calls that wait for a time or measure one.
const OF_TIME: [&str; 6] = [
    "sleep",
    "park_timeout",
    "elapsed",
    "duration_since",
    "saturating_duration_since",
    "checked_duration_since",
];

/// Clocks. Code that is given its time needs none; a test of such code may make up an instant.
const CLOCKS: [&str; 2] = ["Instant", "SystemTime"];

/// Names of second tries.
const TRIES: [&str; 4] = ["tries", "attempts", "TRIES", "ATTEMPTS"];

/// What ends a name of something that is measured in real time, or is one.
const MEASURED: [&str; 13] = [
    "_ns",
    "_us",
    "_ms",
    "_seconds",
    "_secs",
    "_per_s",
    "_per_second",
    "elapsed",
    "took",
    "latency",
    "throughput",
    "p50",
    "p99",
];

/// Names of what something measured is held against.
const BOUNDS: [&str; 6] = ["limit", "bound", "most", "least", "best", "expected"];

/// Where tests run threads, processes or guests in real time.
fn is_in_real_time(file: &str) -> bool {
    let in_tests = file.starts_with("tests/") && !file.starts_with("tests/datapath/");
    let of_crate = file.split('/').nth(2);
    let of_device = file.starts_with("crates/softroce") && of_crate == Some("tests");
    in_tests || of_device || file.starts_with("crates/testing/")
}

/// Breaches of the rule in a piece of test code.
fn breaches(tokens: TokenStream, in_real_time: bool) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let follows = |delimiter| matches!(tokens.get(at + 1), Some(TokenTree::Group(group)) if group.delimiter() == delimiter);
        match token {
            TokenTree::Ident(ident) => {
                let (line, name) = (ident.span().start().line, ident.to_string());
                // A method `sleep` is of something that has one: the device's own thread, a test's bed.
                let before = at.checked_sub(1).map(|before| tokens[before].to_string());
                let is_method = matches!(before.as_deref(), Some("." | "fn"));
                let is_called = OF_TIME.contains(&name.as_str())
                    && follows(Delimiter::Parenthesis)
                    && !(is_method && name == "sleep");
                let is_clock = in_real_time && CLOCKS.contains(&name.as_str());
                if is_called || is_clock || TRIES.contains(&name.as_str()) {
                    found.push(format!("{line}: {name}"));
                }
                let is_assertion = ["assert", "debug_assert"].contains(&name.as_str());
                if let (true, true, Some(TokenTree::Group(group))) =
                    (in_real_time, is_assertion, tokens.get(at + 2))
                {
                    found.extend(
                        measured(group.stream())
                            .map(|figure| format!("{line}: an assertion on {figure}")),
                    );
                }
            }
            TokenTree::Group(group) => found.extend(breaches(group.stream(), in_real_time)),
            _ => {}
        }
    }
    found
}

/// What an assertion compares with a bound that is measured. That something is above 0 is a fact, and that parts of one
/// result agree with each other is one too.
fn measured(assertion: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = assertion.into_iter().collect();
    let condition = tokens
        .split(
            |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','),
        )
        .next()?;
    let text: TokenStream = condition.iter().cloned().collect();
    let text = text.to_string().replace("->", "").replace("=>", "").replace(":: <", "");
    text.split("&&").flat_map(|clause| clause.split("||")).filter_map(measured_by_clause).next()
}

fn measured_by_clause(clause: &str) -> Option<String> {
    if !clause.contains('<') && !clause.contains('>') {
        return None;
    }
    let words = || clause.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    // Numbers but 0; an index is none of them.
    let parts: Vec<&str> = clause.split_whitespace().collect();
    let has_bound = words().any(|word| {
        word.len() > 2 && word.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
            || BOUNDS.contains(&word)
    }) || parts.windows(2).any(|pair| {
        let is_operand = pair[0].ends_with(['<', '>', '=', '*', '/', '+', '-']);
        is_operand
            && pair[1].starts_with(|first: char| first.is_ascii_digit())
            && pair[1].contains(|digit| ('1'..='9').contains(&digit))
    });
    has_bound
        .then(|| words().find(|word| MEASURED.iter().any(|ending| word.ends_with(ending))))
        .flatten()
        .map(str::to_owned)
}

/// The modules for tests in a file that has other code too.
#[derive(Default)]
struct ForTests(TokenStream);

impl<'ast> Visit<'ast> for ForTests {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_for_tests(parts(item).0) {
            item.to_tokens(&mut self.0);
        } else {
            visit::visit_item(self, item);
        }
    }
}

/// All Rust files of the project but benchmarks and examples, by paths from its root.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let name = entry.unwrap().file_name();
        let path = folder.join(&name);
        let is_folder = root().join(&path).is_dir();
        if is_folder && name != "benches" && name != "examples" {
            files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Whether all of a file is for tests.
fn is_test_file(file: &str) -> bool {
    let in_tests = file.starts_with("tests/")
        || file.contains("/tests/")
        || file.starts_with("crates/testing/");
    in_tests || file.ends_with("_tests.rs") || file.ends_with("/tests.rs")
}

#[test]
fn tests_neither_measure_nor_sleep_nor_try_again() {
    let mut paths = Vec::new();
    for folder in ["src", "crates", "tests"] {
        files(Path::new(folder), &mut paths);
    }
    let (mut read, mut found) = (0, String::new());
    for path in paths {
        let file = path.to_str().unwrap();
        if file == WAITING || file == "crates/testing/tests/rooms/test_code.rs" {
            continue;
        }
        let text = fs::read_to_string(root().join(file)).unwrap();
        let tokens = if is_test_file(file) {
            text.parse().unwrap()
        } else {
            let mut for_tests = ForTests::default();
            for_tests.visit_file(&syn::parse_file(&text).unwrap());
            for_tests.0
        };
        read += usize::from(!tokens.is_empty());
        for breach in breaches(tokens, is_in_real_time(file)) {
            found += &format!("\n  {file}:{breach}");
        }
    }
    assert!(read > 200, "only {read} files have test code");
    assert!(found.is_empty(), "CONTRIBUTING.md says how tests state facts; these do not:{found}");
}

#[test]
fn each_breach_is_found_and_a_fact_is_none() {
    let of = |text: &str| breaches(text.parse().unwrap(), true);
    for breach in [
        "std::thread::sleep(NAP);",
        "let late = before.elapsed();",
        "fn of(at: Instant) {}",
        "for _ in tries(3) {}",
        "assert!(run.gbit_per_s > 0.9 * best);",
        "assert!(latency < limit, \"{latency:?}\");",
        "assert!(flow[\"p99\"].as_u64().unwrap() < 5);",
        "if so { assert!(took <= NOTICED); }",
    ] {
        assert_eq!(of(breach).len(), 1, "{breach}: {:?}", of(breach));
    }
    for fact in [
        "assert_eq!(run.flows.len(), 2);",
        "assert!(run.gbit_per_s > 0.0 && run.p50 <= run.p99);",
        "assert!(flows[3].gbit_per_s > 0.0);",
        "sleeper.sleep(u64::MAX);",
        "assert!(messages < 5, \"{took:?}\");",
        "let parsed = text.parse::<Vec<u64>>();",
        "wait_for(\"its line\", SOON, || line());",
    ] {
        assert_eq!(of(fact), [""; 0], "{fact}");
    }
}
