//! A lesson from the end that posts: the session around it, and what it came to.

use std::sync::atomic::AtomicBool;

use machine::host;
use node::lesson::{Begin, Event, LessonClient, Outcome, Step};
use protocol::failure::RunFailure;
use protocol::lesson_message::Lesson;
use protocol::link::Link;

use super::options::Ends;
use super::session::Session;

/// How to give a lesson.
pub struct LessonOptions {
    pub lesson: Lesson,
    pub text: String,
    pub ends: Ends,
}

/// Gives a lesson, and tells it while it happens.
///
/// # Errors
/// Why it could not be given. An error that the lesson is about is in the outcome.
pub fn run_lesson(
    options: &LessonOptions,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<Outcome, RunFailure> {
    let facts = serde_json::to_value(host::read()).unwrap_or_default();
    let (local, session) = Session::begin(&options.ends, &facts, stop)?;
    let Session { link, peer, resources } = session;
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
    let mut client = LessonClient {
        link: &link,
        lesson: &options.lesson,
        stop,
        tell: &mut |topic, parts| tell(Event::Step(Step { topic, parts })),
    };
    let result = client.give(port, &options.text);
    match &result {
        Ok(_) => Link::part([&link], stop),
        Err(failure) => failure.tell(&link),
    }
    result
}
