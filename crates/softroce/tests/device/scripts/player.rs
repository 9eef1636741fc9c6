//! Plays a case of a script: does what its lines say and compares what happens with what they expect.

use std::collections::VecDeque;
use std::sync::Arc;

use softroce::net::Faults;
use softroce::transport::{Attached, Completion, CompletionKind, Cq, QpEvent, Status, World};

use super::device::{Device, equal, same_bytes};
use super::language::{Case, Failure, Fields, Line, bytes, number};
use super::packet::{ECN, apart, built, name};
use crate::support::peer::{PORT, Peer, QPN, forge};

const STATUSES: [(Status, &str); 9] = [
    (Status::Success, "SUCCESS"),
    (Status::LocalProtectionError, "LOC_PROT_ERR"),
    (Status::FlushError, "WR_FLUSH_ERR"),
    (Status::LocalAccessError, "LOC_ACCESS_ERR"),
    (Status::RemoteInvalidRequestError, "REM_INV_REQ_ERR"),
    (Status::RemoteAccessError, "REM_ACCESS_ERR"),
    (Status::RemoteOperationError, "REM_OP_ERR"),
    (Status::RetryExceededError, "RETRY_EXC_ERR"),
    (Status::RnrRetryExceededError, "RNR_RETRY_EXC_ERR"),
];
const EVENTS: [(QpEvent, &str); 4] = [
    (QpEvent::RequestError, "QP_REQ_ERR"),
    (QpEvent::AccessError, "QP_ACCESS_ERR"),
    (QpEvent::LastWqeReached, "QP_LAST_WQE_REACHED"),
    (QpEvent::Fatal, "QP_FATAL"),
];

/// How long after the last line nothing may happen.
const MOST_NS: u64 = 2_000_000_000;

/// What a device has done, as a line expects it.
struct Seen {
    at_ns: u64,
    device: usize,
    verb: &'static str,
    words: String,
    fields: Fields,
    payload: Vec<u8>,
}

struct Player {
    world: Arc<World>,
    start_ns: u64,
    /// The time of the line before.
    line_ns: u64,
    devices: Vec<Device>,
    /// Instead of a second device.
    peer: Option<Peer>,
    seen: VecDeque<Seen>,
}

/// Plays it to its end.
pub fn play(case: &Case) -> Result<(), Failure> {
    let is_set_up = |line: &&Line| ["network", "device"].contains(&&*line.verb);
    let set_up = case.lines.iter().take_while(is_set_up).count();
    let (set_up, lines) = case.lines.split_at(set_up);
    let mut player =
        Player::new(set_up).map_err(|text| (set_up.first().map_or(1, |it| it.number), text))?;
    let mut last = 1;
    for line in lines {
        player.play(line).map_err(|text| (line.number, format!("{}\n    {text}", line.text)))?;
        last = line.number;
    }
    player.finish().map_err(|text| (last, format!("After the last line: {text}")))
}

impl Player {
    fn new(set_up: &[Line]) -> Result<Player, String> {
        let of_verb = |verb| set_up.iter().filter(move |line| line.verb == verb);
        let link: Vec<String> = of_verb("network")
            .flat_map(|line| line.fields.0.iter().map(|(name, value)| format!("{name}={value}")))
            .collect();
        let link: Faults = link.join(",").parse().map_err(|problem| format!("{problem}"))?;
        let world = Arc::new(World::new(1, link.transmit));
        let devices = of_verb("device")
            .map(|line| Device::new(&world, line))
            .collect::<Result<Vec<Device>, String>>()?;
        let (first, others) = devices.split_first().ok_or("A script begins with `device`.")?;
        let first = &first.end;
        let peer = others.is_empty().then(|| Peer::new(&world));
        if let Some(peer) = &peer {
            first.qps.iter().for_each(|qp| first.connect_to(qp, peer.address, QPN, 0));
        } else if let [other] = others {
            first.connect(&other.end);
            other.end.connect(first);
        } else {
            // Each of its QPs with another device.
            for (qp, other) in first.qps.iter().zip(others) {
                first.connect_qps(qp, &other.end, &other.end.qps[0]);
                other.end.connect_qps(&other.end.qps[0], first, qp);
            }
        }
        let start_ns = world.now_ns();
        let seen = VecDeque::new();
        Ok(Player { world, start_ns, line_ns: start_ns, devices, peer, seen })
    }

    fn play(&mut self, line: &Line) -> Result<(), String> {
        let mut fields = line.fields.clone();
        if line.device >= self.devices.len() {
            return Err("There is no such device.".into());
        }
        if [">", "wc", "event"].contains(&&*line.verb) {
            return self.expect(line, fields);
        }
        let after_ns = line.after_ns.ok_or("`+?` is for what a device does.")?;
        self.line_ns += after_ns;
        if line.verb == "busy" {
            self.world.fabric().advance_to(self.line_ns);
            return Ok(());
        }
        // What is done at one instant comes at once: the devices do not work in between.
        if after_ns > 0 || ["state", "count", "memory"].contains(&&*line.verb) {
            self.pass()?;
        }
        match &*line.verb {
            "<" => self.send(line, &mut fields)?,
            "post" => {
                let own = line.device;
                // A bare peer has no memory: it is as if it had the device's.
                let other = match (self.devices.len(), own) {
                    (1, _) | (_, 1..) => 0,
                    (2, 0) => 1,
                    _ => 1 + line.fields.get("qp").map_or(Ok(0), number)? as usize,
                };
                let remote = self.devices[other].remote(&mut fields)?;
                self.devices[own].post(&line.words.concat(), remote, &mut fields)?;
            }
            "same" => {
                let bytes = fields.number("len", 0)? as usize;
                let [a, b] = [0, 1].map(|at| self.devices[at].memory(0, bytes));
                same_bytes(a?, b?)?;
            }
            _ => {
                let acted = self.devices[line.device].act(line, &mut fields)?;
                acted.ok_or("No line begins like this, or it has other words.")?;
            }
        }
        fields.finish()
    }

    /// Sends a packet in the peer's name.
    fn send(&self, line: &Line, fields: &mut Fields) -> Result<(), String> {
        let peer = self.peer.as_ref().ok_or("Several devices send by themselves.")?;
        let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
        let device = &self.devices[0];
        let mut whole = built(device, &words, fields)?;
        whole.truncate(fields.number("cut", 8192)? as usize);
        let ecn = fields.take("ecn").unwrap_or_else(|| "none".into());
        let class = ECN.iter().position(|known| *known == ecn).ok_or("There is no such mark.")?;
        let port = fields.number("port", PORT.into())? as u16;
        let is_right = fields.take("crc").is_none();
        let source = (peer.address, port);
        forge(&self.world, source, device.end.nic.address(), class as u8, &whole, is_right);
        Ok(())
    }

    fn expect(&mut self, line: &Line, fields: Fields) -> Result<(), String> {
        let is_such = |seen: &Seen| {
            (seen.verb, seen.device) == (&*line.verb, line.device)
                && (line.verb != "wc"
                    || seen.words.split(' ').next() == line.words.first().map(String::as_str))
        };
        if line.verb == "wc" {
            // Its program polls: what it has posted leaves, before the devices do what else there is to do.
            let end = &self.devices[line.device].end;
            let _ = [&end.cq, &end.recv_cq].map(Cq::has_some);
            self.see();
        }
        if let Some(after_ns) = line.after_ns {
            self.line_ns += after_ns;
            if after_ns > 0 || !self.seen.iter().any(is_such) {
                self.pass()?;
            }
        } else {
            self.wait();
            self.line_ns = self.world.now_ns();
        }
        let Some(seen) = self.seen.iter().position(is_such).and_then(|at| self.seen.remove(at))
        else {
            self.wait();
            return Err(match self.seen.front() {
                Some(next) => format!("It did not come. Next came {}", self.describe(next)),
                None => "It did not come, and nothing else comes.".into(),
            });
        };
        self.fits(line, fields, &seen)
            .map_err(|text| format!("{text} Came {}", self.describe(&seen)))
    }

    /// Whether this is what a line expects. What it does not name may be anything, but for what is usual.
    fn fits(&mut self, line: &Line, mut fields: Fields, seen: &Seen) -> Result<(), String> {
        equal(&line.words.join(" "), &seen.words)?;
        if let Some(data) = fields.take("data") {
            same_bytes(&bytes(&data)?, &seen.payload)?;
        }
        let device = &mut self.devices[line.device];
        if let Some(offset) = fields.take("from") {
            let offset = number(&offset)? + (line.index * seen.payload.len()) as i64;
            same_bytes(device.memory(offset, seen.payload.len())?, &seen.payload)?;
        }
        let usual = [("dqpn", "peer"), ("pkey", "65535"), ("credits", "31"), ("qp", "0")];
        for (name, value) in usual {
            if seen.fields.get(name).is_some() && fields.get(name).is_none() {
                fields.push(name, value);
            }
        }
        if seen.fields.get("psn").is_some() && fields.get("psn").is_none() {
            return Err("`psn=` is missing.".into());
        }
        if line.verb == "wc" {
            // In the order of their posts.
            let queue = format!("{} {:?}", line.words[0], fields.get("qp"));
            let ended = device.ended.entry(queue).or_default();
            *ended += 1;
            fields.push("id", *ended);
        }
        for (name, value) in &fields.0 {
            let found = seen.fields.get(name).ok_or_else(|| format!("It has no {name}."))?;
            equal(value, found).map_err(|text| format!("{name}: {text}"))?;
        }
        Ok(())
    }

    /// Lets time pass until the line's; nothing may happen before that no line expects.
    fn pass(&mut self) -> Result<(), String> {
        loop {
            self.settle();
            if let Some(early) = self.seen.iter().find(|seen| seen.at_ns < self.line_ns) {
                return Err(format!("No line expects {}", self.describe(early)));
            }
            if self.world.now_ns() >= self.line_ns {
                return Ok(());
            }
            self.world.step_until(self.line_ns);
        }
    }

    /// Lets time pass until something is there, but not for ever: a QP that waits for an answer has timers without end.
    fn wait(&mut self) {
        let end_ns = self.world.now_ns() + MOST_NS;
        self.settle();
        while self.seen.is_empty() && self.world.now_ns() < end_ns {
            self.world.step_until(end_ns);
            self.settle();
        }
    }

    fn finish(&mut self) -> Result<(), String> {
        self.wait();
        match self.seen.front() {
            Some(seen) => Err(format!("No line expects {}", self.describe(seen))),
            None => Ok(()),
        }
    }

    /// Lets the devices do all there is to do now, and sees what they have done.
    fn settle(&mut self) {
        self.world.run_until(self.world.now_ns());
        self.see();
    }

    fn see(&mut self) {
        let at_ns = self.world.now_ns();
        while let Some(datagram) =
            self.peer.as_ref().and_then(|peer| self.world.fabric().take(peer.address))
        {
            let (words, fields, payload) = apart(&self.devices[0], &datagram);
            self.seen.push_back(Seen { at_ns, device: 0, verb: ">", words, fields, payload });
        }
        for (number, device) in self.devices.iter().enumerate() {
            let seen = |verb, words, fields| Seen {
                at_ns,
                device: number,
                verb,
                words,
                fields,
                payload: Vec::new(),
            };
            for (queue, cq) in [("send", &device.end.cq), ("recv", &device.end.recv_cq)] {
                // A CQ that has overrun tells nothing; its QPs' events do.
                let _ = cq.take_stamped(64, |completion, _| {
                    let words = format!("{queue} {}", name(completion.status, &STATUSES));
                    self.seen.push_back(seen("wc", words, completion_fields(device, completion)));
                });
            }
            for event in device.end.events.lock().unwrap().drain(..) {
                let words = name(event, &EVENTS).into();
                self.seen.push_back(seen("event", words, Fields::default()));
            }
        }
    }

    fn describe(&self, seen: &Seen) -> String {
        let ms_from = |ns: u64| (seen.at_ns as i64 - ns as i64) as f64 / 1e6;
        let fields: String =
            seen.fields.0.iter().map(|(name, value)| format!(" {name}={value}")).collect();
        format!(
            "{}: {} {}{fields}, {:+} ms from the start, {:+} ms from this line.",
            ["a", "b", "c"][seen.device],
            seen.verb,
            seen.words,
            ms_from(self.start_ns),
            ms_from(self.line_ns)
        )
    }
}

fn completion_fields(device: &Device, completion: &Completion) -> Fields {
    let mut fields = Fields::default();
    let qp = device.end.qps.iter().position(|qp| qp.number() == completion.qpn);
    fields.push("qp", &*qp.map_or("?".into(), |qp| qp.to_string()));
    fields.push("id", completion.wr_id);
    if completion.status == Status::Success {
        fields.push("len", completion.length_bytes);
        let is_write = completion.kind == CompletionKind::ReceiveRdmaWithImmediate;
        fields.push("write", u8::from(is_write));
        match completion.attached {
            Attached::Nothing => {}
            Attached::Immediate(value) => fields.push("imm", value),
            Attached::Invalidated(key) => fields.push("inv", device.key_name(key)),
        }
    }
    fields
}
