//! The two ends of a lesson: the client, at the end that posts, runs its steps; the server creates its objects, reports that
//! it is ready, and afterwards reports what it sees.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datapath::{initiator_access, target_access};
use machine::device;
use protocol::{
    endpoints::Endpoints,
    error::LinkError,
    failure::RunFailure,
    lesson::{Lesson, Mistake, ObservedEnd, OtherEnd, SeenCompletion},
    link::{ANSWER_LIMIT, Link},
    message::{LessonMessage, Message},
};
use results::text::printable;
use verbs::{Access, Driver, Port, WcStatus};

use super::objects::{Connection, LessonObjects, Tell, Transfer};
use super::{Array, End, ObservedError, Outcome, Part, Topic, calls};
use crate::resources::NodeResources;

/// Time limit of a completion: longer than all retries.
const CLIENT_COMPLETION_LIMIT: Duration = Duration::from_secs(10);
/// Interval of polling the CQ.
const CLIENT_TICK: Duration = Duration::from_micros(50);

/// `wr_id` of the WR that the client posts.
const TRANSFER_ID: u64 = 1;
/// The most QP states accepted from a server, which queries four times.
const MOST_STATES: usize = 8;

/// Runs the steps of a lesson.
pub struct LessonClient<'a> {
    pub link: &'a Link,
    pub lesson: &'a Lesson,
    pub stop: &'a AtomicBool,
    pub tell: &'a mut Tell<'a>,
}

impl LessonClient<'_> {
    /// Runs the lesson with `text` as the message.
    pub fn give(&mut self, port: Port, text: &str) -> Result<Outcome, RunFailure> {
        let lesson = self.lesson;
        self.link.send(LessonMessage::Prepare(Box::new(lesson.clone())))?;
        let profile = lesson.op.profile();
        let access = initiator_access(profile);
        let own_text = (!profile.fetches).then_some(text);
        let superfluous = lesson.mistake == Some(Mistake::QpCount);
        let mut objects =
            LessonObjects::create(port, lesson, access, own_text, superfluous, self.tell)?;
        let ours = objects.endpoints();
        self.link.send(LessonMessage::Endpoints(Box::new(ours.clone())))?;
        let theirs = match self.recv()? {
            Message::Lesson(LessonMessage::Endpoints(theirs)) => *theirs,
            other => return Err(self.link.unexpected("lesson_endpoints", &other).into()),
        };
        if let Some(error) = self.compare(&ours, &theirs)? {
            objects.tear_down(self.tell);
            return Ok(Outcome { error: Some(error), arrived: false });
        }
        let connection =
            Connection::sound(&objects, lesson, &ours, &theirs)?.mistaken(lesson.mistake)?;
        let connected = objects.to_rtr(&connection, lesson.mistake, self.tell);
        if connected.is_ok() {
            objects.to_rts(&connection.reliability, self.tell)?;
        }
        let other_end = match self.recv()? {
            Message::Lesson(LessonMessage::Ready(ready)) => *ready,
            other => return Err(self.link.unexpected("lesson_ready", &other).into()),
        };
        let address = other_end.address;
        self.show_other(other_end);
        let error = match (connected, lesson.mistake) {
            (Ok(()), _) => self.transfer(&mut objects, &theirs)?,
            (Err(error), None) => return Err(error.into()),
            (Err(error), Some(_)) => Some(ObservedError::Call(error)),
        };
        self.link.send(LessonMessage::Look)?;
        let observed = match self.recv()? {
            Message::Lesson(LessonMessage::Seen(observed)) => *observed,
            other => return Err(self.link.unexpected("lesson_seen", &other).into()),
        };
        let arrived = self.look(&objects, observed, address, text);
        objects.tear_down(self.tell);
        Ok(Outcome { arrived: arrived && error.is_none(), error })
    }

    /// Shows both arrays and checks the other end's, as every run does.
    fn compare(
        &mut self,
        ours: &Endpoints,
        theirs: &Endpoints,
    ) -> Result<Option<ObservedError>, RunFailure> {
        let mut parts =
            vec![Part::Arrays(Box::new(Array { ours: ours.clone(), theirs: theirs.clone() }))];
        let expected = u32::try_from(ours.qps.len()).unwrap_or(u32::MAX);
        let needed =
            if self.lesson.op.profile().receives { 0 } else { self.lesson.length_bytes.into() };
        let Err(error) = theirs.check(expected, needed) else {
            (self.tell)(Topic::Exchange, parts);
            return Ok(None);
        };
        if self.lesson.mistake.is_none() {
            return Err(error.into());
        }
        parts.push(Part::Error(error.to_string()));
        // The other end checks as well, and aborts.
        if let Err(LinkError::Aborted { why, .. }) = self.link.recv(ANSWER_LIMIT, self.stop) {
            parts.push(Part::Theirs(printable(&why.reason, 300)));
        }
        (self.tell)(Topic::Exchange, parts);
        Ok(Some(ObservedError::Array(error)))
    }

    /// Shows how the other end became ready, and its memory for the transfer.
    fn show_other(&mut self, mut other: OtherEnd) {
        other.states.truncate(MOST_STATES);
        let mut parts = vec![
            Part::Call(calls::registered(&other)),
            Part::States(End::Other, std::mem::take(&mut other.states)),
        ];
        if self.lesson.mistake == Some(Mistake::NoRecv) {
            parts.push(Part::OnPurpose);
        }
        if let Some(receive) = &other.receive {
            parts.push(Part::Call(calls::post_receive(receive)));
        }
        let held =
            if self.lesson.op.profile().fetches { self.lesson.length_bytes as usize } else { 0 };
        parts.push(self.memory(End::Other, false, other.address, other.memory, held));
        (self.tell)(Topic::Ready, parts);
    }

    /// Posts, waits for the completion and shows the packets; returns the error, if any.
    fn transfer(
        &mut self,
        objects: &mut LessonObjects,
        theirs: &Endpoints,
    ) -> Result<Option<ObservedError>, RunFailure> {
        let wrong_rkey = self.lesson.mistake == Some(Mistake::Rkey);
        let (address, rkey) = theirs.qps.first().map_or((0, 0), |qp| (qp.address, qp.rkey));
        let transfer = Transfer {
            op: self.lesson.op,
            wr_id: TRANSFER_ID,
            length_bytes: self.lesson.length_bytes,
            address,
            rkey: if wrong_rkey { rkey ^ 0xff } else { rkey },
            wrong_rkey,
        };
        let mut parts = Vec::new();
        if wrong_rkey {
            parts.push(Part::OnPurpose);
        }
        parts.push(Part::Call(calls::post_send(&transfer, &objects.memory)));
        let recorded = objects.port.context.record_packets();
        let started = Instant::now();
        objects.post(&transfer)?;
        let waited = self.await_completion(objects, started);
        (self.tell)(Topic::Post, parts);
        let (completion, waited) = waited?;
        self.show_completion(objects, completion.as_ref(), waited)?;
        self.show_packets(objects, recorded);
        Ok(match completion {
            None => Some(ObservedError::NoCompletion),
            Some(it) if it.status != 0 => Some(ObservedError::Completion(WcStatus(it.status))),
            Some(_) => None,
        })
    }

    /// The completion, and the time that it took.
    fn await_completion(
        &self,
        objects: &LessonObjects,
        started: Instant,
    ) -> Result<(Option<SeenCompletion>, Part), RunFailure> {
        let mut empty_polls = 0;
        let completion = loop {
            if let Some(completion) = objects.poll()? {
                break Some(completion);
            }
            empty_polls += 1;
            self.link.check()?;
            if self.stop.load(Ordering::Relaxed) {
                let peer = self.link.peer();
                return Err(LinkError::Interrupted { peer }.into());
            }
            if started.elapsed() > CLIENT_COMPLETION_LIMIT {
                break None;
            }
            std::thread::sleep(CLIENT_TICK);
        };
        let ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok((completion, Part::Waited { ns, empty_polls }))
    }

    fn show_completion(
        &mut self,
        objects: &LessonObjects,
        completion: Option<&SeenCompletion>,
        waited: Part,
    ) -> Result<(), RunFailure> {
        let state = objects.qp.query()?.state;
        let mut parts =
            vec![Part::Call(calls::poll(completion)), waited, Part::States(End::This, vec![state])];
        match completion {
            Some(it) if it.status != 0 => {
                parts.push(Part::Failed(WcStatus(it.status)));
            }
            None => {
                parts.push(Part::Silence(CLIENT_COMPLETION_LIMIT.as_secs()));
            }
            _ => {}
        }
        (self.tell)(Topic::Poll, parts);
        Ok(())
    }

    fn show_packets(&mut self, objects: &LessonObjects, recorded: bool) {
        let port = &objects.port;
        let part = if recorded {
            Part::Packets { packets: port.context.recorded_packets(), qpn: objects.qp.qpn() }
        } else {
            let gid_index = port.gid.map(|entry| entry.index.into());
            let (root, name) = (port.context.root(), port.context.name());
            let facts = device::read(root, name, port.info.port, gid_index);
            Part::Unseen {
                netdev: facts.netdev,
                software: port.context.driver().is_some_and(Driver::is_software),
            }
        };
        (self.tell)(Topic::Wire, vec![part]);
    }

    /// Shows the memory of both ends; returns whether the message arrived.
    fn look(
        &mut self,
        objects: &LessonObjects,
        observed: ObservedEnd,
        address: u64,
        text: &str,
    ) -> bool {
        let mut parts = Vec::new();
        if let Some(completion) = &observed.completion {
            parts.push(Part::Call(calls::poll(Some(completion)).at(End::Other)));
        }
        let own = objects.bytes();
        let theirs_holds = observed.memory.starts_with(text.as_bytes());
        let own_holds = own.starts_with(text.as_bytes());
        let theirs = if theirs_holds { text.len() } else { 0 };
        parts.push(self.memory(End::Other, true, address, observed.memory, theirs));
        if self.lesson.op.profile().fetches {
            let own_address = objects.memory.address();
            let shown = if own_holds { text.len() } else { 0 };
            parts.push(self.memory(End::This, true, own_address, own, shown));
        }
        parts.push(Part::States(End::Other, vec![observed.state]));
        (self.tell)(Topic::Look, parts);
        if self.lesson.op.profile().fetches { own_holds } else { theirs_holds }
    }

    fn memory(
        &self,
        end: End,
        after: bool,
        address: u64,
        mut bytes: Vec<u8>,
        message_bytes: usize,
    ) -> Part {
        // A peer may send more than should be shown.
        bytes.truncate(self.lesson.length_bytes as usize + 16);
        Part::Memory { end, after, address, bytes, message_bytes }
    }

    fn recv(&self) -> Result<Message, RunFailure> {
        Ok(self.link.recv(ANSWER_LIMIT, self.stop)?)
    }
}

/// Time limit for the client's part: a client that makes mistakes waits for errors.
const CLIENT_LIMIT: Duration = Duration::from_secs(60);
/// How long after the sender's completion the receive's may come.
const SERVER_COMPLETION_LIMIT: Duration = Duration::from_secs(2);
/// Interval of polling the CQ.
const SERVER_TICK: Duration = Duration::from_micros(200);

/// `wr_id` of the receive that the server posts.
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
    let observed = observe(&objects, link, lesson)?;
    link.send(LessonMessage::Seen(Box::new(observed)))?;
    Ok(())
}

/// This end's state after the transfer. Waits for the completion of a receive in a lesson without a mistake.
fn observe(
    objects: &LessonObjects,
    link: &Link,
    lesson: &Lesson,
) -> Result<ObservedEnd, RunFailure> {
    let started = Instant::now();
    let waits = lesson.posts_receive() && lesson.mistake.is_none();
    let mut completion = objects.poll()?;
    while waits && completion.is_none() && started.elapsed() < SERVER_COMPLETION_LIMIT {
        std::thread::sleep(SERVER_TICK);
        link.check()?;
        completion = objects.poll()?;
    }
    Ok(ObservedEnd { state: objects.qp.query()?.state, memory: objects.bytes(), completion })
}
