//! A lesson from the end that posts: the session around it, and what it came to.

use std::sync::atomic::AtomicBool;

use crate::lesson::{Begin, Event, Outcome, Step, Teacher};
use crate::machine::host;
use crate::protocol::failure::RunFailure;
use crate::protocol::lesson_message::Lesson;
use crate::protocol::message::Message;

use super::error::SweepError;
use super::options::{Ends, Target};
use super::session::{LocalServer, Session, dial};

/// How to give a lesson.
pub struct LessonOptions {
    /// What is done.
    pub lesson: Lesson,
    /// The message.
    pub text: String,
    /// Between whom.
    pub ends: Ends,
}

/// A lesson that could not be given.
#[derive(Debug, thiserror::Error)]
pub enum LessonError {
    /// The ends did not meet.
    #[error(transparent)]
    Session(#[from] SweepError),
    /// It ended early.
    #[error(transparent)]
    Failed(#[from] RunFailure),
}

impl LessonError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            LessonError::Session(error) => error.hint(),
            LessonError::Failed(failure) => failure.hint.clone(),
        }
    }

    /// Whether the request is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            LessonError::Session(error) => error.is_bad_input(),
            LessonError::Failed(failure) => failure.bad_input,
        }
    }

    /// Whether the user stopped it.
    pub fn is_interrupt(&self) -> bool {
        match self {
            LessonError::Session(error) => error.is_interrupt(),
            LessonError::Failed(failure) => failure.interrupted,
        }
    }
}

/// Gives a lesson, and tells it while it happens.
///
/// # Errors
/// Why it could not be given. An error that the lesson is about is in the outcome.
pub fn run_lesson(
    options: &LessonOptions,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<Outcome, LessonError> {
    let facts = serde_json::to_value(host::read()).unwrap_or_default();
    let local = match options.ends.target {
        Target::Local => Some(LocalServer::start(&options.ends, &facts)?),
        Target::Remote(..) => None,
    };
    let Session {
        link,
        peer,
        resources,
    } = dial(&options.ends, local.as_ref(), &facts, stop, false)?;
    let port = resources.port().clone();
    // The lesson closes the device itself.
    drop(resources);
    tell(Event::Begin(Box::new(Begin {
        op: options.lesson.op,
        mistake: options.lesson.mistake,
        length_bytes: options.lesson.length_bytes,
        device: port.context.name().to_owned(),
        port: port.info.port,
        embedded: port.embedded.is_some(),
        server: local.is_none().then(|| peer.address.to_string()),
    })));
    let mut tell_step = |topic, parts| tell(Event::Step(Step { topic, parts }));
    let mut teacher = Teacher {
        link: &link,
        lesson: &options.lesson,
        stop,
        tell: &mut tell_step,
    };
    let given = teacher.give(port, &options.text);
    match &given {
        // The server ends the session by itself if this does not arrive.
        Ok(_) => drop(link.send(&Message::Goodbye)),
        Err(failure) => failure.tell(&link),
    }
    Ok(given?)
}
