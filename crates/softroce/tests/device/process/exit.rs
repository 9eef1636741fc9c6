//! What happens after `main`: functions of atexit(3) that use the device, and the last acknowledgement.

use std::net::IpAddr;
use std::sync::Mutex;

use softroce::transport::Operation;

use super::child::{Part, is_child, tell};
use crate::support::end::{self, End, Plan};

static ENDS: Mutex<Option<(End, End)>> = Mutex::new(None);

fn write() {
    let ends = ENDS.lock().unwrap();
    let (a, b) = ends.as_ref().unwrap();
    a.post(0, b.write_to(0), &[a.sge(0, 64)]);
    a.succeeds(1);
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
    std::io::stdin().read_line(&mut line).unwrap();
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
        connect(&one, &child.told());
        child.write(&name(&one));
        child.told();
        one.post(0, Operation::Send, &[one.sge(0, 64)]);
        one.succeeds(1);
        assert!(child.end().success());
    }
}
