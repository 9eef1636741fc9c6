//! `rocebench plot`: what it is asked for, and how it went; the file that says which rack each node is in; pictures in
//! formats besides SVG, which librsvg's program makes.

use std::{
    collections::HashMap,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::cli::{
    args::{PlotArgs, WhatArgs},
    terminal::{Failure, print, say},
};
use plan::nodes::{ListError, MOST_NODES, expand};
use report::{
    judge::{
        compare::{Options, compare},
        finding::Finding,
        findings::findings,
        searches::searches,
    },
    observe::Observed,
    show::{
        page::{
            Page,
            folder::{self, FolderError, Format, PNG_DPI, Written},
            summary,
        },
        plot::{
            cap,
            figures::nodes::Racks,
            left_out,
            rows::{Sides, of_patterns},
            sections,
        },
    },
};
use results::{
    load::{Found, Loaded, load},
    model::{Comparison, ResultFile},
    text,
};
use settings::text_file::{TextFileError, read_text};

/// Reading that takes longer is worth a word.
const LONG: Duration = Duration::from_secs(2);

/// What was found under the paths of one side.
#[derive(Default)]
struct Input {
    results: Vec<Loaded>,
    /// Why files could not be used.
    refused: Vec<String>,
    /// How many of these were named themselves.
    named: usize,
    /// What is said of copies.
    copies: Vec<String>,
}

/// Draws.
///
/// # Errors
/// Bad input where a file that was named was refused, there is nothing to draw, or the program for a format is missing; failed
/// where the folder cannot be written.
pub fn plot(args: &PlotArgs) -> Result<(), Failure> {
    plot_with(args, &args.what.options())
}

/// The same, with a base compared in this way.
pub(super) fn plot_with(args: &PlotArgs, options: &Options) -> Result<(), Failure> {
    if args.base.is_none() && args.what != WhatArgs::default() {
        return Err(Failure::bad_input(
            "--metrics, --margin and --across need a base to compare with",
        )
        .with_hint("add --base RESULT, or leave them out"));
    }
    let formats = formats_of(&args.format);
    check_converter(&formats)?;
    let began = Instant::now();
    let input = read(&args.results);
    let base = args.base.as_ref().map(|path| read(std::slice::from_ref(path)));
    let refused: Vec<String> = std::iter::once(&input)
        .chain(&base)
        .flat_map(|input| input.refused.iter().cloned())
        .collect();
    let named = input.named + base.as_ref().map_or(0, |base| base.named);
    for reason in &refused {
        say(&format!("rocebench: warning: {reason}"));
    }
    both_have_results(&input, base.as_ref())?;
    let results = input.results;
    let racks = racks_of(args, &results)?;
    let cases = summary::cases(&results);
    if began.elapsed() > LONG && !args.speech.quiet {
        say(&format!("{cases} cases read, drawing"));
    }

    let base_results = base.map_or_else(Vec::new, |base| base.results);
    let comparison = (args.base.as_deref())
        .map(|path| compare_with(path, base_results.clone(), &results, options));
    let (sums, base_sums) = (of_patterns(&results), of_patterns(&base_results));
    let sides = Sides { new: &sums, base: &base_sums };
    let mut sections = sections(&results, sides, comparison.as_ref(), &racks);
    let mut left_out = left_out(&results, comparison.as_ref());
    left_out.extend(cap(&mut sections));
    left_out.extend(input.copies);
    let files: Vec<&ResultFile> = results.iter().map(|loaded| &loaded.result).collect();
    let mut found: Vec<Finding> = files.iter().flat_map(|file| searches(&file.cases)).collect();
    found.extend(findings(&files));
    let figures: Vec<_> = sections.iter().flat_map(|section| &section.figures).collect();
    // Stages are told without figures too.
    if figures.is_empty() && files.iter().all(|file| file.stages.is_empty()) {
        return Err(nothing_to_draw(&files, cases));
    }
    let page = Page {
        results: &results,
        sums: &sums,
        comparison: comparison.as_ref(),
        sections: &sections,
        refused: &refused,
        findings: &found,
        left_out: &left_out,
    };
    let how = Written { width: args.width, formats: &formats, convert: &convert };
    let path = folder::write(&args.out, &page.html(), figures.iter().copied(), how)
        .map_err(|error| unwritten(&error))?;
    report(&path, figures.len(), cases)?;
    let first = sections.first().filter(|section| section.id == "trend");
    for sentence in first.iter().flat_map(|section| &section.sentences) {
        print(&format!("{sentence}\n"))?;
    }
    match named {
        0 => Ok(()),
        _ => Err(refused_by_name(named)),
    }
}

fn both_have_results(input: &Input, base: Option<&Input>) -> Result<(), Failure> {
    let sides = [("result", Some(input)), ("base", base)];
    let empty = sides.iter().find(|(_, side)| side.is_some_and(|side| side.results.is_empty()));
    empty.map_or(Ok(()), |(kind, _)| {
        Err(Failure::bad_input(format!("no {kind} could be read, nothing is drawn"))
            .with_hint("name the JSON files that rocebench wrote, or a folder with them"))
    })
}

fn nothing_to_draw(files: &[&ResultFile], cases: usize) -> Failure {
    if files.iter().any(|file| Observed::of_file(file).any(|it| it.counted().next().is_some())) {
        let text = "nothing to draw: no figure shows a single case of this kind";
        let hint = "measure it with several values of a setting, such as --qps 1,4,16";
        return Failure::bad_input(text).with_hint(hint);
    }
    let text = format!("nothing to draw: none of the {cases} cases has a valid run with figures");
    Failure::bad_input(text).with_hint("run the sweep again; the failures are in its JSON file")
}

fn refused_by_name(named: usize) -> Failure {
    let files = match named {
        1 => "file that was",
        _ => "files that were",
    };
    let text = format!("{named} {files} named refused, see above; the others are drawn");
    Failure::bad_input(text).with_hint("name only files that can be drawn")
}

/// The formats besides SVG, each once.
fn formats_of(names: &[String]) -> Vec<Format> {
    Format::ALL
        .into_iter()
        .filter(|format| names.iter().any(|it| it == format.extension()))
        .collect()
}

/// Which rack each node is in, by the file that was named.
fn racks_of(args: &PlotArgs, results: &[Loaded]) -> Result<Racks, Failure> {
    let Some(path) = &args.racks else {
        return Ok(Racks::default());
    };
    let racks: Racks = read_racks(path).map_err(Failure::bad_input)?.into_iter().collect();
    let mut nodes = results
        .iter()
        .map(|loaded| &loaded.result)
        .flat_map(|file| file.nodes.iter().map(move |node| (file, node)));
    if nodes.any(|(file, node)| racks.rack(file, &node.name).is_some()) {
        return Ok(racks);
    }
    let example = results
        .iter()
        .flat_map(|loaded| &loaded.result.nodes)
        .next()
        .map_or_else(String::new, |node| format!(", such as {}", text::printable(&node.name, 60)));
    let file = text::path(path);
    Err(Failure::bad_input(format!("{file} names none of the results' nodes{example}")).with_hint(
        "write lines NODE RACK, with the nodes' names in the results or their host names",
    ))
}

fn compare_with(
    path: &Path,
    base: Vec<Loaded>,
    results: &[Loaded],
    options: &Options,
) -> Comparison {
    let of_base = Found { results: base, refused: Vec::new() };
    let own = Found { results: results.to_vec(), refused: Vec::new() };
    compare((path, &of_base), (Path::new("the results"), &own), options)
}

fn unwritten(error: &FolderError) -> Failure {
    let is_bad_input = match error {
        FolderError::Foreign { .. } => true,
        FolderError::Unconverted { .. } => false,
        FolderError::Write(error) => error.is_bad_input(),
    };
    Failure::new(error.to_string(), is_bad_input, None)
}

/// Results, each once, and why others are none. A file that is named twice is no copy.
fn read(paths: &[PathBuf]) -> Input {
    let mut input = Input::default();
    for path in paths {
        let Found { results, refused } = load(&[path]);
        let before = input.refused.len();
        if results.is_empty() && refused.is_empty() {
            input.refused.push(format!("{} holds no result files", text::path(path)));
        }
        input.refused.extend(refused.iter().map(ToString::to_string));
        if results.is_empty() || !path.is_dir() {
            input.named += input.refused.len() - before;
        }
        for loaded in results {
            match input.results.iter().find(|known| known.is_copy_of(&loaded)) {
                Some(known) if real(&known.path) == real(&loaded.path) => {}
                Some(known) => input.copies.push(loaded.left_out_beside(known)),
                None => input.results.push(loaded),
            }
        }
    }
    input
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Says where the page is.
fn report(page: &Path, figures: usize, cases: usize) -> Result<(), Failure> {
    let page = text::path(page);
    print(&format!("{page}: {figures} figures of {cases} cases\n"))
}

/// So much of a line that is none is shown.
const MAX_SHOWN: usize = 60;

/// Why a file of racks cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
enum RacksError {
    #[error("cannot read the racks {file}: {error}")]
    Read { file: String, error: TextFileError },
    #[error(
        "{file}, line {line}: `{text}` is not a node and its rack: write NODE RACK, as in node[01-16] rack1"
    )]
    Line { file: String, line: usize, text: String },
    #[error("{file}, line {line}: {error}")]
    Nodes { file: String, line: usize, error: ListError },
    #[error("{file}, line {line}: {node} is in {rack} here and in {other} on an earlier line")]
    Twice { file: String, line: usize, node: String, rack: String, other: String },
    #[error("{file} has more than {MOST_NODES} nodes")]
    TooMany { file: String },
    #[error("{file} names no node")]
    Empty { file: String },
}

/// Reads which rack each node is in: lines `NODE RACK`, with brackets as in `--nodes`.
///
/// # Errors
/// A file that cannot be read, a line that is none, or a node in two racks.
fn read_racks(path: &Path) -> Result<HashMap<String, String>, RacksError> {
    let file = text::path(path);
    match read_text(path) {
        Ok(lines) => parse_racks(&file, &lines),
        Err(error) => Err(RacksError::Read { file, error }),
    }
}

fn parse_racks(file: &str, lines: &str) -> Result<HashMap<String, String>, RacksError> {
    let mut racks: HashMap<String, String> = HashMap::new();
    for (line, whole) in (1..).zip(lines.lines()) {
        let text = whole.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let (nodes, name) = match words[..] {
            // The list of another file would have no line here.
            [nodes, rack] if !nodes.starts_with('@') => (nodes, rack),
            _ => {
                let (file, text) = (file.to_owned(), text::printable(text, MAX_SHOWN));
                return Err(RacksError::Line { file, line, text });
            }
        };
        let nodes = expand(nodes).map_err(|error| RacksError::Nodes {
            file: file.to_owned(),
            line,
            error,
        })?;
        let rack = name.to_owned();
        for node in nodes {
            match racks.insert(node.clone(), rack.clone()) {
                Some(other) if other != rack => {
                    return Err(RacksError::Twice {
                        file: file.to_owned(),
                        line,
                        node,
                        rack,
                        other,
                    });
                }
                _ => {}
            }
        }
        if racks.len() > MOST_NODES as usize {
            return Err(RacksError::TooMany { file: file.to_owned() });
        }
    }
    if racks.is_empty() { Err(RacksError::Empty { file: file.to_owned() }) } else { Ok(racks) }
}

const PROGRAM: &str = "rsvg-convert";
const REMEDY: &str = "apt install librsvg2-bin, or dnf install librsvg2-tools";

/// Dots of a picture's SVG in an inch.
const SVG_DPI: u32 = 96;

/// Columns of what the program says that are shown.
const SHOWN_COLUMNS: usize = 300;

/// Sees that the program is there, if it is needed.
fn check_converter(formats: &[Format]) -> Result<(), Failure> {
    let Some(format) = formats.first() else {
        return Ok(());
    };
    let mut command = Command::new(PROGRAM);
    command.arg("--version").stdin(Stdio::null());
    let reason = match command.stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => format!("{PROGRAM} --version failed ({status})"),
        Err(error) => unstarted(&error),
    };
    let name = format.extension().to_uppercase();
    Err(Failure::bad_input(format!("cannot write {name}: {reason}"))
        .with_hint(format!("{REMEDY}; or leave --format out")))
}

/// The SVG in that format.
///
/// # Errors
/// Why it could not be made, and what to do.
fn convert(svg: &str, format: Format) -> Result<Vec<u8>, String> {
    let mut command = Command::new(PROGRAM);
    command.args(["--format", format.extension()]);
    if format == Format::Png {
        let zoom = f64::from(PNG_DPI) / f64::from(SVG_DPI);
        command.args(["--zoom", &zoom.to_string()]);
    }
    let output =
        run_converter(command, svg).map_err(|error| format!("{}; {REMEDY}", unstarted(&error)))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let reason = match text::printable(errors.trim(), SHOWN_COLUMNS) {
        line if line.is_empty() => String::new(),
        line => format!(": {line}"),
    };
    if !output.status.success() {
        let status = output.status;
        return Err(format!(
            "{PROGRAM} failed ({status}){reason}; try the SVG file with it by hand, or leave --format out"
        ));
    }
    let name = format.extension().to_uppercase();
    format.marked(&output.stdout).ok_or_else(|| {
        format!("the output of {PROGRAM} is not a {name} file{reason}; install a newer librsvg")
    })
}

/// Runs the command with the text as its input.
fn run_converter(mut command: Command, input: &str) -> io::Result<Output> {
    let mut child =
        (command.stdin(Stdio::piped()).stdout(Stdio::piped())).stderr(Stdio::piped()).spawn()?;
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        // While it reads, its output is read: neither waits for the other.
        scope.spawn(move || {
            // A program that leaves early says why itself.
            stdin.map(|mut stdin| stdin.write_all(input.as_bytes()))
        });
        child.wait_with_output()
    })
}

fn unstarted(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{PROGRAM} is not installed"),
        _ => format!("{PROGRAM} cannot be started: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use results::sample::has;

    use super::*;

    #[test]
    fn lines_have_nodes_and_their_rack() {
        let racks = parse_racks("r", "# ours\n\nnode[08-10] r1 # new\nleft,right\tr2\r\n").unwrap();
        assert_eq!(racks.len(), 5);
        let found = ["node08", "node10", "left", "right", "node11"]
            .map(|node| racks.get(node).map(String::as_str));
        assert_eq!(found, [Some("r1"), Some("r1"), Some("r2"), Some("r2"), None]);
    }

    #[test]
    fn lines_that_are_none_say_which_and_why() {
        for (lines, reason) in [
            ("a r1\nb", "r, line 2: `b` is not a node"),
            ("a b r1", "line 1: `a b r1` is not a node"),
            ("@other r1", "line 1: `@other r1` is not a node"),
            ("a[1- r1", "line 1: `a[1-` has a bracket"),
            ("a r1\na[1-2] r1\na r2", "line 3: a is in r2 here and in r1"),
            ("# nothing", "r names no node"),
        ] {
            has(parse_racks("r", lines).unwrap_err().to_string(), [reason]);
        }
    }
}
