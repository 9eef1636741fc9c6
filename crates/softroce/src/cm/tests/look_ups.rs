//! Look-ups of datagram services.

use super::*;
use crate::wire::cm::{SidrRep, SidrReq, SidrStatus, UDP_PORT_SPACE};

const DATAGRAMS: u64 = UDP_PORT_SPACE | 7471;

fn listening(fate: Fate) -> Pair {
    let mut pair = Pair::new(fate);
    pair.listen(DATAGRAMS);
    pair
}

impl Pair {
    fn look_up(&mut self, service: u64) -> u32 {
        let req = Box::new(SidrReq { service, private_data: vec![5; 216], ..SidrReq::default() });
        self.at(0, |manager, now, out| manager.look_up(now, address(1), req, out))
    }

    fn looked_up(&mut self) -> u32 {
        let request = self.event(1);
        let Happening::LookedUp(asker, req) = request.happening else {
            panic!("{request:?}");
        };
        assert_eq!((asker, req.private_data), (ASKER, vec![5; 216]));
        request.comm
    }

    fn tell(&mut self, comm: u32) -> Result<(), CmError> {
        let rep = Box::new(SidrRep {
            qpn: 0x22,
            qkey: 0x33,
            private_data: vec![7; 136],
            ..SidrRep::default()
        });
        self.with(1, comm, |it, _, out| it.answer(rep, out))
    }

    fn found(&mut self) -> Box<SidrRep> {
        match self.happening(0) {
            Happening::Found(rep) => rep,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_qp_is_asked_for_and_told() {
    let mut pair = listening(Box::new(|| 2));
    let request = pair.look_up(DATAGRAMS);
    assert_eq!(request >> 27, 3, "the number begins with the slot");
    let look_up = pair.looked_up();
    assert!(pair.events[1].is_empty(), "a duplicate is no second one");
    pair.tell(look_up).unwrap();
    assert_eq!(pair.tell(look_up), Err(CmError::State), "once");
    let expected = SidrRep {
        request,
        status: SidrStatus::VALID,
        qpn: 0x22,
        service: DATAGRAMS,
        qkey: 0x33,
        private_data: vec![7; 136],
    };
    assert_eq!(*pair.found(), expected);
    assert!(pair.events[0].is_empty(), "nor a second answer");
    assert_eq!(pair.connections(), [0, 1]);
    assert!(!pair.pass(), "the answer stays as long as its id");
    let before = pair.now;
    pair.let_go(1, look_up);
    assert!(pair.pass());
    assert_eq!((pair.now, pair.connections()), (before + TIME_WAIT_NS, [0, 0]));
    assert!(pair.is_quiet() && !pair.pass());
}

#[test]
fn a_lost_answer_comes_again() {
    let mut pair = listening(Box::new(|| 1));
    pair.look_up(DATAGRAMS);
    let look_up = pair.looked_up();
    pair.fate = Box::new(|| 0);
    pair.tell(look_up).unwrap();
    pair.fate = Box::new(|| 1);
    assert_eq!(pair.found().qpn, 0x22);
    assert_eq!(pair.now, 1 + INTERVAL_NS);
}

#[test]
fn a_look_up_may_be_refused_by_the_manager_or_the_program() {
    let mut pair = listening(Box::new(|| 1));
    pair.look_up(DATAGRAMS + 1);
    assert_eq!(pair.found().status, SidrStatus::UNSUPPORTED);
    assert_eq!(pair.now, 1 + LISTENER_PATIENCE_NS);
    pair.look_up(DATAGRAMS);
    let refused = pair.looked_up();
    pair.refuse(refused);
    let rep = pair.found();
    assert_eq!((rep.status, rep.qpn), (SidrStatus::REJECTED, 0));
    assert_eq!(rep.private_data[..3], *b"no\0");
    // A program that lets go of it refuses it too.
    pair.look_up(DATAGRAMS);
    let dropped = pair.looked_up();
    pair.let_go(1, dropped);
    assert_eq!(pair.found().status, SidrStatus::REJECTED);
}

#[test]
fn a_silent_address_is_given_up_and_no_connection_is_rejected() {
    let mut pair = listening(Box::new(|| 0));
    pair.look_up(DATAGRAMS);
    assert_eq!(pair.happening(0), Happening::Unreachable);
    assert_eq!(pair.sent[0].len(), usize::from(MAX_RETRIES) + 1);
    assert!(pair.sent[0].iter().all(|mad| matches!(mad.message, Message::SidrReq(_))));
    let most_ns = time_of_code_ns(SERVICE_TIMEOUT);
    // The interval doubles four times, and twelve are the longest.
    assert_eq!(pair.now, 1 + INTERVAL_NS * (1 + 2 + 4 + 8) + 12 * most_ns);
    assert_eq!(pair.connections(), [0, 0]);
}

#[test]
fn a_connection_is_no_look_up() {
    let mut pair = listening(Box::new(|| 1));
    let (_, connection) = pair.connecting();
    assert_eq!(pair.tell(connection), Err(CmError::State));
    pair.look_up(DATAGRAMS);
    let look_up = pair.looked_up();
    assert_eq!(pair.accept(look_up), Err(CmError::State));
}
