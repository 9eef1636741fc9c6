//! `rocebench send`: what is asked for, checked before anything is connected, and how it went.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::args::{DEFAULT_PORT, SendArgs};
use crate::cli::commands::send_progress::{FileDocument, Show};
use crate::cli::endpoint::{check_one_device, resources};
use crate::cli::ends::server;
use crate::cli::signals::stop_flag;
use crate::cli::terminal::errors::{Failure, start_logging};
use crate::cli::terminal::stdout::print_json;
use crate::cli::token::token;
use crate::transfer::files::{SourceError, sources};
use crate::transfer::sender::{SendOptions, send_files};
use plan::HostPort;
use protocol::failure::RunFailure;
use protocol::file_message::ChannelSettings;

/// Longer than a benchmark's, whose figures shall show every loss: a transfer is not to end because a host was busy for
/// half a second. That a peer is dead the control connection tells sooner.
const TIMEOUT: u8 = 16;

/// What became of all files, as JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    files: &'a [FileDocument],
    /// Why the rest was not sent.
    failure: Option<String>,
}

/// Sends the files.
///
/// # Errors
/// Bad input, or what ended the transfer.
pub fn run(args: SendArgs) -> Result<(), Failure> {
    start_logging(args.speech.verbose, args.speech.quiet);
    check_one_device(&args.endpoint, "send")?;
    let (paths, host) = split(&args.words)?;
    let Some((host, port)) = server(Some(host), args.connection.port)? else {
        return Err(Failure::bad_input("no HOST"));
    };
    let files = sources(&paths, args.chunk.bytes()).map_err(unreadable)?;
    let resources = resources(args.endpoint)?;
    let usual = settings::Settings::default();
    let options = SendOptions {
        host,
        port,
        token: token(args.connection.token)?,
        resources,
        settings: ChannelSettings {
            qps: args.qps,
            chunk_bytes: args.chunk.bytes(),
            window: args.window,
            mtu_bytes: args.mtu.map(settings::Mtu::bytes),
            timeout: args.timeout.unwrap_or(TIMEOUT),
            retry_cnt: args.retry_cnt.unwrap_or(usual.retry_cnt),
        },
        force: args.force,
        against_tcp: args.against.is_some(),
        files,
    };
    let stop = stop_flag().map_err(Failure::failed)?;
    let mut show = Show::new(&options.files, args.speech.quiet, args.json);
    let sent = send_files(&options, &stop, &mut show);
    let (documents, unwritten) = (std::mem::take(&mut show.documents), show.unwritten.take());
    drop(show);
    if args.json {
        print_json(&Document {
            schema_version: 1,
            files: &documents,
            failure: sent.as_ref().err().map(ToString::to_string),
        })?;
    }
    sent.map_err(|failure| failed(&failure, documents.len(), options.files.len()))?;
    unwritten.map_or(Ok(()), Err)
}

fn failed(failure: &RunFailure, sent: usize, total: usize) -> Failure {
    let left = match total - sent {
        0 => String::new(),
        1 if total == 1 => String::new(),
        left => format!("{left} of {total} files were not sent: "),
    };
    let text = format!("{left}{failure}");
    Failure::new(text, failure.bad_input, failure.hint.clone())
}

fn unreadable(error: SourceError) -> Failure {
    let hint = error.hint();
    Failure::bad_input(error).with_hint(hint)
}

/// Files first, HOST last.
fn split(words: &[OsString]) -> Result<(Vec<PathBuf>, HostPort), Failure> {
    let usage = "rocebench send FILE... HOST";
    let Some((last, files)) = words.split_last() else {
        return Err(Failure::bad_input("nothing to send").with_hint(usage));
    };
    let shown = last.to_string_lossy();
    if Path::new(last).exists() {
        return Err(Failure::bad_input(format!(
            "HOST is missing: the last word, {shown}, is a file"
        ))
        .with_hint(format!(
            "{usage}: HOST comes last; for a host of that name write {shown}:{}",
            DEFAULT_PORT
        )));
    }
    let host: HostPort = OsStr::to_str(last).unwrap_or_default().parse().map_err(|error| {
        Failure::bad_input(format!("HOST, the last word: {error}")).with_hint(usage)
    })?;
    if files.is_empty() {
        return Err(Failure::bad_input(format!("nothing to send: there is no file {shown}"))
            .with_hint(usage));
    }
    Ok((files.iter().map(PathBuf::from).collect(), host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::has;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_last_word_is_the_host() {
        let (files, host) = split(&words(&["a", "b/c", "node1:7"])).unwrap();
        assert_eq!(files, [Path::new("a"), Path::new("b/c")]);
        assert_eq!(host.to_string(), "node1:7");
    }

    #[test]
    fn a_forgotten_host_is_told() {
        let is_file = "the last word, /dev/null, is a file";
        for (given, says) in [
            (&["a", "/dev/null"][..], is_file),
            (&["/dev/null"], is_file),
            (&["node1"], "there is no file node1"),
            (&["a", "./absent"], "HOST, the last word: `./absent`"),
        ] {
            let failure = split(&words(given)).unwrap_err();
            has(failure.text(), [says, "FILE... HOST"]);
        }
    }
}
