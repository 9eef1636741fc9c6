//! The other end of a lesson: creates its objects, reports that it is ready, and afterwards reports what it sees.

use datapath::target_access;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::resources::NodeResources;
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{LessonMessage, Message};
use verbs::Access;

use super::objects::LessonObjects;
use super::step::{Part, Topic};
use super::transfer::Connection;
use protocol::lesson_message::{Lesson, ObservedEnd, OtherEnd};

/// Time limit for the client's part: a client that makes mistakes waits for errors.
const CLIENT_LIMIT: Duration = Duration::from_secs(60);
/// How long after the sender's completion the receive's may come.
const COMPLETION_LIMIT: Duration = Duration::from_secs(2);
/// Interval of polling the CQ.
const TICK: Duration = Duration::from_micros(200);

/// `wr_id` of the receive.
const RECEIVE_ID: u64 = 2;

/// Serves one lesson.
///
/// # Errors
/// Why it ended early. The caller reports it to the client, unless the link is lost.
pub(crate) fn serve_lesson(
    link: &Link,
    resources: &NodeResources,
    lesson: &Lesson,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    lesson.check().map_err(|reason| RunFailure {
        bad_input: true,
        ..RunFailure::new(format!("the server refuses the lesson: {reason}"), None)
    })?;
    let profile = lesson.op.profile();
    let access = if profile.receives { Access::LocalWrite } else { target_access(profile) };
    let mut states = Vec::new();
    let mut note_states = |_: Topic, parts: Vec<Part>| {
        for part in parts {
            if let Part::States(_, more) = part {
                states.extend(more);
            }
        }
    };
    let port = resources.port().clone();
    let offered = lesson.offered.as_deref();
    let mut objects =
        LessonObjects::create(port, lesson, access, offered, false, &mut note_states)?;
    let ours = objects.endpoints();
    let theirs = match link.recv(CLIENT_LIMIT, stop)? {
        Message::Lesson(LessonMessage::Endpoints(theirs)) => theirs,
        other => return Err(link.unexpected("lesson_endpoints", &other).into()),
    };
    link.send(LessonMessage::Endpoints(Box::new(ours.clone())))?;
    theirs.check(1, 0)?;
    let connection = Connection::sound(&objects, lesson, &ours, &theirs)?.at_server(lesson.mistake);
    objects.to_rtr(&connection, lesson.mistake, &mut note_states)?;
    let receive = if lesson.posts_receive() {
        Some(objects.post_receive(lesson.length_bytes, RECEIVE_ID)?)
    } else {
        None
    };
    objects.to_rts(&connection.reliability, &mut note_states)?;
    let ready = OtherEnd {
        states,
        path_mtu_bytes: objects.qp.query()?.path_mtu_bytes,
        receive,
        access: access.c_flags().to_owned(),
        address: objects.memory.address(),
        memory: objects.bytes(),
    };
    link.send(LessonMessage::Ready(Box::new(ready)))?;
    match link.recv(CLIENT_LIMIT, stop)? {
        Message::Lesson(LessonMessage::Look) => {}
        other => return Err(link.unexpected("lesson_look", &other).into()),
    }
    let observed = look(&objects, link, lesson)?;
    link.send(LessonMessage::Seen(Box::new(observed)))?;
    Ok(())
}

/// This end's state after the transfer. Waits for the completion of a receive in a lesson without a mistake.
fn look(objects: &LessonObjects, link: &Link, lesson: &Lesson) -> Result<ObservedEnd, RunFailure> {
    let started = Instant::now();
    let waits = lesson.posts_receive() && lesson.mistake.is_none();
    let mut completion = objects.poll()?;
    while waits && completion.is_none() && started.elapsed() < COMPLETION_LIMIT {
        std::thread::sleep(TICK);
        link.check()?;
        completion = objects.poll()?;
    }
    Ok(ObservedEnd { state: objects.qp.query()?.state, memory: objects.bytes(), completion })
}
