//! perftest's command lines, as people have them in their fingers and scripts, in rocebench's words before clap reads them:
//! `rocebench ib_send_bw …`, a link of such a name to the program, and single options.
//!
//! Options are told from values as getopt and clap do: a letter may stand with others (`-FN`) and with its value
//! (`-u14`), a name with its value (`--tclass=8`) or before it, and the word after an option that needs a value is its
//! value, whatever it looks like. What is rocebench's own stays as it was typed.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command};

use crate::cli::terminal::{Failure, say};
use perftest::{Here, Output, PerftestOption, Program, RateLimit};
use report::show::perftest::{Figure, Form, JSON_FILE};

/// Options that ask for words and not for a run.
const ASK: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// The size of messages of perftest's latency programs.
const LATENCY_SIZE: &str = "2";

/// A command line in rocebench's own words, which it shows where a program of perftest was named.
pub(super) fn translate(
    typed: impl IntoIterator<Item = OsString>,
    command: &Command,
) -> Result<OwnWords, Failure> {
    let words: Vec<OsString> = typed.into_iter().collect();
    let Some((program, rest)) = named(&words) else {
        return translate_options(words, command);
    };
    let own = program_in_own_words(program, rest, command)?;
    if !asks(&own, &ASK) {
        let line: Vec<_> = own.words.iter().map(|it| it.to_string_lossy()).collect();
        say(&format!("{} here: {}", program.name(), line.join(" ")));
    }
    Ok(own)
}

/// The program that is named, and the words after its name.
fn named(words: &[OsString]) -> Option<(Program, &[OsString])> {
    if let Some(program) =
        words.first().and_then(|word| Program::named(Path::new(word).file_name()?.to_str()?))
    {
        return Some((program, &words[1..]));
    }
    let program = words.get(1)?.to_str().and_then(Program::named)?;
    Some((program, &words[2..]))
}

/// Messages of each QP by default, and as many of `ib_write_bw`.
const ITERATIONS: [u32; 2] = [1_000, 5_000];

/// The warm-up of perftest's programs: they have none, and those who start them wait little longer than they measure.
const WARM_UP: &str = "--warmup=auto:1s";

/// A client where a host is named, else a server for one client.
fn program_in_own_words(
    program: Program,
    rest: &[OsString],
    command: &Command,
) -> Result<OwnWords, Failure> {
    let mut own = translated(&["rocebench"], rest, command, Form::default())?;
    if let Some(figure) = own.form.as_ref().and_then(|form| form.only)
        && (figure == Figure::Latency) != program.is_latency()
    {
        return Err(refusal("--output", FIGURES));
    }
    if own.plain == 0 && !asks(&own, &ASK) {
        let form = Form { is_server: true, ..Form::default() };
        return translated(&["rocebench", "serve", "--once"], rest, command, form);
    }
    let mut first = Vec::new();
    if !asks(&own, &["--op"]) {
        first.push(format!("--op={}", program.op()));
    }
    if program.is_latency() {
        first.push("--ping-pong".to_owned());
        if !asks(&own, &["-s", "--size"]) {
            first.push(format!("--size={LATENCY_SIZE}"));
        }
    }
    let is_endless = own.form.as_ref().is_some_and(|form| form.is_endless);
    if is_endless && (program.is_latency() || asks(&own, &["-n", "--iters"])) {
        return Err(refusal("--run_infinitely", "give it to a program of bandwidth, with -D"));
    }
    if !is_endless && !asks(&own, &["-n", "--iters", "-D", "--duration"]) {
        let iterations = ITERATIONS[usize::from(program == Program::IbWriteBw)];
        first.push(format!("--iters={iterations}"));
    }
    if !asks(&own, &["--warmup"]) {
        first.push(WARM_UP.to_owned());
    }
    own.words.splice(1..1, first.into_iter().map(OsString::from));
    Ok(own)
}

/// In the words of one command, with the output of the program.
fn translated(
    first: &[&str],
    rest: &[OsString],
    command: &Command,
    form: Form,
) -> Result<OwnWords, Failure> {
    let words = first.iter().map(OsString::from).chain(rest.iter().cloned());
    translate_words(words, command, OwnWords { form: Some(form), ..OwnWords::default() })
}

/// Whether one of these options is given.
fn asks(own: &OwnWords, flags: &[&str]) -> bool {
    own.words.iter().map(|word| word.to_string_lossy()).any(|word| {
        flags.iter().any(|flag| {
            if flag.starts_with("--") {
                word.split('=').next() == Some(flag)
            } else {
                word.starts_with(flag)
            }
        })
    })
}

/// What `--output` takes, by program.
const FIGURES: &str =
    "give bandwidth or message_rate to a program of bandwidth, and latency to one of latency";

/// Any address of IPv6; an address that is named chooses the family too.
const ANY_IPV6: &str = "--bind=::";

/// The command that takes perftest's options of a server.
const SERVER: &str = "serve";

/// A command line in rocebench's own words.
#[derive(Debug, Default, PartialEq)]
pub(super) struct OwnWords {
    /// All words, the program's name first.
    pub(super) words: Vec<OsString>,
    /// perftest's options of a server, as they were typed, that the client decides here.
    pub(super) left_out: Vec<String>,
    /// Words that are neither options nor their values.
    pub(super) plain: usize,
    /// perftest's options that change nothing here, with the reason.
    pub(super) without_effect: Vec<String>,
    /// The output of the program of perftest that is named.
    pub(super) form: Option<Form>,
}

/// Translates perftest's options of a sweep, and of `rocebench serve`; other commands have none.
pub(super) fn translate_options(
    words: impl IntoIterator<Item = OsString>,
    command: &Command,
) -> Result<OwnWords, Failure> {
    translate_words(words, command, OwnWords::default())
}

fn translate_words(
    words: impl IntoIterator<Item = OsString>,
    command: &Command,
    own: OwnWords,
) -> Result<OwnWords, Failure> {
    let mut translation =
        Translation { given: words.into_iter(), command, own, rate: AskedRate::default() };
    // The program's name.
    translation.keep_next();
    while let Some(word) = translation.given.next() {
        match word.to_str() {
            Some(text) if text != "--" && text.starts_with("--") => translation.name(text)?,
            Some(text) if text.len() > 1 && text != "--" && text.starts_with('-') => {
                translation.letters(&text[1..])?;
            }
            text => {
                let found = text.and_then(|text| command.find_subcommand(text));
                let is_end = text == Some("--") || found.is_some_and(|it| it.get_name() != SERVER);
                translation.command = found.unwrap_or(translation.command);
                translation.own.plain += 1;
                translation.keep(word);
                if is_end {
                    break;
                }
            }
        }
    }
    let mut others = translation.own.words.iter().filter(|word| *word != ANY_IPV6);
    if others.any(|word| word.to_string_lossy().starts_with("--bind")) {
        translation.own.words.retain(|word| word != ANY_IPV6);
    }
    let end = translation.own.words.len();
    for (flag, text) in translation.rate.words()? {
        translation.flag("--rate_limit", flag, Some(text.as_ref()));
    }
    // Before the word that ends the options, if there is one.
    let further = translation.own.words.split_off(end);
    translation.own.words.splice(1..1, further);
    translation.own.words.extend(translation.given);
    Ok(translation.own)
}

struct Translation<'c, W> {
    given: W,
    /// Whose options they are: those of a sweep, or of the server.
    command: &'c Command,
    own: OwnWords,
    rate: AskedRate,
}

/// perftest's limit of the rate, as its options are given.
#[derive(Debug, Default)]
struct AskedRate {
    limit: Option<f64>,
    units: OsString,
    kind: OsString,
}

impl AskedRate {
    /// The load in rocebench's words; none without a limit.
    fn words(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let Some(limit) = self.limit else {
            return Ok(Vec::new());
        };
        let rate = match &*self.units.to_string_lossy() {
            "" | "g" => format!("{:.0}b", limit * 1e9),
            "M" => format!("{:.0}b", limit * f64::from(1 << 20) * 8.0),
            "p" => format!("{limit:.0}"),
            other => return Err(refusal(&format!("--rate_units {other}"), "give g, M or p")),
        };
        let keeper = match &*self.kind.to_string_lossy() {
            "HW" => ("pace", "device".to_owned()),
            "" | "SW" => ("arrivals", "fixed".to_owned()),
            other => return Err(refusal(&format!("--rate_limit_type {other}"), "give HW or SW")),
        };
        Ok(vec![("rate", rate), keeper])
    }
}

impl<'c, W: Iterator<Item = OsString>> Translation<'c, W> {
    fn keep(&mut self, word: impl Into<OsString>) {
        self.own.words.push(word.into());
    }

    fn keep_next(&mut self) {
        self.own.words.extend(self.given.next());
    }

    fn find(&self, is_meant: impl Fn(&Arg) -> bool) -> Option<&'c Arg> {
        self.command.get_arguments().find(|arg| is_meant(arg))
    }

    /// A word that begins with two dashes.
    fn name(&mut self, word: &str) -> Result<(), Failure> {
        let (dashed, attached) = match word.split_once('=') {
            Some((dashed, value)) => (dashed, Some(value)),
            None => (word, None),
        };
        let name = &dashed[2..];
        if let Some(own) = self.find(|arg| arg.get_long() == Some(name)) {
            self.keep(word);
            if attached.is_none() && needs_value(own) {
                self.keep_next();
            }
            return Ok(());
        }
        let is_abbreviated = self.own.form.is_some();
        let Some(option) = PerftestOption::of_name(name)
            .or_else(|| PerftestOption::beginning(name).filter(|_| is_abbreviated))
        else {
            self.keep(word);
            return Ok(());
        };
        let value = match (option.value, attached) {
            (None, Some(_)) => {
                let error = format!("perftest's {dashed} takes no value");
                return Err(Failure::bad_input(error).with_hint(format!("write {dashed} alone")));
            }
            (None, None) => None,
            (Some(_), Some(value)) => Some(value.into()),
            (Some(_), None) => self.given.next(),
        };
        self.option(option.here, dashed, value)
    }

    /// The letters of a word that begins with one dash; from the first that takes a value on they are the value.
    fn letters(&mut self, word: &str) -> Result<(), Failure> {
        let mut letters = word.chars();
        while let Some(letter) = letters.next() {
            let (rest, dashed) = (letters.as_str(), format!("-{letter}"));
            let own = self.find(|arg| arg.get_short() == Some(letter));
            match (own, PerftestOption::of_letter(letter)) {
                (Some(own), _) if !needs_value(own) && !rest.starts_with('=') => self.keep(dashed),
                (Some(own), _) => {
                    self.keep(dashed + rest);
                    if rest.is_empty() && needs_value(own) {
                        self.keep_next();
                    }
                    return Ok(());
                }
                (None, Some(option)) if option.value.is_some() => {
                    let value = match rest {
                        "" => self.given.next(),
                        // As clap reads `-q=4`.
                        _ => Some(rest.strip_prefix('=').unwrap_or(rest).into()),
                    };
                    return self.option(option.here, &dashed, value);
                }
                (None, Some(option)) => self.option(option.here, &dashed, None)?,
                (None, None) => {
                    self.keep(dashed + rest);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// An option of perftest that is none of the command's own, typed as `dashed`.
    fn option(&mut self, here: Here, dashed: &str, value: Option<OsString>) -> Result<(), Failure> {
        match here {
            Here::Printed(printed, otherwise) => {
                let Some(form) = &mut self.own.form else {
                    return self.option(*otherwise, dashed, value);
                };
                let typed = value.clone().unwrap_or_default();
                match printed {
                    Output::Gbits => form.in_gbits = true,
                    Output::WithoutPeak => form.without_peak = true,
                    Output::Cpu => form.with_cpu = true,
                    Output::Endless => form.is_endless = true,
                    Output::Json => {
                        form.json.get_or_insert_with(|| JSON_FILE.into());
                    }
                    Output::JsonFile => form.json = Some(typed.into()),
                    Output::Only => form.only = Some(figure(dashed, &typed)?),
                    Output::LeastBandwidth => form.least_bandwidth = Some(number(dashed, &typed)?),
                    Output::LeastMessageRate => {
                        form.least_mmsg_per_s = Some(number(dashed, &typed)?);
                    }
                }
            }
            Here::Unchanged => self.keep(dashed),
            Here::Flag(flag) => self.flag(dashed, flag, value.as_deref()),
            Here::Setting(flag, text) => self.flag(dashed, flag, Some(text.as_ref())),
            Here::Prefixed(flag, prefix) => {
                let mut text = OsString::from(prefix);
                text.push(value.unwrap_or_default());
                self.flag(dashed, flag, Some(&text));
            }
            Here::OneOf(meanings, otherwise) => {
                let Some((_, meaning)) =
                    meanings.iter().find(|(text, _)| value.as_deref() == Some(text.as_ref()))
                else {
                    let typed = format!("{dashed} {}", value.unwrap_or_default().to_string_lossy());
                    return Err(refusal(typed.trim_end(), otherwise));
                };
                if let Some((flag, text)) = meaning {
                    self.flag(dashed, flag, Some(text.as_ref()));
                }
            }
            Here::Rate(part) => {
                let typed = value.unwrap_or_default();
                match part {
                    RateLimit::Value => self.rate.limit = Some(number(dashed, &typed)?),
                    RateLimit::Units => self.rate.units = typed,
                    RateLimit::Kind => self.rate.kind = typed,
                }
            }
            Here::Ipv6 if self.own.words.contains(&ANY_IPV6.into()) => {}
            Here::Ipv6 => self.keep(ANY_IPV6),
            Here::Already(why) => self.own.without_effect.push(format!("{dashed}: {why}")),
            Here::Not(sentence) => return Err(refusal(dashed, sentence)),
        }
        Ok(())
    }

    /// A flag of the command; what the server has none for is its client's to decide.
    fn flag(&mut self, dashed: &str, flag: &str, value: Option<&OsStr>) {
        let is_own = self.find(|arg| arg.get_long() == Some(flag)).is_some();
        if !is_own && self.command.get_name() == SERVER {
            self.own.left_out.push(dashed.to_owned());
            return;
        }
        let mut word = OsString::from(format!("--{flag}"));
        if let Some(value) = value {
            word.push("=");
            word.push(value);
        }
        self.keep(word);
    }
}

/// Whether the value of an option of clap's is the next word, if none is attached.
fn needs_value(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

fn number(dashed: &str, typed: &OsStr) -> Result<f64, Failure> {
    let text = typed.to_string_lossy();
    let value: Option<f64> = text.parse().ok().filter(|it| (0.0..1e15).contains(it));
    value.ok_or_else(|| refusal(format!("{dashed} {text}").trim_end(), "give a number"))
}

fn figure(dashed: &str, typed: &OsStr) -> Result<Figure, Failure> {
    match typed.to_str() {
        Some("bandwidth") => Ok(Figure::Bandwidth),
        Some("message_rate") => Ok(Figure::MessageRate),
        Some("latency") => Ok(Figure::Latency),
        _ => {
            let text = format!("{dashed} {}", typed.to_string_lossy());
            Err(refusal(text.trim_end(), FIGURES))
        }
    }
}

fn refusal(typed: &str, sentence: &str) -> Failure {
    Failure::bad_input(format!("perftest's {typed} is refused")).with_hint(sentence)
}

#[cfg(test)]
#[path = "perftest_words_tests.rs"]
mod tests;
