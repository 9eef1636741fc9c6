//! `rocebench explain`: options become a lesson, and what it tells goes to stdout, through a pager where it is longer than the
//! terminal.

use crate::cli::args::ExplainArgs;
use crate::cli::endpoint::check_one_device;
use crate::cli::ends::ends;
use crate::cli::signals::stop_flag;
use crate::cli::terminal::errors::{Failure, start_logging};
use crate::cli::terminal::screen;
use crate::cli::terminal::stdout::{Pager, terminal_size};
use crate::coordinator::session::{LessonOptions, run_lesson};
use crate::explain::page::PAGE;
use crate::explain::{Language, LessonWriter, Presentation, Style, Verdict};
use protocol::lesson_message::{BETWEEN_MTUS_BYTES, Lesson, MOST_BYTES};
use protocol::mistake::Mistake;
use settings::Op;

/// Fewest columns that text is wrapped to: on a narrower terminal words would stand alone.
const NARROWEST: usize = 40;

/// Gives the lesson.
///
/// # Errors
/// Bad input, a lesson that could not be given, or one that did not go as it should.
pub fn run(args: ExplainArgs) -> Result<(), Failure> {
    let (lesson, text) = lesson(&args)?;
    check_one_device(&args.endpoint, "explain")?;
    let ends = ends(args.host, args.connection, args.endpoint)?;
    start_logging(0, false);
    let options = LessonOptions { text, ends, lesson };
    let stop = stop_flag().map_err(Failure::failed)?;
    let language = match args.lang.as_str() {
        "zh" => Language::Zh,
        _ => Language::En,
    };
    let terminal = terminal_size();
    let columns = terminal.map_or(PAGE, |it| it.columns.clamp(NARROWEST, PAGE));
    let presentation = Presentation { language, style: style(), columns, has_all_steps: args.all };
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
    let mistake = args
        .mistake
        .as_deref()
        .and_then(|name| Mistake::ALL.iter().copied().find(|it| it.name() == name));
    let op = match &args.op {
        Some(name) => Op::BASIC.into_iter().find(|op| op.name() == name),
        None => mistake.map(Mistake::usual_op),
    }
    .unwrap_or(Op::Send);
    if let Some(mistake) = mistake.filter(|mistake| !mistake.fits(op)) {
        let fitting: Vec<&str> =
            Op::BASIC.into_iter().filter(|op| mistake.fits(*op)).map(Op::name).collect();
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

/// Colours for a person at a terminal who does not refuse them.
fn style() -> Style {
    if screen(&std::io::stdout()).is_coloured { Style::coloured() } else { Style::plain() }
}
