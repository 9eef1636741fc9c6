//! Packets to a device: to its QPs that are connected to who forges them, to those of its real peer, and to none.

use std::sync::Arc;

use fastrand::Rng;
use softroce::net::Direction;
use softroce::transport::{Deliveries, Kind, Operation, PdId, QpEvent, State, World};
use softroce::wire::Service;

use super::forge::{Target, cnp, mutate, operations, packet};
use super::rounds;
use crate::support::end::{End, Plan, pair, request};
use crate::support::peer::{CE, PORT, Peer, QPN, crc, wire};

const BYTES: usize = 16 << 10;
/// Between two looks at the ends that are open to the forger.
const A_TURN: u32 = 8;

struct Fuzzed {
    forger: Peer,
    /// A real peer, and the device's end of their connection.
    real: End,
    device: End,
    /// What the memory of that end must be.
    expected: Vec<u8>,
    /// Ends on the same device for the forger, with memory of another protection domain.
    open: Vec<(Service, End)>,
    sent: u32,
    completions: u64,
}

fn fuzzed() -> Fuzzed {
    let world = Arc::new(World::new(1, Direction::default()));
    let plain = Plan::default();
    let plan = Plan {
        world: Some(Arc::clone(&world)),
        memory_bytes: BYTES,
        mtu_bytes: 1024,
        send_wrs: 16,
        recv_wrs: 16,
        deliveries: Deliveries {
            timeout: 9,
            ..plain.deliveries
        },
        ..plain
    };
    let (real, device) = pair(&plan);
    let services = [
        (Service::Rc, Kind::Rc),
        (Service::Uc, Kind::Uc),
        (Service::Ud, Kind::Ud),
    ];
    let open = services.map(|(service, kind)| {
        let plan = Plan {
            kind,
            pd: PdId(2),
            ..plan.clone()
        };
        (service, End::on(Arc::clone(&device.nic), &plan))
    });
    Fuzzed {
        forger: Peer::new(&world),
        real,
        device,
        expected: vec![0; BYTES],
        open: open.into(),
        sent: 0,
        completions: 0,
    }
}

impl Fuzzed {
    fn forge(&mut self, numbers: &mut Rng) {
        let world = &self.forger.world;
        if numbers.bool() {
            world.run_until(world.now_ns() + numbers.u64(..2_000));
        }
        if self.sent.is_multiple_of(A_TURN) {
            self.renew(numbers);
        }
        self.sent += 1;
        let (service, end) = match numbers.u8(..16) {
            0 => &(Service::Rc, &self.device),
            _ => {
                let (service, end) = &self.open[numbers.usize(..self.open.len())];
                &(*service, end)
            }
        };
        let mut target = Target::of(end, numbers);
        if numbers.u8(..16) == 0 {
            // The real peer's memory is not for QPs of others.
            let real = Target::of(&self.device, numbers);
            (target.address, target.key) = (real.address, real.key);
        }
        let all = operations();
        let of_service = all.iter().filter(|(of, _)| of == service);
        let of_service: Vec<_> = of_service.collect();
        let operation = *of_service[numbers.usize(..of_service.len())];
        let most = [9, 1025, 1025, 4097][numbers.usize(..4)];
        let payload = vec![numbers.u8(..); numbers.usize(..most)];
        let mut bytes = match numbers.u8(..32) {
            0 => cnp(&target).to_vec(),
            _ => wire(&packet(numbers, operation, &target, &payload)),
        };
        if numbers.u8(..8) == 0 {
            mutate(&mut bytes, numbers);
        }
        // In the name of the real peer, but not from a port that a device of ours sends from.
        let source = match numbers.u8(..16) {
            0 => (self.real.nic.address(), 4791),
            1 => (self.forger.address, PORT + 1),
            _ => (self.forger.address, PORT),
        };
        let to = self.device.nic.address();
        let crc = match bytes.len() {
            12.. if numbers.u8(..32) > 0 => crc(source, to, &bytes),
            _ => [numbers.u8(..); 4],
        };
        bytes.extend(crc);
        let class = [0, 2, CE][numbers.usize(..3)];
        let fabric = self.forger.world.fabric();
        fabric.forge(source.into(), to, class, &bytes);
    }

    /// Renews what the forger has broken and used up.
    fn renew(&mut self, numbers: &mut Rng) {
        let fabric = self.forger.world.fabric();
        while fabric.take(self.forger.address).is_some() {}
        for (_, end) in &self.open {
            for cq in [&end.cq, &end.recv_cq] {
                self.completions += cq.poll(1000, |_| ()).unwrap() as u64;
            }
            let qp = &end.qps[0];
            if qp.state() != State::Rts {
                qp.reset();
                end.connect_to(qp, self.forger.address, QPN, 0);
            }
            let sges = [end.sge(numbers.usize(..BYTES / 2), numbers.usize(..BYTES / 2))];
            while numbers.u8(..4) > 0 && qp.post_recv(1, &sges).is_ok() {}
            let (address, rkey) = (0x1000, 7);
            let operations = [
                Operation::Send,
                Operation::Write { address, rkey },
                Operation::Read { address, rkey },
            ];
            let operation = operations[numbers.usize(..3)];
            let mut next = Some(request(2, operation, &sges));
            if end.plan.kind == Kind::Rc {
                // SAFETY: nothing is inline. There may be no room.
                let _ = unsafe { qp.post_send(|| next.take()) };
            }
        }
    }

    /// The real peer's requests do what they should, and nobody else has touched the memory for it.
    fn serves(&mut self, numbers: &mut Rng) {
        let (real, device) = (&mut self.real, &self.device);
        numbers.fill(&mut real.memory);
        let bytes = numbers.usize(1..BYTES / 4);
        let mut place = || numbers.usize(..BYTES / 4);
        let (from, to, received) = (place(), place(), BYTES / 2 + place());
        let back = BYTES / 2;
        device.qps[0]
            .post_recv(9, &[device.sge(received, bytes)])
            .unwrap();
        real.post(0, device.write_to(to), &[real.sge(from, bytes)]);
        real.post(0, device.read_from(to), &[real.sge(back, bytes)]);
        real.post(0, Operation::Send, &[real.sge(from, bytes)]);
        real.succeeds(3);
        device.succeeds(1);
        let data = &real.memory[from..from + bytes];
        assert!(real.memory[back..back + bytes] == *data);
        for at in [to, received] {
            self.expected[at..at + bytes].copy_from_slice(data);
        }
        assert!(device.memory == self.expected);
        for end in [&*real, device] {
            assert_eq!(end.qps[0].state(), State::Rts);
            assert_eq!(*end.events.lock().unwrap(), [] as [QpEvent; 0]);
        }
    }
}

#[test]
fn a_device_that_gets_forged_packets_serves_its_real_peer() {
    let mut fuzzed = fuzzed();
    fuzzed.serves(&mut Rng::with_seed(0));
    rounds(
        "device",
        100_000,
        &mut fuzzed,
        Fuzzed::forge,
        Fuzzed::serves,
    );
    // Refusing everything or nothing would test nothing.
    for name in [
        "bad_icrc",
        "short_packets",
        "unknown_qp",
        "unparsed",
        "wrong_service",
        "pkey_violations",
        "wrong_source",
        "acks_sent",
        "naks_sent",
        "rnr_naks_sent",
        "duplicate_requests",
        "out_of_sequence",
        "go_backs",
        "dropped_datagrams",
        "np_cnp_sent",
        "rp_cnp_handled",
    ] {
        assert!(fuzzed.device.counter(name) > 0, "{name}");
    }
    assert!(fuzzed.completions > 1000, "{}", fuzzed.completions);
}
