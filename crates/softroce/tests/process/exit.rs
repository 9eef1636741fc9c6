//! What happens after `main`: functions of atexit(3) that use the device, and the last acknowledgement.

use std::io::{BufRead, BufReader, Write};
use std::sync::Mutex;

use softroce::transport::{Operation, Status};

use crate::child::{end, is_child, start};
use crate::completion::completion;
use crate::end::{self, End, Plan};

static ENDS: Mutex<Option<(End, End)>> = Mutex::new(None);

fn write() {
    let ends = ENDS.lock().unwrap();
    let (a, b) = ends.as_ref().unwrap();
    let target = Operation::Write {
        address: b.address(0),
        rkey: b.key,
    };
    a.post(0, target, &[a.sge(0, 64)]);
    assert_eq!(completion(a).status, Status::Success);
}

/// A panic would end the process otherwise than with this number.
const WROTE: i32 = 17;

extern "C" fn at_exit() {
    write();
    // SAFETY: ends the process.
    unsafe { libc::_exit(WROTE) };
}

#[test]
fn a_function_of_atexit_posts_and_polls() {
    if is_child() {
        *ENDS.lock().unwrap() = Some(end::pair(&Plan::default()));
        write();
        // SAFETY: the function may be called at exit. The thread's storage is gone then.
        unsafe {
            assert_eq!(libc::atexit(at_exit), 0);
            libc::exit(0);
        }
    }
    let child = start("exit::a_function_of_atexit_posts_and_polls");
    assert_eq!(end(child).code(), Some(WROTE));
}

/// Of a QP: its address, number, and nothing else that a SEND needs.
pub fn words(text: &str) -> (std::net::IpAddr, u32) {
    let mut words = text.split_whitespace();
    let address = words.next().unwrap().parse().unwrap();
    (address, words.next().unwrap().parse().unwrap())
}

/// Begins the lines that a child tells its parent.
pub const MARK: &str = "connect to";

/// A child's end, connected to the one that the parent tells.
pub fn child_end(plan: &Plan) -> End {
    let one = End::new(plan);
    println!("\n{MARK} {} {}", one.nic.address(), one.qps[0].number());
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let (address, qpn) = words(&line);
    one.connect_to(&one.qps[0], address, qpn, 0);
    one
}

/// Receives one message and exits at once.
fn receive_and_exit(plan: &Plan) -> ! {
    let one = child_end(plan);
    one.qps[0].post_recv(1, &[one.sge(0, 64)]).unwrap();
    println!("\n{MARK} nothing more");
    completion(&one);
    std::process::exit(0)
}

#[test]
fn the_last_message_of_a_process_is_acknowledged() {
    const TIMES: usize = 20;
    let mut plan = Plan::default();
    plan.deliveries.timeout = 13;
    if is_child() {
        receive_and_exit(&plan);
    }
    for _ in 0..TIMES {
        let one = End::new(&plan);
        let mut child = start("exit::the_last_message_of_a_process_is_acknowledged");
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().filter_map(|line| {
            let line = line.unwrap();
            line.strip_prefix(MARK).map(str::to_owned)
        });
        let (address, qpn) = words(&lines.next().unwrap());
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{} {}", one.nic.address(), one.qps[0].number()).unwrap();
        one.connect_to(&one.qps[0], address, qpn, 0);
        lines.next().unwrap();
        one.post(0, Operation::Send, &[one.sge(0, 64)]);
        assert_eq!(completion(&one).status, Status::Success);
        assert!(end(child).success());
    }
}
