//! What is wrong with the words of a command line, as clap found it or as a HOST that is none: what was meant, or what to
//! write instead.

use std::{ffi::OsString, net::ToSocketAddrs as _};

use clap::{
    Command,
    error::{ContextKind, ContextValue, Error, ErrorKind},
};

use super::{args, terminal::Failure};
use perftest::{OPTIONS, Program};
use plan::HostPort;
use settings::{is_near, nearest};

/// What other programs call these commands.
const OTHER_NAMES: [(&str, &str); 11] = [
    ("check", "doctor"),
    ("client", "HOST"),
    ("copy", "send"),
    ("daemon", "serve"),
    ("diff", "compare"),
    ("draw", "plot"),
    ("learn", "explain"),
    ("list", "devices"),
    ("listen", "serve"),
    ("run", "[HOST]"),
    ("server", "serve"),
];

/// Checks that HOST is not a mistyped command: its word is near to one, and no host has this name.
pub(super) fn check_host(host: &HostPort) -> Result<(), Failure> {
    let Some(meant) = meant(&host.host).filter(|_| host.port.is_none()) else {
        return Ok(());
    };
    if (host.host.as_str(), args::DEFAULT_PORT).to_socket_addrs().is_ok() {
        return Ok(());
    }
    let unknown = format!("`{host}` is neither a command nor a known host");
    Err(Failure::bad_input(unknown).with_hint(format!("did you mean `rocebench {meant}`?")))
}

/// What the word was meant for: a command, or a program of perftest.
fn meant(word: &str) -> Option<String> {
    if let Some((_, command)) = OTHER_NAMES.iter().find(|(name, _)| *name == word) {
        return Some((*command).to_owned());
    }
    let command = args::command();
    let commands = command.get_subcommands().map(Command::get_name);
    let programs = Program::ALL.iter().map(|program| program.name());
    nearest(word, &commands.chain(programs).collect::<Vec<_>>()).map(str::to_owned)
}

/// What clap found wrong with these words, and what to do about it.
pub(super) fn failure(error: &Error, words: &[OsString]) -> Failure {
    let line = Line::new(words);
    let text = error.to_string();
    let (first, _) = text.split_once("\n\n").unwrap_or((&text, ""));
    let lines = first.lines().map(str::trim).filter(|part| !part.starts_with("[possible"));
    let sentence = lines.collect::<Vec<_>>().join(" ");
    let failure = match line.negative(error) {
        Some(typed) => Failure::bad_input(format!("{typed} is negative, which no option takes")),
        None => Failure::bad_input(sentence.trim_start_matches("error: ").to_owned()),
    };
    failure.with_hint(line.hint(error))
}

/// A command line.
struct Line {
    words: Vec<String>,
    /// The command that is named, else that of a sweep.
    command: Command,
    /// ` serve`, or nothing.
    name: String,
}

impl Line {
    fn new(words: &[OsString]) -> Line {
        let words: Vec<String> =
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let mut whole = args::command();
        // Arguments show themselves only then.
        whole.build();
        let named = words.iter().skip(1).find_map(|word| whole.find_subcommand(word)).cloned();
        let name = named.as_ref().map_or_else(String::new, |it| format!(" {}", it.get_name()));
        Line { words, command: named.unwrap_or(whole), name }
    }

    fn hint(&self, error: &Error) -> String {
        if let Some(meant) = self.meant(error) {
            return format!("did you mean `{meant}`?");
        }
        let help = format!("`rocebench{} --help` lists what it takes", self.name);
        match error.kind() {
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
                match values(error).as_slice() {
                    [] => self.help_of(&text(error, ContextKind::InvalidArg)).unwrap_or(help),
                    [only] => format!("give {only}"),
                    several => format!("give one of {}", several.join(", ")),
                }
            }
            ErrorKind::UnknownArgument => {
                let unknown = text(error, ContextKind::InvalidArg);
                if unknown.strip_prefix("--").is_some_and(is_of_sweep) {
                    return format!("{unknown} belongs to a sweep; {help}");
                }
                let typed = self.negative(error);
                typed.and_then(|typed| self.help_of(typed.split(' ').next()?)).unwrap_or(help)
            }
            ErrorKind::ArgumentConflict => "leave one of them out".to_owned(),
            ErrorKind::MissingRequiredArgument if self.name.is_empty() => {
                "add it, or leave out what needs it".to_owned()
            }
            ErrorKind::MissingRequiredArgument => {
                text(error, ContextKind::Usage).replacen("Usage:", "write", 1)
            }
            _ => help,
        }
    }

    /// What was meant by a word that is not known; `None` where nothing is near.
    fn meant(&self, error: &Error) -> Option<String> {
        for (written, suggested) in [
            (ContextKind::InvalidArg, ContextKind::SuggestedArg),
            (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
            (ContextKind::InvalidValue, ContextKind::SuggestedValue),
        ] {
            let word = text(error, written);
            let tips = match error.get(suggested) {
                Some(ContextValue::String(tip)) => std::slice::from_ref(tip),
                Some(ContextValue::Strings(tips)) => tips,
                _ => &[],
            };
            let mut near =
                tips.iter().filter(|tip| is_near(without_dashes(&word), without_dashes(tip)));
            if let Some(tip) = near.next() {
                return Some(tip.clone());
            }
        }
        if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
            return None;
        }
        if let Some(name) = text(error, ContextKind::InvalidArg).strip_prefix("--") {
            let takes_perftests = matches!(&*self.name, "" | " serve") && !is_of_sweep(name);
            let names: Vec<&str> = OPTIONS.iter().map(|option| option.name).collect();
            let option = nearest(name, &names).filter(|_| takes_perftests)?;
            return Some(format!("--{option}"));
        }
        // A second word: the first may be a mistyped command, which is read as HOST.
        let (first, others) = self.words.get(1..)?.split_first()?;
        let is_first = self.name.is_empty() && !first.starts_with('-');
        let command = meant(first).filter(|_| is_first)?;
        Some([&["rocebench".to_owned(), command], others].concat().join(" "))
    }

    /// `-D -1`: an option and a negative number after it, which clap reads as an option of its own.
    fn negative(&self, error: &Error) -> Option<String> {
        let unknown = text(error, ContextKind::InvalidArg);
        let is_number =
            unknown.strip_prefix('-')?.starts_with(|first: char| first.is_ascii_digit());
        let at = self.words.iter().position(|word| word.starts_with(&unknown))?;
        let before = self.words.get(at.checked_sub(1)?)?;
        is_number.then(|| format!("{before} {}", self.words[at]))
    }

    /// What an option is, by what is shown of it, `--qps <LIST>`, or what is typed, `-q`.
    fn help_of(&self, shown: &str) -> Option<String> {
        let arg = self.command.get_arguments().find(|arg| {
            let short = arg.get_short().map(|letter| format!("-{letter}"));
            let long = arg.get_long().map(|name| format!("--{name}"));
            arg.to_string() == shown || [short, long].iter().flatten().any(|name| name == shown)
        })?;
        let name = shown.trim_start_matches('[').split([' ', '[', ']']).next()?;
        Some(format!("{name}: {}", arg.get_help()?.to_string().replace('\n', " ")))
    }
}

/// Whether a sweep has this option, without its dashes.
fn is_of_sweep(name: &str) -> bool {
    args::command().get_arguments().any(|arg| arg.get_long() == Some(name))
}

/// The values that an option has, where they are few.
fn values(error: &Error) -> Vec<String> {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) => values.clone(),
        _ => Vec::new(),
    }
}

fn text(error: &Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        _ => String::new(),
    }
}

fn without_dashes(word: &str) -> &str {
    word.trim_start_matches('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_other_names_are_known_and_hosts_are_not() {
        for (word, command) in [
            ("sevre", "serve"),
            ("plto", "plot"),
            ("list", "devices"),
            ("completion", "completions"),
            ("ib_writ_bw", "ib_write_bw"),
            ("ib_send_lta", "ib_send_lat"),
        ] {
            assert_eq!(meant(word).as_deref(), Some(command), "{word}");
        }
        for host in ["node07", "localhost", "a", "storage", "192.0.2.1"] {
            assert_eq!(meant(host), None, "{host}");
        }
    }

    #[test]
    fn every_other_name_is_of_a_command() {
        let command = args::command();
        for (name, meant) in OTHER_NAMES {
            let is_command = command.find_subcommand(meant).is_some();
            assert!(is_command || meant.contains("HOST"), "{name}");
            assert!(command.find_subcommand(name).is_none(), "{name}");
        }
    }
}
