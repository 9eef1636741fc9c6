//! What the pages in `docs/` say of options, statuses and fields is what the program has.
#![allow(clippy::unwrap_used)]

mod commands;
mod generated;
mod perftest_options;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use protocol::message::{
    ExaminationMessage, FileMessage, HandshakeMessage, LessonMessage, PerftestMessage, RunMessage,
    SessionMessage, SetUpMessage,
};
use report::judge::compare::Aspect;
use report::observe::Metric;
use report::show::csv;
use results::sample::sweep::Synthetic;
use rocebench::cli::args;
use strum::VariantNames;
use testing::program::call;
use verbs::WcStatus;

fn page(name: &str) -> String {
    std::fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The program in a folder, which must take these words; what it prints.
fn run(folder: impl AsRef<Path>, words: &[&str]) -> String {
    call("").args(words).within(folder).passes().stdout
}

/// Pages that speak of options.
const PAGES: [&str; 28] = [
    "README.md",
    "docs/adapters.md",
    "docs/ai-fabrics.md",
    "docs/against-perftest.md",
    "docs/beside.md",
    "docs/ci.md",
    "docs/command-line.md",
    "docs/comparing.md",
    "docs/devices-and-doctor.md",
    "docs/drivers.md",
    "docs/flows.md",
    "docs/gpu.md",
    "docs/learn.md",
    "docs/many-nodes.md",
    "docs/open-loop.md",
    "docs/operators.md",
    "docs/plots.md",
    "docs/results.md",
    "docs/send.md",
    "docs/set-up.md",
    "docs/soak.md",
    "docs/softroce.md",
    "docs/spreading.md",
    "docs/statistics.md",
    "docs/traffic.md",
    "docs/troubleshooting.md",
    "docs/tuning.md",
    "docs/why.md",
];

/// The long options that a page speaks of, in code.
fn options_of(page: &str) -> BTreeSet<String> {
    page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| word.starts_with("--") && word.len() > 3)
        .filter(|word| word[2..].starts_with(|c: char| c.is_ascii_lowercase()))
        .map(str::to_owned)
        .collect()
}

/// The options in the help of every command.
fn all_options() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let of_history = ["history", "history trend", "history compare"];
    for command in [
        "",
        "mesh",
        "accept",
        "soak",
        "why",
        "serve",
        "compare",
        "gate",
        "plot",
        "devices",
        "doctor",
        "explain",
        "send",
        "recipe",
        "recipe run",
    ]
    .into_iter()
    .chain(of_history)
    {
        let words: Vec<&str> = command.split_terminator(' ').chain(["--help"]).collect();
        let help = run(".", &words);
        let options = help
            .lines()
            .map(str::trim_start)
            .filter(|line| line.starts_with('-'))
            .flat_map(|line| line.split([' ', ',', '[', '=', '.', ':']))
            .filter(|word| word.starts_with("--"));
        found.extend(options.map(str::to_owned));
    }
    assert!(found.len() > 35, "{found:?}");
    found
}

/// docs/settings.md, from the table of settings.
fn settings_page() -> String {
    let mut text = "# Settings\n\n\
        A setting is a flag, a key of a [file](command-line.md#sweeps-in-files), and a field of `config` in\n\
        [results](results.md). A LIST is comma-separated, and each value makes cases. A setting of a flow\n\
        may differ between the [flows](flows.md) of a case; a setting of the case holds for all of them.\n\
        `rocebench --help` says what each does.\n\n\
        `UPDATE_SETTINGS=1 cargo test --test docs` makes this page from the program's tables of settings and rules.\n"
        .to_owned();
    let mut heading = "";
    let mut rows: Vec<&settings::Row> = settings::ROWS.iter().collect();
    // By headings, in the order of their first rows.
    rows.sort_by_key(|row| settings::ROWS.iter().position(|first| first.heading == row.heading));
    for row in rows {
        if row.heading != heading {
            heading = row.heading;
            text += &format!(
                "\n## {heading}\n\n| flag | default | range | of | field |\n|---|---|---|---|---|\n"
            );
        }
        let short = row.short.map(|letter| format!("`-{letter}`, ")).unwrap_or_default();
        let value = match row.takes {
            settings::Takes::Switch => String::new(),
            takes => format!(" {}", takes.value_name()),
        };
        let number = |bound: u64| match u32::try_from(bound).ok().filter(|_| row.is_size) {
            Some(bytes) => settings::Size::from_bytes(bytes).unwrap().to_string(),
            None => bound.to_string(),
        };
        let range = if row.has_range() {
            format!("{} to {}", number(row.range.0), number(row.range.1))
        } else {
            String::new()
        };
        let scope = match row.scope {
            settings::Scope::Flow => "flow",
            settings::Scope::Case => "case",
        };
        text += &format!(
            "| {short}`--{}{value}` | {} | {range} | {scope} | `{}` |\n",
            row.flag, row.default, row.field,
        );
    }
    text += "\n## Which settings go together\n\n\
        The rules are on other values than the default. A setting without effect is refused if no case of a\n\
        sweep has use for it.\n\n\
        | flag | is | |\n|---|---|---|\n";
    for rule in settings::rules() {
        let flags: Vec<String> = rule.flags().map(|it| format!("`--{it}`")).collect();
        text += &format!("| {} | {} | {} |\n", flags.join(", "), rule.kind.word(), rule.sentence());
    }
    text
}

#[test]
fn settings_are_as_in_the_program() {
    let made = settings_page();
    if std::env::var_os("UPDATE_SETTINGS").is_some() {
        let path = format!("{}/docs/settings.md", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, &made).unwrap();
    }
    assert!(
        page("docs/settings.md") == made,
        "docs/settings.md is not that of the table: UPDATE_SETTINGS=1 writes it anew"
    );
}

/// The blocks of code of a page in this language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let mut parts = page.split("\n```");
    // Outside and inside take turns.
    let inside = std::iter::from_fn(|| parts.nth(1));
    inside
        .filter_map(|block| block.split_once('\n'))
        .filter(|(tag, _)| *tag == language)
        .map(|(_, code)| code)
        .collect()
}

#[test]
fn examples_of_sweeps_can_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let dry_run = |words: &[&str]| run(&folder, &[words, &["--dry-run"]].concat());
    let command_line = page("docs/command-line.md");
    let [example] = blocks(&command_line, "toml")[..] else {
        panic!("docs/command-line.md has another number of files");
    };
    std::fs::write(folder.path().join("sweep.toml"), example).unwrap();
    dry_run(&["--config", "sweep.toml"]);

    let flows = page("docs/flows.md");
    let files = blocks(&flows, "toml");
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let first = file.lines().next().unwrap();
        let name = first.strip_prefix("# ").expect("a file has its name above");
        std::fs::write(folder.path().join(name), file).unwrap();
        let shown = dry_run(&["--config", name]);
        for flow in file.lines().filter_map(|line| line.strip_prefix("name = ")) {
            let line = format!("\n  {} ", flow.trim_matches('"'));
            assert!(shown.contains(&line), "{flow} is not in {shown}");
        }
    }
    let of_page = |text: &str| blocks(text, "").join("\n");
    let commands = of_page(&flows) + "\n" + &of_page(&page("docs/many-nodes.md"));
    // Of a page that also shows what is printed.
    let commands: Vec<&str> =
        commands.lines().filter_map(|line| line.strip_prefix("rocebench ")).collect();
    assert!(commands.len() >= 6, "{commands:?}");
    for words in commands {
        dry_run(&words.split(' ').collect::<Vec<_>>());
    }
}

#[test]
fn every_option_is_on_the_page() {
    let documented = options_of(&(page("docs/command-line.md") + &page("docs/settings.md")));
    let missing = &all_options() - &documented;
    assert!(missing.is_empty(), "the pages lack {missing:?}");
}

/// A page without the table of perftest's own options.
fn prose(name: &str) -> String {
    let text = page(name);
    let parts = perftest_options::TABLE.parts(&text);
    parts.map_or(text.clone(), |[before, _, after]| [before, after].concat())
}

#[test]
fn every_option_on_the_pages_exists() {
    let real = all_options();
    // perftest's own, and the scripts'.
    let others = "--report_gbits --report --tclass --output --run --lab --tests --dry-run --no-lab --release --bench --quick";
    // firewall-cmd's and a container's; perftest's `--data_validation` and `--disable_pcie_relaxed`.
    let more = "--add-port --cap-add --data --disable";
    // apt-get's and rustup's; those of a batch job.
    let jobs = "--collector --no-install-recommends --profile --ntasks-per-node --exclusive --time --mail-type";
    let others = [others, more, jobs];
    let others: Vec<&str> = others.iter().flat_map(|it| it.split(' ')).collect();
    for name in PAGES {
        let mut unknown = &options_of(&prose(name)) - &real;
        unknown.retain(|option| !others.contains(&option.as_str()));
        assert!(unknown.is_empty(), "{name} speaks of {unknown:?}");
    }
}

#[test]
fn options_on_the_pages_take_what_the_program_says() {
    // As they are asked for by help, of any command: `FILE|-` is FILE.
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let program = args::command();
    for command in std::iter::once(&program).chain(program.get_subcommands()) {
        for argument in command.get_arguments() {
            let (Some(flag), Some(names)) = (argument.get_long(), argument.get_value_names())
            else {
                continue;
            };
            let names = names.iter().flat_map(|name| name.split('|'));
            let known = values.entry(format!("--{flag}")).or_default();
            known.extend(names.map(str::to_owned));
        }
    }
    let mut found = 0;
    for name in PAGES {
        let page = prose(name);
        let words: Vec<&str> = page.split([' ', '`', '\n', '|', '[', ']']).collect();
        for pair in words.windows(2) {
            let (flag, value) = (pair[0], pair[1]);
            let is_placeholder = value.len() > 1 && value.chars().all(|c| c.is_ascii_uppercase());
            if let (Some(known), true) = (values.get(flag), is_placeholder) {
                let is_known = known.contains(value);
                assert!(is_known, "{name}: {flag} {value}, not {known:?}");
                found += 1;
            }
        }
    }
    assert!(found > 40, "{found}");
}

#[test]
fn metrics_and_aspects_of_a_comparison_are_on_its_pages_and_in_its_help() {
    let command = args::command();
    let compare = command.find_subcommand("compare").unwrap();
    let help = |name: &str| {
        let mut arguments = compare.get_arguments();
        let argument = arguments.find(|argument| argument.get_long() == Some(name));
        argument.unwrap().get_help().unwrap().to_string()
    };
    let after = compare.get_after_help().unwrap().to_string();
    let (comparing, options) = (page("docs/comparing.md"), page("docs/command-line.md"));
    for metric in Metric::compared() {
        let name = metric.short_name();
        let margin = format!("{name} {:.0}%", metric.default_margin() * 100.0);
        assert!(help("margin").contains(&margin), "{margin}");
        assert!(after.contains(name), "{name}: {after}");
        for page in [&comparing, &options] {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
    for &aspect in Aspect::ALL {
        assert!(help("across").contains(aspect.name()), "{aspect}");
        for page in [&comparing, &options] {
            assert!(page.contains(&format!("`{aspect}`")), "{aspect}");
        }
    }
}

/// The name by which a link reaches a section of a page.
fn anchor(title: &str) -> String {
    title
        .to_lowercase()
        .chars()
        .filter(|it| it.is_alphanumeric() || "-_ ".contains(*it))
        .map(|it| if it == ' ' { '-' } else { it })
        .collect()
}

/// What the links of a page lead to.
fn targets(page: &str) -> impl Iterator<Item = &str> {
    page.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The sections of a page, by the names that links give them.
fn anchors(page: &str) -> BTreeSet<String> {
    // Not the lines of blocks of code that begin with the same character.
    page.split("```")
        .step_by(2)
        .flat_map(str::lines)
        .filter(|line| line.starts_with('#'))
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = files("docs", "md");
    pages.extend([root.join("README.md"), root.join("CONTRIBUTING.md")]);
    let mut links = 0;
    for path in pages {
        let text = std::fs::read_to_string(&path).unwrap();
        let rooms = ["src/", "crates/", "tests/", "benches/", "scripts/"];
        for file in text.split('`').skip(1).step_by(2) {
            let is_path = rooms.iter().any(|room| file.starts_with(room));
            if is_path && !file.contains(['*', ' ', '\n', '[']) {
                let exists = root.join(file).exists();
                assert!(exists, "{} names {file}: there is none", path.display());
            }
        }
        for target in targets(&text).filter(|target| !target.contains("://")) {
            let (file, section) = target.split_once('#').unwrap_or((target, ""));
            let other = match file {
                "" => path.clone(),
                file => path.with_file_name(file),
            };
            let name = path.display();
            assert!(other.exists(), "{name} links to {target}");
            if other.extension().is_some_and(|it| it == "md") && !section.is_empty() {
                let sections = anchors(&std::fs::read_to_string(&other).unwrap());
                assert!(sections.contains(section), "{name} links to {target}");
            }
            links += 1;
        }
    }
    assert!(links > 100, "{links}");
}

#[test]
fn protocol_page_has_every_message() {
    let page = page("docs/dev/protocol.md");
    let sections: BTreeMap<&str, &str> =
        page.split("\n## ").filter_map(|section| section.split_once('\n')).collect();
    let conversations: [(&[&str], &[&str]); 8] = [
        (&["Handshake", "Join"], HandshakeMessage::VARIANTS),
        (&["At any time", "Files"], SessionMessage::VARIANTS),
        (&["Examination", "Run"], ExaminationMessage::VARIANTS),
        (&["Run"], RunMessage::VARIANTS),
        (&["Set-up"], SetUpMessage::VARIANTS),
        (&["perftest"], PerftestMessage::VARIANTS),
        (&["Lesson"], LessonMessage::VARIANTS),
        (&["Files"], FileMessage::VARIANTS),
    ];
    for (headings, kinds) in conversations {
        for kind in kinds {
            let word = ["set_up_", "perftest_", "lesson_", "file_"]
                .iter()
                .find_map(|conversation| kind.strip_prefix(conversation))
                .unwrap_or(kind);
            let is_there =
                headings.iter().any(|heading| sections[heading].contains(&format!("`{word}`")));
            assert!(is_there, "docs/dev/protocol.md lacks `{word}` in {headings:?}");
        }
    }
}

#[test]
fn csv_columns_that_the_page_names_exist() {
    let page = page("docs/results.md");
    let small = Synthetic {
        set_up: vec![4],
        ops: vec!["send"],
        qps: vec![4],
        sizes: vec![64],
        workers: vec![1],
        ..Synthetic::default()
    };
    let sample = small.result();
    let mut files = Vec::new();
    csv::cases(&sample, &mut files).unwrap();
    csv::cases_in_full(&sample, &mut files).unwrap();
    csv::qps(&sample, &mut files).unwrap();
    csv::histograms(&sample, &mut files).unwrap();
    let files = String::from_utf8(files).unwrap();
    let (_, section) = page.split_once("\n## CSV\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let words = section.split('`').skip(1).step_by(2);
    // Those without an underscore may be values.
    let named: Vec<&str> = words
        .filter(|word| {
            word.contains('_')
                && !word.ends_with('_')
                && word.chars().all(|it| it.is_ascii_lowercase() || it == '_')
        })
        .collect();
    assert!(named.len() >= 9, "{named:?}");
    for name in named {
        assert!(files.contains(name), "no column or kind {name}");
    }
}

#[test]
fn the_doctors_page_names_every_check() {
    let page = page("docs/devices-and-doctor.md");
    let mut checks = BTreeSet::new();
    let mut sources = files("src/doctor", "rs");
    sources.retain(|path| !path.components().any(|part| part.as_os_str() == "nodes"));
    for path in sources {
        let source = std::fs::read_to_string(path).unwrap();
        let code = source.split("#[cfg(test)]").next().unwrap();
        let names = code.split("Check::new(").skip(1);
        checks.extend(names.filter_map(|rest| {
            let quoted = rest.trim_start().strip_prefix('"')?;
            Some(quoted.split('"').next()?.to_owned())
        }));
    }
    assert!(checks.len() > 20, "{checks:?}");
    for check in checks {
        let is_there = page.contains(&format!("| {check} |"));
        assert!(is_there, "docs/devices-and-doctor.md lacks {check:?}");
    }
}

/// The files of this kind in a folder and the folders in it.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut files = Vec::new();
    while let Some(next) = folders.pop() {
        let entries = std::fs::read_dir(next).unwrap();
        let (within, others): (Vec<_>, Vec<_>) =
            entries.map(|entry| entry.unwrap().path()).partition(|path| path.is_dir());
        folders.extend(within);
        files.extend(others);
    }
    files.retain(|path| path.extension().is_some_and(|it| it == extension));
    files
}

/// The text of the program's source, string literals that go over a line's end made whole.
fn source() -> String {
    let folders = [
        "src",
        "crates/node/src",
        "crates/plan/src",
        "crates/protocol/src",
        "crates/report/src",
        "crates/verbs/src",
    ];
    let text: String = folders
        .iter()
        .flat_map(|folder| files(folder, "rs"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let mut pieces = text.split("\\\n");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |whole, piece| whole + piece.trim_start())
}

#[test]
fn troubleshooting_quotes_what_the_program_says() {
    let (page, source) = (page("docs/troubleshooting.md"), source());
    let statuses: Vec<String> = (1..64).map(|code| WcStatus(code).to_string()).collect();
    let mut found = 0;
    for line in page.lines().filter(|line| line.starts_with("Seen:")) {
        let ours = line.split(" · perftest:").next().unwrap();
        for quotation in ours.split('`').skip(1).step_by(2) {
            let mut text = quotation.to_owned();
            for status in &statuses {
                text = text.replace(status.as_str(), "…");
            }
            for fragment in text.split('…').map(str::trim).filter(|it| it.len() > 4) {
                let is_there = source.contains(fragment);
                assert!(is_there, "not in the source: {fragment:?} of {line}");
            }
            found += 1;
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn troubleshooting_leads_to_its_own_sections() {
    let page = page("docs/troubleshooting.md");
    let sections: BTreeSet<String> =
        page.lines().filter_map(|line| line.strip_prefix("## ")).map(anchor).collect();
    let links: BTreeSet<String> =
        targets(&page).filter_map(|target| target.strip_prefix('#')).map(str::to_owned).collect();
    assert_eq!(links, sections);
}

/// Renderers without style sheets draw a picture that was drawn by attributes; its style sheet is for dark screens alone.
#[test]
fn pictures_that_are_kept_need_no_style_sheet() {
    let pictures = [files("docs", "svg"), files("plots/baseline", "svg")].concat();
    assert!(pictures.len() > 5, "{pictures:?}");
    for path in pictures {
        let picture = std::fs::read_to_string(&path).unwrap();
        let mut styles = picture.split("<style>").skip(1).map(str::trim_start);
        let is_dark = styles.all(|style| style.starts_with("@media"));
        assert!(is_dark, "{}", path.display());
        assert!(picture.contains(" fill=\"#"), "{}", path.display());
    }
}
