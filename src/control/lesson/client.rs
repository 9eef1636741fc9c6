//! The end that posts: it goes through the lesson and tells each step.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::control::coordinator::{SweepError, SweepOptions, Target};
use crate::control::error::LinkError;
use crate::control::failure::RunFailure;
use crate::control::feature::Feature;
use crate::control::link::Link;
use crate::control::message::{Endpoints, Message, printable};
use crate::control::session::{LocalServer, Session, dial};
use crate::control::station::StationOptions;
use crate::control::token::Token;
use crate::plan::{Op, Sweep};
use crate::results::host;
use crate::verbs::{Access, Gid, Port, RemoteQp, WcStatus};

use super::apparatus::{Apparatus, Connection};
use super::step::{Array, Begin, Call, Event, Note, Part, Step, Topic};
use super::{
    End, Lesson, Mishap, Mistake, OtherEnd, SMALL_MTU_BYTES, SeenCompletion, Sight, path_mtu,
    same_kind,
};

/// Longest that the other end may take with its half of a step.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Longest that a completion may take: longer than all retries.
const COMPLETION_LIMIT: Duration = Duration::from_secs(10);
/// How often the CQ is looked at.
const TICK: Duration = Duration::from_micros(50);

/// `wr_id` of the transfer.
const TRANSFER_ID: u64 = 1;

/// How to give a lesson.
pub struct LessonOptions {
    /// What is done.
    pub lesson: Lesson,
    /// The message.
    pub text: String,
    /// The other end.
    pub target: Target,
    /// This end's library and device; in one process also the other's.
    pub station: StationOptions,
    /// The token shared with the server.
    pub token: Option<Token>,
}

/// What a lesson came to.
#[derive(Debug)]
pub struct Outcome {
    /// The error that came.
    pub mishap: Option<Mishap>,
    /// The message is where it should be.
    pub arrived: bool,
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
    let sweep = SweepOptions {
        sweep: Sweep {
            cases: Vec::new(),
            runs: 1,
        },
        target: options.target.clone(),
        station: options.station.clone(),
        token: options.token.clone(),
        command_line: Vec::new(),
        against: None,
    };
    let facts = serde_json::to_value(host::read()).unwrap_or_default();
    let local = match options.target {
        Target::Local => Some(LocalServer::start(&sweep, &facts)?),
        Target::Remote(..) => None,
    };
    let Session {
        link,
        peer,
        station,
    } = dial(&sweep, local.as_ref(), &facts, stop, false)?;
    Feature::Explain
        .demand(peer.address, &peer.features)
        .map_err(SweepError::from)?;
    let port = station.port().clone();
    // The lesson closes the device itself.
    drop(station);
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
    let last_word = match &given {
        Ok(_) => Some(Message::Goodbye),
        Err(failure) if failure.link_lost => None,
        Err(failure) => Some(failure.to_abort()),
    };
    if let Some(last_word) = last_word {
        // A server that refused is gone already.
        let _ = link.send(&last_word);
    }
    Ok(given?)
}

/// Goes through the steps.
struct Teacher<'a> {
    link: &'a Link,
    lesson: &'a Lesson,
    stop: &'a AtomicBool,
    tell: &'a mut dyn FnMut(Topic, Vec<Part>),
}

impl Teacher<'_> {
    fn give(&mut self, port: Port, text: &str) -> Result<Outcome, RunFailure> {
        let lesson = self.lesson;
        self.link
            .send(&Message::Explain(Box::new(lesson.clone())))?;
        let (access, own_text) = match lesson.op {
            Op::Send | Op::Write => (Access::LocalRead, Some(text)),
            Op::Read => (Access::LocalWrite, None),
        };
        let qps = match lesson.mistake {
            Some(Mistake::QpCount) => 2,
            _ => 1,
        };
        let mut apparatus = Apparatus::create(port, lesson, access, own_text, qps, self.tell)?;
        let ours = apparatus.endpoints();
        self.link
            .send(&Message::Endpoints(Box::new(ours.clone())))?;
        let theirs = match self.recv()? {
            Message::Endpoints(theirs) => *theirs,
            other => return Err(self.link.unexpected("endpoints", &other).into()),
        };
        if let Some(mishap) = self.compare(&ours, &theirs)? {
            apparatus.tear_down(self.tell);
            return Ok(Outcome {
                mishap: Some(mishap),
                arrived: false,
            });
        }
        let mishap = self.connect_and_transfer(&mut apparatus, &ours, &theirs)?;
        self.link.send(&Message::ExplainLook)?;
        let sight = match self.recv()? {
            Message::ExplainSeen(sight) => *sight,
            other => return Err(self.link.unexpected("explain_seen", &other).into()),
        };
        let (mishap, address) = mishap;
        let arrived = self.look(&apparatus, &sight, address, text);
        apparatus.tear_down(self.tell);
        Ok(Outcome {
            arrived: arrived && mishap.is_none(),
            mishap,
        })
    }

    /// Shows both arrays and checks the other end's, as every run does.
    fn compare(
        &mut self,
        ours: &Endpoints,
        theirs: &Endpoints,
    ) -> Result<Option<Mishap>, RunFailure> {
        let mut parts = vec![Part::Arrays(Box::new(Array {
            ours: ours.clone(),
            theirs: theirs.clone(),
        }))];
        let expected = u32::try_from(ours.qps.len()).unwrap_or(u32::MAX);
        let needed = match self.lesson.op {
            Op::Send => 0,
            Op::Write | Op::Read => self.lesson.length_bytes.into(),
        };
        let Err(error) = theirs.check(expected, needed) else {
            (self.tell)(Topic::Exchange, parts);
            return Ok(None);
        };
        parts.push(Part::Error(error.to_string()));
        // The other end checks as well, and gives up.
        if let Err(LinkError::Aborted { reason, .. }) = self.link.recv(ANSWER_LIMIT, self.stop) {
            parts.push(Part::Theirs(printable(&reason, 300)));
        }
        (self.tell)(Topic::Exchange, parts);
        match self.lesson.mistake {
            None => Err(error.into()),
            Some(_) => Ok(Some(Mishap::Array(error))),
        }
    }

    /// To RTS and through the transfer; what went wrong, and where the other end's memory is.
    fn connect_and_transfer(
        &mut self,
        apparatus: &mut Apparatus,
        ours: &Endpoints,
        theirs: &Endpoints,
    ) -> Result<(Option<Mishap>, u64), RunFailure> {
        let connection = self.connection(apparatus, ours, theirs)?;
        let connected = apparatus.to_rtr(&connection, self.tell);
        if connected.is_ok() {
            apparatus.to_rts(&connection.reliability, self.tell)?;
        }
        let other = match self.recv()? {
            Message::ExplainReady(other) => *other,
            other => return Err(self.link.unexpected("explain_ready", &other).into()),
        };
        let address = other.address;
        self.show_other(other);
        if let Err(error) = connected {
            return match self.lesson.mistake {
                None => Err(error.into()),
                Some(_) => Ok((Some(Mishap::Call(error)), address)),
            };
        }
        let recorded = apparatus.port.context.record_packets();
        let (rkey, wrong) = match (theirs.qps.first(), self.lesson.mistake) {
            (Some(qp), Some(Mistake::Rkey)) => (qp.rkey ^ 0xff, true),
            (qp, _) => (qp.map_or(0, |qp| qp.rkey), false),
        };
        apparatus.post(self.lesson, TRANSFER_ID, address, (rkey, wrong), self.tell)?;
        let completion = self.await_completion(apparatus)?;
        self.show_packets(apparatus, recorded)?;
        let mishap = match completion {
            None => Some(Mishap::Silence),
            Some(it) if it.status != 0 => Some(Mishap::Completion(WcStatus(it.status))),
            Some(_) => None,
        };
        Ok((mishap, address))
    }

    fn connection(
        &self,
        apparatus: &Apparatus,
        ours: &Endpoints,
        theirs: &Endpoints,
    ) -> Result<Connection, RunFailure> {
        let impossible = |text: &str| RunFailure {
            bad_input: true,
            ..RunFailure::new(text, None)
        };
        same_kind(ours, theirs)?;
        let mtu_bytes = path_mtu(self.lesson, ours, theirs)?;
        let limits = &apparatus.port.limits;
        let reads = limits.max_initiator_reads.min(theirs.max_rd_atomic).max(1);
        let path = apparatus.path(mtu_bytes);
        let mut gid = Gid(theirs.gid_bytes()?);
        let mut notes = [Note::TheirGid, Note::SmallerMtu];
        match self.lesson.mistake {
            Some(Mistake::Gid) if path.gid_index.is_none() => {
                return Err(impossible(
                    "--break gid needs a RoCE port: this one goes by LID",
                ));
            }
            Some(Mistake::Gid) => {
                gid = nobodys(gid);
                notes[0] = Note::WrongGid;
            }
            Some(Mistake::Mtu) if mtu_bytes <= SMALL_MTU_BYTES => {
                return Err(impossible("--break mtu needs a path MTU above 256"));
            }
            Some(Mistake::Mtu) => notes[1] = Note::LargerMtu,
            _ => {}
        }
        let peer = theirs.qps.first();
        Ok(Connection {
            remote: RemoteQp {
                qpn: peer.map_or(0, |qp| qp.qpn),
                psn: peer.map_or(0, |qp| qp.psn),
                lid: theirs.lid,
                gid,
            },
            path,
            reliability: self
                .lesson
                .reliability(reads, limits.max_responder_reads.max(1)),
            notes,
        })
    }

    /// The other end is ready: how it came there, and what it has for the transfer.
    fn show_other(&mut self, other: OtherEnd) {
        let mut parts = vec![Part::States(End::Other, other.states)];
        if self.lesson.mistake == Some(Mistake::NoRecv) {
            parts.push(Part::OnPurpose);
        }
        if let Some(receive) = other.receive {
            let call = Call::new("ibv_post_recv(qp, &wr, &bad_wr)", "0")
                .of(End::Other)
                .given_as("wr_id", receive.wr_id, Note::WrId)
                .given("sg_list[0].addr", format!("{:#x}", receive.address))
                .given("sg_list[0].length", receive.length_bytes)
                .given("sg_list[0].lkey", format!("{:#x}", receive.lkey));
            parts.push(Part::Call(call));
        }
        let held = match self.lesson.op {
            Op::Read => self.lesson.length_bytes as usize,
            Op::Send | Op::Write => 0,
        };
        parts.push(self.memory(End::Other, false, other.address, other.memory, held));
        (self.tell)(Topic::Ready, parts);
    }

    fn await_completion(
        &mut self,
        apparatus: &Apparatus,
    ) -> Result<Option<SeenCompletion>, RunFailure> {
        let started = Instant::now();
        let mut empty_polls = 0;
        let completion = loop {
            if let Some(completion) = apparatus.poll()? {
                break Some(completion);
            }
            empty_polls += 1;
            self.link.check()?;
            if self.stop.load(Ordering::Relaxed) {
                let peer = self.link.peer();
                return Err(LinkError::Interrupted { peer }.into());
            }
            if started.elapsed() > COMPLETION_LIMIT {
                break None;
            }
            std::thread::sleep(TICK);
        };
        let us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let state = apparatus.qp()?.query()?.state;
        let mut parts = match &completion {
            Some(completion) => vec![Part::Call(Call::polled(completion))],
            None => vec![Part::Call(Call::new("ibv_poll_cq(cq, 1, &wc)", "0"))],
        };
        parts.push(Part::Waited { us, empty_polls });
        parts.push(Part::States(End::This, vec![state]));
        match &completion {
            Some(it) if it.status != 0 => {
                let status = WcStatus(it.status);
                parts.push(Part::Error(format!("{status}: {}", status.meaning())));
            }
            None => {
                let seconds = COMPLETION_LIMIT.as_secs();
                parts.push(Part::Error(format!("no completion within {seconds} s")));
            }
            _ => {}
        }
        (self.tell)(Topic::Poll, parts);
        Ok(completion)
    }

    fn show_packets(&mut self, apparatus: &Apparatus, recorded: bool) -> Result<(), RunFailure> {
        let port = &apparatus.port;
        let part = match recorded {
            true => Part::Packets {
                packets: port.context.recorded_packets(),
                qpn: apparatus.qp()?.qpn(),
            },
            false => {
                let index = port.gid.map(|entry| entry.index.into());
                let device =
                    crate::results::device::read(port.context.name(), port.info.port, index);
                Part::Unseen {
                    netdev: device.netdev,
                    software: device.software,
                }
            }
        };
        (self.tell)(Topic::Wire, vec![part]);
        Ok(())
    }

    /// Shows what both ends hold now; whether the message is where it should be.
    fn look(&mut self, apparatus: &Apparatus, sight: &Sight, address: u64, text: &str) -> bool {
        let mut parts = Vec::new();
        if let Some(completion) = &sight.completion {
            parts.push(Part::Call(Call::polled(completion).of(End::Other)));
        }
        let holds = |bytes: &[u8]| bytes.starts_with(text.as_bytes());
        let theirs = self.message_bytes(holds(&sight.memory));
        parts.push(self.memory(End::Other, true, address, sight.memory.clone(), theirs));
        let own = apparatus.bytes();
        let arrived = match self.lesson.op {
            Op::Read => holds(&own),
            Op::Send | Op::Write => holds(&sight.memory),
        };
        if self.lesson.op == Op::Read {
            let ours = self.message_bytes(holds(&own));
            parts.push(self.memory(End::This, true, apparatus.address(), own, ours));
        }
        parts.push(Part::States(End::Other, vec![sight.state]));
        (self.tell)(Topic::Look, parts);
        arrived
    }

    fn message_bytes(&self, there: bool) -> usize {
        match there {
            true => self.lesson.length_bytes as usize,
            false => 0,
        }
    }

    fn memory(
        &self,
        end: End,
        after: bool,
        address: u64,
        mut bytes: Vec<u8>,
        message_bytes: usize,
    ) -> Part {
        // A peer may send more than there is to see.
        bytes.truncate(self.lesson.length_bytes as usize + 16);
        Part::Memory {
            end,
            after,
            address,
            bytes,
            message_bytes,
        }
    }

    fn recv(&self) -> Result<Message, RunFailure> {
        Ok(self.link.recv(ANSWER_LIMIT, self.stop)?)
    }
}

/// A GID of the same kind at which nobody is: of networks that are reserved for documentation, and on loopback, where
/// packets can be seen to go nowhere, of an address that nobody takes.
fn nobodys(gid: Gid) -> Gid {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    Gid::from_address(match gid.address() {
        IpAddr::V4(v4) if v4.is_loopback() => Ipv4Addr::new(127, 255, 113, 77).into(),
        IpAddr::V4(_) => Ipv4Addr::new(203, 0, 113, 77).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0xdead, 0, 0, 0, 0, 0x77).into(),
    })
}
