//! A test case as plain data that proptest can generate and shrink: the set-up of the QPs and their requests.
//! `player` chooses addresses when it runs the case.

use proptest::prelude::*;
use softroce::transport::{Access, Capacities};

pub const ALL_ACCESS: Access = Access(
    Access::LOCAL_WRITE.0
        | Access::REMOTE_WRITE.0
        | Access::REMOTE_READ.0
        | Access::REMOTE_ATOMIC.0,
);
/// The most pairs of a case; each end has a counter of 8 bytes.
pub const MOST_PAIRS: usize = 3;
pub const LONGEST_BYTES: usize = 70_000;

/// 67 ms, doubled up to four times. Most losses are noticed long before.
const TIMEOUT: u8 = 14;

#[derive(Clone, Debug)]
pub struct Setup {
    /// Of all that is drawn when the case runs.
    pub seed: u64,
    /// The links of the network, in the syntax of faults; empty for one without time and limits.
    pub link: &'static str,
    pub same_nic: bool,
    /// Whether a side uses one CQ for sends and receives.
    pub one_cq: bool,
    pub mtu_bytes: u32,
    /// Pairs of QPs, each with its end on side 0 and on side 1.
    pub pairs: Vec<[End; 2]>,
    /// The faults in the option's syntax; empty for none.
    pub faults: String,
    pub timeout: u8,
    pub retry_count: u8,
    pub rnr_retry: u8,
    /// Code of the receiver's RNR pause.
    pub min_rnr_timer: u8,
    /// The peer's access through the QPs.
    pub qp_access: Access,
    pub region_access: Access,
    pub region_bytes: usize,
}

#[derive(Clone, Debug)]
pub struct End {
    pub sq_psn: u32,
    /// The most READs and atomics that it has in flight.
    pub max_rd_atomic: u8,
    /// How many more the peer accepts.
    pub spare_rd_atomic: u8,
    pub capacities: Capacities,
}

impl Setup {
    /// One pair on two devices with all access and no faults.
    pub fn plain() -> Setup {
        let end = |sq_psn| End {
            sq_psn,
            max_rd_atomic: 4,
            spare_rd_atomic: 0,
            capacities: Capacities {
                send_wrs: 32,
                recv_wrs: 32,
                send_sges: 4,
                recv_sges: 4,
                inline_bytes: 64,
            },
        };
        Setup {
            seed: 1,
            link: "",
            same_nic: false,
            one_cq: false,
            mtu_bytes: 1024,
            pairs: vec![[end(0x00ff_fffc), end(7)]],
            faults: String::new(),
            timeout: TIMEOUT,
            retry_count: 7,
            rnr_retry: 7,
            min_rnr_timer: 1,
            qp_access: ALL_ACCESS,
            region_access: ALL_ACCESS,
            region_bytes: 64 << 10,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Step {
    /// Posts requests in one call, and the receives that they need.
    Post(Batch),
    /// Of a side, at most so many.
    Poll(usize, usize),
    Sleep(usize),
    Quiesce,
}

#[derive(Clone, Debug)]
pub struct Batch {
    /// Index of the QP, modulo their number.
    pub end: usize,
    pub requests: Vec<Request>,
    /// How many of the receives are posted after the requests.
    pub late: usize,
    /// Polls before these receives.
    pub polls_before_late: usize,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub verb: Verb,
    pub length: Length,
    /// Where the local bytes are split into elements, in 1/65536 of the length.
    pub cuts: Vec<u16>,
    /// Bytes left free before each part of memory.
    pub gap: usize,
    pub signaled: bool,
    pub inline: bool,
    pub fence: bool,
    pub immediate: Option<u32>,
    /// Reuses memory of an earlier request of the QP: a WRITE or READ the target of its last WRITE or READ, a SEND or WRITE
    /// with a fence the result of its last READ.
    pub chained: bool,
    pub receive_cuts: Vec<u16>,
    /// Bytes by which its receive is too long.
    pub receive_spare: usize,
}

#[derive(Clone, Debug)]
pub enum Verb {
    Send,
    Write,
    Read,
    FetchAdd { add: u64 },
    CompareSwap { hits: bool, swap: u64 },
}

/// This many packets, and some bytes more or less.
#[derive(Clone, Debug)]
pub struct Length(u32, i32);

impl Length {
    pub fn bytes(&self, mtu_bytes: u32) -> usize {
        (self.0 * mtu_bytes).saturating_add_signed(self.1) as usize
    }
}

fn psns() -> impl Strategy<Value = u32> {
    prop_oneof![
        3 => 0x00ff_ffd0..=0x00ff_ffff_u32,
        1 => 0x007f_fff0..0x0080_0010_u32,
        1 => 0..0x0100_0000_u32,
    ]
}

fn ends() -> impl Strategy<Value = End> {
    let capacities = (1..=24u32, 1..=24u32, 1..=4u32, 1..=4u32, 0..=256u32);
    let end = (psns(), 1..=16u8, 0..=3u8, capacities);
    end.prop_map(|(sq_psn, max_rd_atomic, spare, most)| End {
        sq_psn,
        max_rd_atomic,
        spare_rd_atomic: spare.min(16 - max_rd_atomic),
        capacities: Capacities {
            send_wrs: most.0,
            recv_wrs: most.1,
            send_sges: most.2,
            recv_sges: most.3,
            inline_bytes: most.4,
        },
    })
}

fn setups(same_nic: bool) -> impl Strategy<Value = Setup> {
    let some_pairs = prop::collection::vec([ends(), ends()], 1..=MOST_PAIRS);
    let mtu = prop::sample::select(vec![256, 512, 1024, 2048, 4096u32]);
    let some_link = prop::sample::select(vec!["", "delay=2us", "rate=10G,delay=1us~1us"]);
    let setup = (any::<u64>(), some_link, any::<bool>(), mtu, some_pairs, 1..=6u8);
    setup.prop_map(move |(seed, link, one_cq, mtu_bytes, pairs, min_rnr_timer)| Setup {
        seed,
        link,
        same_nic,
        one_cq,
        mtu_bytes,
        pairs,
        min_rnr_timer,
        region_bytes: 1 << 20,
        ..Setup::plain()
    })
}

fn lengths() -> impl Strategy<Value = Length> {
    let lengths = prop_oneof![
        2 => (Just(0), 0..=9i32),
        4 => (Just(0), 1..=300i32),
        8 => (1..=5u32, -3..=3i32),
        1 => (Just(0), 65_530..=LONGEST_BYTES as i32),
    ];
    lengths.prop_map(|(packets, more)| Length(packets, more))
}

fn verbs() -> impl Strategy<Value = Verb> {
    prop_oneof![
        4 => Just(Verb::Send),
        4 => Just(Verb::Write),
        3 => Just(Verb::Read),
        1 => any::<u64>().prop_map(|add| Verb::FetchAdd { add }),
        1 => any::<(bool, u64)>().prop_map(|(hits, swap)| Verb::CompareSwap { hits, swap }),
    ]
}

fn requests() -> impl Strategy<Value = Request> {
    let cuts = || prop::collection::vec(any::<u16>(), 0..=3);
    let some_what = (verbs(), lengths(), cuts(), 0..=9usize);
    let often = prop::bool::weighted;
    let some_flags = (often(0.7), any::<bool>(), often(0.3), often(0.4));
    let some_immediate = prop::option::weighted(0.3, any::<u32>());
    let some_receive = (cuts(), prop_oneof![Just(0usize), 1..5usize, Just(257usize)]);
    let parts = (some_what, some_flags, some_immediate, some_receive);
    parts.prop_map(|(what, flags, immediate, receive)| Request {
        verb: what.0,
        length: what.1,
        cuts: what.2,
        gap: what.3,
        signaled: flags.0,
        inline: flags.1,
        fence: flags.2,
        chained: flags.3,
        immediate,
        receive_cuts: receive.0,
        receive_spare: receive.1,
    })
}

fn batches() -> impl Strategy<Value = Batch> {
    let some_requests = prop::collection::vec(requests(), 1..=4);
    let some_late = prop_oneof![4 => Just(0usize), 1 => 1..=4usize];
    let batch = (0..2 * MOST_PAIRS, some_requests, some_late, 0..40usize);
    batch.prop_map(|(end, requests, late, polls_before_late)| Batch {
        end,
        requests,
        late,
        polls_before_late,
    })
}

pub fn scenarios(same_nic: bool, most: usize) -> impl Strategy<Value = (Setup, Vec<Step>)> {
    let step = prop_oneof![
        20 => batches().prop_map(Step::Post),
        10 => (0..2usize, 1..=32usize).prop_map(|(side, count)| Step::Poll(side, count)),
        1 => (0..2usize).prop_map(Step::Sleep),
        2 => Just(Step::Quiesce),
    ];
    (setups(same_nic), prop::collection::vec(step, 1..=most))
}
