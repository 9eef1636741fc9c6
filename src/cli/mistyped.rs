//! Words that stand for HOST and were meant for a command.

use std::net::ToSocketAddrs as _;

use clap::error::{ContextKind, ContextValue};
use settings::{is_near, nearest};

use crate::cli::args;
use crate::cli::terminal::errors::Failure;
use plan::HostPort;

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
pub(super) fn check(host: &HostPort) -> Result<(), Failure> {
    let Some(meant) = meant(&host.host).filter(|_| host.port.is_none()) else {
        return Ok(());
    };
    if (host.host.as_str(), args::DEFAULT_PORT).to_socket_addrs().is_ok() {
        return Ok(());
    }
    let unknown = format!("`{host}` is neither a command nor a known host");
    Err(Failure::bad_input(unknown).with_hint(format!("did you mean `rocebench {meant}`?")))
}

/// What the word was meant for.
fn meant(word: &str) -> Option<String> {
    if let Some((_, command)) = OTHER_NAMES.iter().find(|(name, _)| *name == word) {
        return Some((*command).to_owned());
    }
    let command = args::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    nearest(word, &names).map(str::to_owned)
}

/// Takes suggestions away that have little to do with what was written.
pub(super) fn without_far_tips(error: &mut clap::Error) {
    for (written, suggested) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let (Some(word), Some(tip)) = (error.get(written), error.get(suggested)) else {
            continue;
        };
        let is_far = match (word, tip) {
            (ContextValue::String(word), ContextValue::String(tip)) => {
                !is_near(without_dashes(word), without_dashes(tip))
            }
            (ContextValue::String(word), ContextValue::Strings(tips)) => {
                !tips.iter().any(|tip| is_near(without_dashes(word), without_dashes(tip)))
            }
            _ => false,
        };
        if is_far {
            error.remove(suggested);
        }
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
