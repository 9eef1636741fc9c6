//! Packets to a device: to QPs of the forger, to that of its real peer, and to none.

use std::sync::Arc;

use fastrand::Rng;
use softroce::transport::{Kind, Operation, PdId, QpEvent, State};
use softroce::wire::Cnp;
use testing::fuzz::rounds;

use super::forge::{Target, mutate, operations, packet};
use crate::support::end::{End, Plan, pair, post, request};
use crate::support::peer::{CE, ECT_0, PORT, Peer, QPN, forge};

const BYTES: usize = 16 << 10;
/// Packets between two looks at the QPs of the forger.
const A_LOOK: u64 = 8;

struct Fuzzed {
    forger: Peer,
    /// A real peer, and the device's end of their connection.
    real: End,
    device: End,
    /// What the memory of that end must be.
    expected: Vec<u8>,
    /// Ends on the same device for the forger, with memory of another protection domain.
    open: [End; 3],
    forged: u64,
    completions: usize,
}

fn fuzzed() -> Fuzzed {
    let mut plan = Plan {
        memory_bytes: BYTES,
        mtu_bytes: 1024,
        send_wrs: 16,
        recv_wrs: 16,
        ..Plan::on(1, "")
    };
    plan.deliveries.timeout = 9;
    let (real, device) = pair(&plan);
    Fuzzed {
        forger: Peer::new(plan.world.as_ref().unwrap()),
        open: [Kind::Rc, Kind::Uc, Kind::Ud].map(|kind| {
            let plan = Plan { kind, pd: PdId(2), ..plan.clone() };
            End::on(Arc::clone(&device.nic), &plan)
        }),
        real,
        device,
        expected: vec![0; BYTES],
        forged: 0,
        completions: 0,
    }
}

impl Fuzzed {
    fn forge(&mut self, numbers: &mut Rng) {
        let world = &self.forger.world;
        if numbers.bool() {
            world.run_until(world.now_ns() + numbers.u64(..2_000));
        }
        if self.forged.is_multiple_of(A_LOOK) {
            self.renew(numbers);
        }
        self.forged += 1;
        let end = match numbers.u8(..16) {
            0 => &self.device,
            more => &self.open[usize::from(more) % 3],
        };
        let mut target = Target::of(end, numbers);
        if numbers.u8(..16) == 0 {
            // The real peer's memory is not for QPs of others.
            let real = Target::of(&self.device, numbers);
            (target.address, target.key) = (real.address, real.key);
        }
        let fits = operations().into_iter().filter(|(of, _)| *of == end.plan.kind);
        let operation = numbers.choice(fits.collect::<Vec<_>>()).unwrap();
        let most = [9, 1025, 1025, 4097][numbers.usize(..4)];
        let payload_bytes = numbers.usize(..most);
        let mut bytes = packet(numbers, operation, &target, payload_bytes);
        if numbers.u8(..32) == 0 {
            bytes[0] = Cnp::OPCODE_BYTE;
            bytes.truncate(12);
            bytes.resize(Cnp::BYTES, 0);
        }
        if numbers.u8(..8) == 0 {
            mutate(&mut bytes, numbers);
        }
        let source = match numbers.u8(..16) {
            // In the name of the real peer, but not from a port that it sends from.
            0 => (self.real.nic.address(), 4791),
            1 => (self.forger.address, PORT + 1),
            _ => (self.forger.address, PORT),
        };
        let class = [0, ECT_0, CE][numbers.usize(..3)];
        let (to, right) = (self.device.nic.address(), numbers.u8(..32) > 0);
        forge(&self.forger.world, source, to, class, &bytes, right);
    }

    /// Renews what the forger has broken and used up.
    fn renew(&mut self, numbers: &mut Rng) {
        let fabric = self.forger.world.fabric();
        while fabric.take(self.forger.address).is_some() {}
        for end in &self.open {
            for cq in [&end.cq, &end.recv_cq] {
                self.completions += cq.poll(1000, |_| ()).unwrap();
            }
            let qp = &end.qps[0];
            if qp.state() != State::Rts {
                qp.reset();
                end.connect_to(qp, self.forger.address, QPN, 0);
            }
            let sges = [end.sge(numbers.usize(..BYTES / 2), numbers.usize(..BYTES / 2))];
            while numbers.u8(..4) > 0 && qp.post_recv(1, &sges).is_ok() {}
            let operation = match numbers.u8(..3) {
                0 => Operation::Send,
                1 => self.device.write_to(0),
                _ => self.device.read_from(0),
            };
            if end.plan.kind == Kind::Rc {
                // There may be no room.
                let _ = post(qp, &[request(2, operation, &sges)]);
            }
        }
    }

    /// The real peer's requests do what they should, and nobody else has touched the memory for it.
    fn serves(&mut self, numbers: &mut Rng) {
        let (real, device) = (&mut self.real, &self.device);
        numbers.fill(&mut real.memory);
        let bytes = numbers.usize(1..BYTES / 4);
        let [from, to, place] = [(); 3].map(|()| numbers.usize(..BYTES / 4));
        let (back, received) = (BYTES / 2, BYTES / 2 + place);
        let receive = [device.sge(received, bytes)];
        device.qps[0].post_recv(9, &receive).unwrap();
        for (operation, at) in
            [(device.write_to(to), from), (device.read_from(to), back), (Operation::Send, from)]
        {
            real.post(0, operation, &[real.sge(at, bytes)]);
        }
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
    let test = "-p softroce --test device fuzz::device";
    rounds(
        test,
        100_000,
        &mut fuzzed,
        |it: &mut Fuzzed, number| it.forge(&mut Rng::with_seed(number)),
        |it: &mut Fuzzed, number| it.serves(&mut Rng::with_seed(number)),
    );
    // Refusing everything or nothing would test nothing.
    let reached = "bad_icrc short_packets unknown_qp unparsed wrong_service pkey_violations wrong_source acks_sent \
        naks_sent rnr_naks_sent duplicate_requests out_of_sequence go_backs dropped_datagrams np_cnp_sent rp_cnp_handled";
    for name in reached.split_whitespace() {
        assert!(fuzzed.device.counter(name) > 0, "{name}");
    }
    assert!(fuzzed.completions > 1000, "{}", fuzzed.completions);
}
