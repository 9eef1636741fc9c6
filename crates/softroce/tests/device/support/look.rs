//! What an end has done, and waiting for it.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use softroce::net::Faults;
use softroce::transport::{Completion, Cq, Nic, Operation, Status, World};

use super::end::{End, Plan};
use testing::wait::wait_or_tell;

/// More than anything takes on an idle machine that a test waits for.
pub const SOON: Duration = Duration::from_secs(10);
/// More than any test takes.
const MOST_STEPS: usize = 10_000_000;

#[track_caller]
pub fn counter(nic: &Nic, name: &str) -> u64 {
    let counters = nic.counters();
    let found = counters.iter().find(|(known, _)| *known == name);
    found.unwrap().1
}

/// Lets time pass in a network in memory until there is something.
#[track_caller]
pub fn steps<T>(
    world: &World,
    mut look: impl FnMut() -> Option<T>,
    what: impl FnOnce() -> String,
) -> T {
    for _ in 0..MOST_STEPS {
        if let Some(found) = look() {
            return found;
        }
        if !world.step() {
            break;
        }
    }
    look().unwrap_or_else(|| panic!("at {} ns there is no {}", world.now_ns(), what()))
}

impl Plan {
    /// On a network of its own, with such links.
    pub fn on(seed: u64, link: &str) -> Plan {
        let link: Faults = link.parse().unwrap();
        Plan { world: Some(Arc::new(World::new(seed, link.transmit))), ..Plan::default() }
    }
}

impl End {
    /// Waits until there is something.
    #[track_caller]
    pub fn until<T>(&self, look: impl FnMut() -> Option<T>, what: impl FnOnce() -> String) -> T {
        match &self.plan.world {
            Some(world) => steps(world, look, what),
            None => wait_or_tell(SOON, look, what),
        }
    }

    #[track_caller]
    pub fn counter(&self, name: &str) -> u64 {
        counter(&self.nic, name)
    }

    /// Waits until a counter has this value. Does not poll.
    #[track_caller]
    pub fn counts(&self, name: &str, value: u64) {
        self.until(
            || (self.counter(name) >= value).then_some(()),
            || format!("{value} {name}: {:?}", self.nic.counters()),
        );
        assert_eq!(self.counter(name), value, "{name}");
    }

    /// The next completion; of a receive if it has a CQ of their own for these.
    #[track_caller]
    pub fn completion(&self) -> Completion {
        self.completions(&self.cq, 1)[0]
    }

    #[track_caller]
    pub fn completions(&self, cq: &Cq, count: usize) -> Vec<Completion> {
        let mut completions = Vec::new();
        while completions.len() < count {
            let got = self.until(
                || {
                    let mut got = Vec::new();
                    cq.poll(count - completions.len(), |completion| got.push(*completion)).unwrap();
                    Some(got).filter(|got| !got.is_empty())
                },
                || format!("completion {}: {:?}", completions.len() + 1, self.nic.counters()),
            );
            completions.extend(got);
        }
        completions
    }

    /// Takes so many completions, which all are successes.
    #[track_caller]
    pub fn succeeds(&self, count: usize) {
        for completion in self.completions(&self.cq, count) {
            assert_eq!(completion.status, Status::Success, "{completion:?}");
        }
    }

    /// Runs requests of one QP, so many of them at once: `request` says what each does, and from where in the memory.
    pub fn run(
        &self,
        count: usize,
        at_once: usize,
        bytes: usize,
        request: impl Fn(usize) -> (Operation, usize),
    ) {
        for number in 0..count {
            if number >= at_once {
                self.succeeds(1);
            }
            let (operation, offset) = request(number);
            self.post(0, operation, &[self.sge(offset, bytes)]);
        }
        self.succeeds(at_once.min(count));
    }

    pub fn write_to(&self, offset: usize) -> Operation {
        Operation::Write { address: self.address(offset), rkey: self.key }
    }

    pub fn read_from(&self, offset: usize) -> Operation {
        Operation::Read { address: self.address(offset), rkey: self.key }
    }

    /// Fills the memory with bytes that differ from place to place.
    pub fn fill(&mut self) {
        for (byte, at) in self.memory.iter_mut().zip(0_usize..) {
            *byte = (at * 7 + at / 4096) as u8;
        }
    }

    /// A byte of the memory, which a peer may be writing.
    pub fn byte(&self, offset: usize) -> u8 {
        let at = ptr::with_exposed_provenance::<u8>(self.address(offset) as usize);
        // SAFETY: a byte of its memory.
        unsafe { at.read_volatile() }
    }
}
