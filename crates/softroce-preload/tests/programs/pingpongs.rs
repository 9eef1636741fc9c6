//! The four ping-pongs of ibverbs-utils.

use crate::pair::succeed;

#[test]
fn each_has_all_messages() {
    for (program, options, size, messages) in [
        ("ibv_rc_pingpong", "", 4096, 1000),
        ("ibv_rc_pingpong", "-e", 4096, 1000),
        // The extended interface, and stamps of completions.
        ("ibv_rc_pingpong", "-N", 4096, 500),
        ("ibv_rc_pingpong", "-N -e", 1, 500),
        ("ibv_rc_pingpong", "-t", 4096, 500),
        ("ibv_rc_pingpong", "-t -N", 1, 500),
        ("ibv_rc_pingpong", "-m 1024", 1, 100),
        ("ibv_rc_pingpong", "-m 1024", 1025, 100),
        ("ibv_rc_pingpong", "-m 256", 100_000, 100),
        ("ibv_rc_pingpong", "-m 4096", 1 << 20, 100),
        ("ibv_srq_pingpong", "", 4096, 1000),
        ("ibv_srq_pingpong", "-q 1", 65_536, 100),
        ("ibv_srq_pingpong", "-e", 4096, 1000),
        ("ibv_uc_pingpong", "", 4096, 1000),
        ("ibv_uc_pingpong", "-e", 4096, 1000),
        ("ibv_ud_pingpong", "", 2048, 1000),
        ("ibv_ud_pingpong", "-e", 2048, 1000),
    ] {
        // -c: they compare the bytes.
        let arguments = format!("-d soft0 -g 0 -c -s {size} -n {messages} {options}");
        let pair = succeed(program, &arguments);
        let bytes = format!("{} bytes in ", size * messages * 2);
        let times = format!("{messages} iters in ");
        for end in [&pair.server, &pair.client] {
            let is_told = [&bytes, &times].iter().all(|it| end.stdout.contains(*it));
            assert!(is_told, "{pair}");
        }
    }
}
