//! A device of a script: what a program does with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use softroce::transport::{
    Access, Kind, Operation, PdId, Qp, RecvQueue, SendRequest, Sge, WindowType, World,
};

use super::language::{Fields, Line, bytes, number};
use super::packet::FIRST_PSN;
use crate::support::end::{End, Plan, QKEY, post, register, request};

const PD: PdId = PdId(1);

pub struct Device {
    pub end: End,
    keys: Vec<(String, u32)>,
    /// How many requests or receives were posted to a QP, and how many of them have ended.
    posted: BTreeMap<(&'static str, i64), u64>,
    pub ended: BTreeMap<String, u64>,
}

fn plan(world: &Arc<World>, line: &Line) -> Result<Plan, String> {
    let mut fields = line.fields.clone();
    let mut plan = Plan {
        world: Some(Arc::clone(world)),
        kind: match &*line.words.concat() {
            "rc" => Kind::Rc,
            "uc" => Kind::Uc,
            "ud" => Kind::Ud,
            _ => return Err("A script begins with devices: `device rc`, `uc` or `ud`.".into()),
        },
        qps: fields.number("qps", 1)? as usize,
        memory_bytes: fields.number("memory", 64 << 10)? as usize,
        send_wrs: 64,
        recv_wrs: 16,
        mtu_bytes: fields.number("mtu", 1024)? as u32,
        first_psn: fields.number("first_psn", FIRST_PSN.into())? as u32,
        receive_completions: Some(fields.number("recv_cq", 64)? as usize),
        ..Plan::default()
    };
    plan.deliveries.timeout = fields.number("timeout", 0)? as u8;
    plan.deliveries.retry_count = fields.number("retry_cnt", 7)? as u8;
    plan.deliveries.rnr_retry = fields.number("rnr_retry", 7)? as u8;
    plan.deliveries.max_rd_atomic = fields.number("max_rd_atomic", 2)? as u8;
    if let Some(faults) = fields.take("faults").filter(|faults| faults != "none") {
        plan.faults = faults.parse().map_err(|problem| format!("{problem}"))?;
    }
    if let Some(pd) = fields.take("srq_pd") {
        plan.shared = Some(Arc::new(RecvQueue::new(PdId(number(&pd)? as u32), 16, 1, None)));
    }
    fields.finish().map(|()| plan)
}

impl Device {
    pub fn new(world: &Arc<World>, line: &Line) -> Result<Device, String> {
        let end = End::new(&plan(world, line)?);
        let keys = vec![("mr".into(), end.key), ("wrong".into(), !end.key)];
        Ok(Device { end, keys, posted: BTreeMap::new(), ended: BTreeMap::new() })
    }

    pub fn qp(&self, fields: &mut Fields) -> Result<&Qp, String> {
        let number = fields.number("qp", 0)?;
        self.end.qps.get(number as usize).ok_or_else(|| format!("There is no QP {number}."))
    }

    pub fn key(&self, name: &str) -> Result<u32, String> {
        let found = self.keys.iter().find(|(known, _)| known == name);
        found.map(|(_, key)| *key).ok_or_else(|| format!("There is no key {name}."))
    }

    pub fn key_name(&self, key: u32) -> &str {
        self.keys.iter().find(|(_, known)| *known == key).map_or("?", |(name, _)| name)
    }

    /// A place in its memory; `top` is eight bytes before the end of all addresses.
    fn place(&self, field: &str, fields: &mut Fields) -> Result<u64, String> {
        match fields.take(field).as_deref() {
            Some("top") => Ok(u64::MAX - 7),
            Some(offset) => Ok(self.end.address(0).wrapping_add_signed(number(offset)?)),
            None => Ok(self.end.address(0)),
        }
    }

    /// An address and a key for its peer.
    pub fn remote(&self, fields: &mut Fields) -> Result<(u64, u32), String> {
        let rkey = fields.take("rkey");
        Ok((self.place("va", fields)?, self.key(rkey.as_deref().unwrap_or("mr"))?))
    }

    /// The elements of a request or receive, of which an empty one is none.
    fn sges(&self, place: &str, fields: &mut Fields) -> Result<Vec<Sge>, String> {
        let mut sges = Vec::new();
        for which in ["", "2"] {
            let length_bytes = fields.number(&format!("len{which}"), 0)? as u32;
            let lkey = fields.take(&format!("lkey{which}"));
            let lkey = self.key(lkey.as_deref().unwrap_or("mr"))?;
            let address = self.place(&format!("{place}{which}"), fields)?;
            if length_bytes > 0 {
                sges.push(Sge { address, length_bytes, lkey });
            }
        }
        Ok(sges)
    }

    fn next_id(&mut self, queue: &'static str, fields: &Fields) -> u64 {
        let qp = fields.get("qp").map_or(0, |qp| number(qp).unwrap_or(0));
        let count = self.posted.entry((queue, qp)).or_default();
        *count += 1;
        *count
    }

    pub fn post(
        &mut self,
        name: &str,
        (address, rkey): (u64, u32),
        fields: &mut Fields,
    ) -> Result<(), String> {
        let wr_id = self.next_id("send", fields);
        let mut sges = self.sges("from", fields)?;
        let operation = match name {
            "SEND" => Operation::Send,
            "WRITE" => Operation::Write { address, rkey },
            "READ" => Operation::Read { address, rkey },
            "FETCHADD" => Operation::FetchAdd { address, rkey, add: 1 },
            "COMPARESWAP" => Operation::CompareSwap { address, rkey, compare: 0, swap: 1 },
            "BIND" => {
                let part = sges.pop().ok_or("`len=` is missing.")?;
                let window = fields.take("window").ok_or("`window=` is missing.")?;
                let key = self.key(&window)?;
                self.keys.retain(|(known, _)| *known != window);
                self.keys.extend([(format!("{window}.before"), key), (window, key ^ 1)]);
                Operation::Bind {
                    rkey: key,
                    new_rkey: key ^ 1,
                    lkey: part.lkey,
                    access: 0xe,
                    address: part.address,
                    length_bytes: part.length_bytes.into(),
                }
            }
            _ => return Err("There is no such request.".into()),
        };
        let immediate = fields.take("imm").map(|value| number(&value)).transpose()?;
        let request = SendRequest {
            immediate: immediate.map(|value| value as u32),
            ..request(wr_id, operation, &sges)
        };
        post(self.qp(fields)?, &[request]).map_err(|problem| format!("{problem:?}"))
    }

    /// Does what a line says of it alone; none if it is no such line.
    pub fn act(&mut self, line: &Line, fields: &mut Fields) -> Result<Option<()>, String> {
        let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
        match (&*line.verb, &words[..]) {
            ("recv", []) => {
                let wr_id = self.next_id("recv", fields);
                let sges = self.sges("to", fields)?;
                let qp = self.qp(fields)?;
                match &self.end.plan.shared {
                    Some(queue) => queue.post(wr_id, &sges),
                    None => qp.post_recv(wr_id, &sges),
                }
                .map_err(|problem| format!("{problem:?}"))?;
            }
            ("modify", [state]) => {
                let qp = self.qp(fields)?;
                match *state {
                    "ERR" => qp.fail(),
                    "RESET" => qp.reset(),
                    "INIT" => qp.initialize(Access(15), QKEY),
                    "DESTROYED" => qp.destroy(),
                    _ => return Err("A script moves no QP there.".into()),
                }
            }
            ("region", [name]) => {
                let start = self.place("from", fields)?;
                let bytes = fields.number("len", self.end.memory.len() as i64)? as usize;
                let pd = PdId(fields.number("pd", PD.0.into())? as u32);
                let access = Access(fields.number("access", 15)? as _);
                // SAFETY: the memory lives as long as the device.
                let key = unsafe { register(&self.end.nic, pd, start, bytes, access) };
                self.keys.push(((*name).into(), key));
            }
            ("deregister", [name]) => {
                let removed = self.end.nic.deregister(self.key(name)?);
                removed.map_err(|problem| format!("{problem:?}"))?;
            }
            ("window", [name]) => {
                let key = self.end.nic.allocate_window(PD, WindowType::Two);
                self.keys.push(((*name).into(), key.map_err(|problem| format!("{problem:?}"))?));
            }
            ("fill", []) => self.end.fill(),
            ("state", [state]) => {
                equal(state, &format!("{:?}", self.qp(fields)?.state()).to_uppercase())?;
            }
            ("count", [name, value]) => {
                let counters = self.end.nic.counters();
                let found = counters.iter().find(|(known, _)| known == name);
                equal(value, &found.ok_or("There is no such counter.")?.1.to_string())?;
            }
            ("memory", [offset]) => {
                let data = bytes(&fields.take("data").ok_or("`data=` is missing.")?)?;
                same_bytes(&data, self.memory(number(offset)?, data.len())?)?;
            }
            _ => return Ok(None),
        }
        Ok(Some(()))
    }

    pub fn memory(&self, offset: i64, bytes: usize) -> Result<&[u8], String> {
        let start = offset as usize;
        let part = self.end.memory.get(start..start + bytes);
        part.ok_or_else(|| "There is no such memory.".into())
    }
}

pub fn equal(expected: &str, found: &str) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    Err(format!("Expected {expected}, found {found}."))
}

pub fn same_bytes(expected: &[u8], found: &[u8]) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("Expected {} bytes, found {}.", expected.len(), found.len()));
    }
    match (0..found.len()).find(|at| expected[*at] != found[*at]) {
        Some(at) => Err(format!("Expected {:02x} at {at}, found {:02x}.", expected[at], found[at])),
        None => Ok(()),
    }
}
