//! `rocebench explain`, `completions` and `man`: a lesson goes to stdout, through a pager where it is longer than the
//! terminal; the others are made from the definition of the command line.

use std::env;
use std::io;
use std::path::Path;

use crate::{
    cli::{
        args::{self, CompletionsArgs, ExplainArgs, ManArgs},
        ends::{check_one_device, ends},
        signals::stop_flag,
        terminal::{Failure, Pager, print, screen, start_logging, terminal_size},
    },
    coordinator::session::{LessonOptions, run_lesson},
    explain::{Language, LessonWriter, PAGE, Presentation, Style, Verdict},
};
use plan::Nodes;
use protocol::lesson::{BETWEEN_MTUS_BYTES, Lesson, MOST_BYTES, Mistake};
use settings::{Op, listed, nearest};

/// Fewest columns that text is wrapped to: on a narrower terminal words would stand alone.
const NARROWEST: usize = 40;

/// Gives the lesson.
///
/// # Errors
/// Bad input, a lesson that could not be given, or one that did not go as it should.
pub fn run(args: ExplainArgs) -> Result<(), Failure> {
    let (lesson, text) = lesson(&args)?;
    check_one_device(&args.endpoint, "explain")?;
    let ends = ends(args.host, args.connection, args.endpoint, &Nodes::TwoEnds)?;
    start_logging(0, false);
    let options = LessonOptions { text, ends, lesson };
    let stop = stop_flag().map_err(Failure::failed)?;
    let language = language(args.lang.clone(), |variable| env::var(variable).ok());
    let terminal = terminal_size();
    let columns = terminal.map_or(PAGE, |it| it.columns.clamp(NARROWEST, PAGE));
    let presentation =
        Presentation { language, style: style(), columns, has_all_steps: args.every_step };
    let (op, mistake) = (options.lesson.op, options.lesson.mistake);
    let mut lesson_writer = LessonWriter::new(presentation, op, mistake);
    let mut pager = Pager::new(terminal.filter(|_| !args.no_pager));
    let mut unwritten = None;
    let outcome = run_lesson(&options, &stop, &mut |event| {
        if unwritten.is_none() {
            unwritten = pager.print(&lesson_writer.text(&event)).err();
        }
    });
    let judged = outcome.map(|outcome| Verdict::new(mistake, &outcome));
    if let (Ok(verdict), None) = (&judged, &unwritten) {
        unwritten = pager.print(&lesson_writer.end(*verdict)).err();
    }
    let ended = pager.end();
    let verdict = judged.map_err(|failure| {
        if failure.interrupted { Failure::failed("interrupted") } else { failure.into() }
    })?;
    if let Some(failure) = unwritten {
        return Err(failure);
    }
    ended?;
    match verdict {
        Verdict::Arrived | Verdict::Promised => Ok(()),
        Verdict::NotArrived => Err(Failure::failed("the message did not arrive")
            .with_hint("`rocebench doctor` looks for the usual causes")),
        Verdict::NotPromised => Err(Failure::failed("the error is not the expected one")
            .with_hint("without --break the same lesson should succeed: try that first")),
        Verdict::NoError => Err(Failure::failed("the mistake caused no error")),
    }
}

fn lesson(args: &ExplainArgs) -> Result<(Lesson, String), Failure> {
    let mistake = args.mistake.as_deref().and_then(|name| {
        Mistake::ALL.iter().copied().find(|it| it.name() == name || it.other_name() == Some(name))
    });
    let op = match &args.op {
        Some(name) => Op::BASIC.into_iter().find(|op| op.name() == name),
        None => mistake.map(Mistake::usual_op),
    }
    .unwrap_or(Op::Send);
    if let Some(mistake) = mistake.filter(|mistake| !mistake.fits(op)) {
        let fitting: Vec<&str> =
            Op::BASIC.into_iter().filter(|basic| mistake.fits(*basic)).map(Op::name).collect();
        let text = format!("--break {} cannot be shown with --op {}", mistake.name(), op.name());
        let hint = format!("leave --op out, or give --op {}", fitting.join(" or "));
        return Err(Failure::bad_input(text).with_hint(hint));
    }
    if !(1..=MOST_BYTES).contains(&args.text.len()) {
        let text = format!("--text has {} bytes", args.text.len());
        return Err(Failure::bad_input(text).with_hint(format!("give 1 to {MOST_BYTES}")));
    }
    let mut text = args.text.clone();
    if mistake == Some(Mistake::Mtu) {
        let times = BETWEEN_MTUS_BYTES / text.len();
        text = format!("{text} ").repeat(times + 1);
        while text.len() > BETWEEN_MTUS_BYTES {
            text.pop();
        }
    }
    let mtu_bytes = args.mtu.map(settings::Mtu::bytes);
    Ok((Lesson::new(op, mistake, mtu_bytes, &text), text))
}

/// The language that is asked for, else that of the environment, whose variables count in this order (POSIX, 8.2).
fn language(given: Option<String>, variable: impl Fn(&str) -> Option<String>) -> Language {
    let locales = ["LC_ALL", "LC_MESSAGES", "LANG"].map(|name| variable(name).unwrap_or_default());
    let chosen = given.into_iter().chain(locales).find(|locale| !locale.is_empty());
    let locale = chosen.unwrap_or_default();
    let mut languages = Language::ALL.into_iter();
    languages.find(|it| locale.starts_with(it.code())).unwrap_or(Language::En)
}

/// Colours for a person at a terminal who does not refuse them.
fn style() -> Style {
    if screen(&io::stdout()).is_coloured { Style::coloured() } else { Style::plain() }
}

/// Prints the completions of a shell.
///
/// # Errors
/// Stdout cannot be written.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "rocebench", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes the manual's pages to a folder, or prints one.
///
/// # Errors
/// There is no such command; the folder, a file in it or stdout cannot be written.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let mut command = args::command().disable_help_subcommand(true);
    if let Some(folder) = &args.out {
        return write_pages(command, folder).map_err(|error| {
            Failure::failed(format!("writing the manual to {}: {error}", folder.display()))
                .with_hint("name a folder in which you may write")
        });
    }
    // Names the commands as their pages are called.
    command.build();
    let shown = match &args.command {
        Some(name) => command.find_subcommand(name).ok_or_else(|| no_command(name, &command))?,
        None => &command,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(shown.clone()).render(&mut page).map_err(Failure::failed)?;
    print(&String::from_utf8_lossy(&page))
}

fn no_command(name: &str, command: &clap::Command) -> Failure {
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let hint = match nearest(name, &names) {
        Some(meant) => format!("did you mean `rocebench man {meant}`?"),
        None => format!("the commands are {}", listed(&names)),
    };
    Failure::bad_input(format!("`{name}` is no command of rocebench")).with_hint(hint)
}

fn write_pages(command: clap::Command, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command, folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_flags_or_the_environments() {
        let of = |given: Option<&str>, variables: &[(&str, &str)]| {
            language(given.map(str::to_owned), |name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let chinese = ("LANG", "zh_CN.UTF-8");
        assert_eq!(of(None, &[chinese]), Language::Zh);
        assert_eq!(of(Some("en"), &[chinese]), Language::En);
        assert_eq!(of(None, &[chinese, ("LC_ALL", "C.UTF-8")]), Language::En);
        assert_eq!(of(None, &[("LANG", "C"), ("LC_MESSAGES", "zh_TW")]), Language::Zh);
        assert_eq!(of(None, &[chinese, ("LC_ALL", "")]), Language::Zh);
        assert_eq!(of(None, &[("LANG", "de_DE.UTF-8")]), Language::En);
    }
}
