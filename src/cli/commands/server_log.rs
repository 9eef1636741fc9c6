//! What a server says: a line for each session, run and refusal, on stderr.

use std::sync::Arc;

use node::server::events::{ServerEvent, ServerLog};

use crate::cli::terminal::errors::say;

/// A log for a person; `quiet` keeps only what went wrong.
pub(in crate::cli) fn server_log(quiet: bool) -> ServerLog {
    Arc::new(move |event| {
        if let Some(line) = line(&event, quiet) {
            say(&line);
        }
    })
}

fn line(event: &ServerEvent<'_>, quiet: bool) -> Option<String> {
    let text = match event {
        ServerEvent::Broken { client, failure } => {
            let hint = match &failure.hint {
                Some(hint) => format!("\n  hint: {hint}"),
                None => String::new(),
            };
            format!("{client}: session ended early: {failure}{hint}")
        }
        ServerEvent::Refused { error } => error.to_string(),
        _ if quiet => return None,
        ServerEvent::Accepted { client } => format!("{client}: session begins"),
        ServerEvent::Run { case, run } => format!("  {case}, run {run}"),
        ServerEvent::Note { text } => format!("rocebench: note: {text}"),
        ServerEvent::Lesson { lesson } => match lesson.mistake {
            None => format!("  a lesson: {}", lesson.op.name()),
            Some(mistake) => {
                format!("  a lesson: {}, with the mistake {}", lesson.op.name(), mistake.name())
            }
        },
        ServerEvent::Perftest { program, case } => format!("  {case}, {program}"),
        ServerEvent::File { name, bytes, seconds, qps: 0 } => {
            format!("  {name:?} again over TCP, {bytes} bytes in {seconds:.2} s, discarded")
        }
        ServerEvent::File { name, bytes, seconds, qps } => {
            format!("  {name:?} received: {bytes} bytes in {seconds:.2} s over {qps} QPs")
        }
        ServerEvent::Finished { client, runs: 0 } => format!("{client}: session ends"),
        ServerEvent::Finished { client, runs } => {
            format!("{client}: session ends, {runs} runs served")
        }
    };
    Some(text)
}
