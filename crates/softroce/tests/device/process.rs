//! Devices of processes that exit and fork: functions of atexit(3) that use the device, the last acknowledgement,
//! and the child of a fork, which has its parent's devices in name only. Each test runs itself again as a child
//! process, which plays the other part.

use std::io::{self, BufRead, BufReader, Lines, Read, Write, pipe};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::{env, thread};

use rdma_sys::*;
use softroce::transport::{Nic, NicOptions, Operation, PostError, Status, Wire};
use softroce::verbs;

use crate::support::end::{self, End, Plan};
use crate::support::raw::{RC, blank, extended, one_end};

const PART: &str = "SOFTROCE_TEST_PART";
/// Begins the lines that a child tells its parent; the harness prints others.
const MARK: &str = "told: ";

/// Ends this process by a signal if it hangs: no child takes a tenth of this on an idle machine.
pub fn end_if_it_hangs() {
    const SECONDS: u32 = 60;
    // SAFETY: it has no preconditions.
    unsafe { libc::alarm(SECONDS) };
}

pub fn is_child() -> bool {
    let is_child = env::var_os(PART).is_some();
    if is_child {
        end_if_it_hangs();
    }
    is_child
}

pub fn tell(what: &str) {
    println!("\n{MARK}{what}");
    io::stdout().flush().unwrap();
}

pub struct Part {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Part {
    /// Starts the test that calls this again.
    pub fn start() -> Part {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", thread::current().name().unwrap(), "--nocapture"])
            .env(PART, "child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Part { child, lines }
    }

    pub fn reported(&mut self) -> String {
        let mut lines = self.lines.by_ref().map(|line| line.unwrap());
        let report = lines.find_map(|line| line.strip_prefix(MARK).map(str::to_owned));
        report.expect("the child ended before it reported that")
    }

    pub fn write(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

static ENDS: Mutex<Option<(End, End)>> = Mutex::new(None);

fn write_at_exit() {
    let ends = ENDS.lock().unwrap();
    let (a, b) = ends.as_ref().unwrap();
    a.post(0, b.write_to(0), &[a.sge(0, 64)]);
    a.succeeds(1);
}

/// A panic would end the process otherwise than with this number.
const WROTE: i32 = 17;

extern "C" fn at_exit() {
    write_at_exit();
    // SAFETY: ends the process.
    unsafe { libc::_exit(WROTE) };
}

#[test]
fn a_function_of_atexit_posts_and_polls() {
    if is_child() {
        *ENDS.lock().unwrap() = Some(end::pair(&Plan::default()));
        write_at_exit();
        // SAFETY: the function may be called at exit. The thread's storage is gone then.
        unsafe {
            assert_eq!(libc::atexit(at_exit), 0);
            libc::exit(0);
        }
    }
    assert_eq!(Part::start().end().code(), Some(WROTE));
}

fn name(end: &End) -> String {
    format!("{} {}", end.nic.address(), end.qps[0].number())
}

fn connect(end: &End, name: &str) {
    let (address, qpn) = name.trim().split_once(' ').unwrap();
    let address: IpAddr = address.parse().unwrap();
    end.connect_to(&end.qps[0], address, qpn.parse().unwrap(), 0);
}

fn receive_and_exit() -> ! {
    let one = End::new(&Plan::default());
    tell(&name(&one));
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    connect(&one, &line);
    one.qps[0].post_recv(1, &[one.sge(0, 64)]).unwrap();
    tell("ready");
    one.completion();
    std::process::exit(0)
}

#[test]
fn the_last_message_of_a_process_is_acknowledged() {
    const TIMES: usize = 10;
    if is_child() {
        receive_and_exit();
    }
    for _ in 0..TIMES {
        let one = End::new(&Plan::default());
        let mut child = Part::start();
        connect(&one, &child.reported());
        child.write(&name(&one));
        child.reported();
        one.post(0, Operation::Send, &[one.sge(0, 64)]);
        one.succeeds(1);
        assert!(child.end().success());
    }
}

/// Forks; the child does this and exits. Returns how it exited; `None` if a signal ended it, as one that hangs.
fn fork(body: impl FnOnce() -> i32) -> Option<i32> {
    ends(start(body))
}

/// The number of a child that does this and exits.
fn start(body: impl FnOnce() -> i32) -> libc::pid_t {
    // SAFETY: the child uses what a fork leaves usable, which is what is tested.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        end_if_it_hangs();
        let code = body();
        // SAFETY: ends the child without the parent's functions of atexit(3).
        unsafe { libc::_exit(code) };
    }
    child
}

fn ends(child: libc::pid_t) -> Option<i32> {
    let mut status = 0;
    // SAFETY: a child of this process, and a writable int.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

fn write(a: &End, b: &End) -> Status {
    a.post(0, b.write_to(0), &[a.sge(0, 64)]);
    a.completion().status
}

/// Runs a test as a process of its own: others would fork with it.
fn alone(body: impl FnOnce()) {
    const DONE: i32 = 33;
    if is_child() {
        body();
        // A test that is not found succeeds too.
        std::process::exit(DONE);
    }
    assert_eq!(Part::start().end().code(), Some(DONE));
}

#[test]
fn the_child_fails_and_may_open_its_own() {
    alone(|| {
        let plan = Plan { wire: Wire::Memory, ..Plan::default() };
        let (a, b) = end::pair(&plan);
        assert_eq!(write(&a, &b), Status::Success);
        let in_child = fork(|| {
            // SAFETY: there is nothing to post.
            let posted = unsafe { a.qps[0].post_send(|| None) };
            let refused = posted == Err(PostError::Process)
                && a.qps[0].post_recv(1, &[]) == Err(PostError::Process)
                && a.cq.poll(1, |_| ()).is_err();
            let (c, d) = end::pair(&plan);
            let works = write(&c, &d) == Status::Success;
            let parents = c.nic.wire_to(b.nic.address(), b.qps[0].number());
            drop((c, d));
            let is_apart = parents == Wire::Udp;
            i32::from(refused) + 2 * i32::from(works) + 4 * i32::from(is_apart)
        });
        assert_eq!(in_child, Some(7));
        assert_eq!(write(&a, &b), Status::Success, "the parent goes on");
    });
}

/// At an address that no other test takes meanwhile.
#[test]
fn the_child_keeps_neither_the_address_nor_a_service() {
    alone(|| {
        let options =
            NicOptions { address: Some(IpAddr::from([127, 200, 7, 1])), ..NicOptions::default() };
        let nic = Nic::open(&options).unwrap();
        let claim = nic.claim(7).unwrap();
        let (mut ready, mut signal) = pipe().unwrap();
        let (mut stay, go) = pipe().unwrap();
        let mut go = Some(go);
        let child = start(|| {
            drop(go.take());
            // It lets go of the sockets when its `fork` returns, which may be after the parent's.
            signal.write_all(b"1").unwrap();
            // Until the parent lets it go.
            let _ = stay.read(&mut [0]);
            0
        });
        drop(signal);
        drop((claim, nic));
        ready.read_exact(&mut [0]).unwrap();
        // A program that does not share addresses could have it now.
        let taken = UdpSocket::bind("127.200.7.1:4791").map(drop);
        assert_eq!(taken.err().map(|error| error.to_string()), None);
        let opened = Nic::open(&options).unwrap();
        let claimed = opened.claim(7);
        assert_eq!(claimed.err().map(|error| error.to_string()), None);
        drop(go);
        ends(child);
    });
}

#[test]
fn a_device_that_is_dropped_in_the_child_does_not_hang() {
    alone(|| {
        let options = NicOptions::default();
        let mut nic = Some(Nic::open(&options).unwrap());
        let in_child = fork(|| {
            drop(nic.take());
            4
        });
        assert_eq!(in_child, Some(4));
    });
}

#[test]
fn verbs_fail_in_the_child_instead_of_waiting() {
    alone(|| {
        let end = one_end();
        let (qp, mr) = (end.qp(RC), end.region(0, 64, 1));
        let limit_rate = extended(end.context.raw).modify_qp_rate_limit.unwrap();
        let (mut rate, mut wc): (ibv_qp_rate_limit_attr, ibv_wc) = (blank(), blank());
        let (mut attr, mut init): (ibv_qp_attr, ibv_qp_init_attr) = (blank(), blank());
        attr.qp_state = ibv_qp_state::IBV_QPS_ERR;
        // SAFETY: live objects throughout, and structs of plain data.
        let in_child = fork(|| unsafe {
            let outcomes = [
                verbs::modify_qp(qp.raw, &raw mut attr, 1),
                verbs::query_qp(qp.raw, &raw mut attr, 0, &raw mut init),
                limit_rate(qp.raw, &raw mut rate),
                verbs::dereg_mr(mr.raw),
                verbs::destroy_qp(qp.raw),
                verbs::destroy_cq(end.cq.raw),
                verbs::close_device(end.context.raw),
            ];
            let failed = outcomes.iter().filter(|outcome| **outcome == libc::EIO);
            let polled = ibv_poll_cq(end.cq.raw, 1, &raw mut wc);
            let made = verbs::reg_mr(end.pd.raw, mr.addr, 64, 1);
            failed.count() as i32 + i32::from(polled < 0) + i32::from(made.is_null())
        });
        assert_eq!(in_child, Some(9));
    });
}

/// The device as it was listed before the fork.
#[test]
fn a_child_gets_the_address_that_it_asks_for_or_is_told() {
    alone(|| {
        // SAFETY: the list is not freed; the device lives as long as the process.
        let device = unsafe { *verbs::get_device_list(null_mut()) };
        let open = |address: &str| {
            // SAFETY: a child of a fork has one thread.
            unsafe { env::set_var("SOFTROCE_ADDRESS", address) };
            // SAFETY: from the list.
            let context = unsafe { verbs::open_device(device) };
            if context.is_null() {
                return io::Error::last_os_error().raw_os_error().unwrap_or(0);
            }
            let mut gid: ibv_gid = blank();
            // SAFETY: an open context; both members of the union are the same bytes.
            let last = unsafe {
                verbs::query_gid(context, 1, 0, &raw mut gid);
                gid.raw[12..].try_into().unwrap()
            };
            let is_it = address.parse() == Ok(Ipv4Addr::from_octets(last));
            if is_it { 100 } else { 101 }
        };
        // Of the process, so that no two take one.
        let process = std::process::id();
        let own = format!("127.77.{}.{}", process >> 8 & 0xff, process & 0xff);
        for (address, expected) in
            [(own.as_str(), 100), ("192.0.2.77", libc::EINVAL), ("", libc::EINVAL)]
        {
            assert_eq!(fork(|| open(address)), Some(expected), "{address:?}");
        }
    });
}
