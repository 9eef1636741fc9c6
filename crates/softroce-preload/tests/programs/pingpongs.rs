//! The four ping-pongs of ibverbs-utils.

use crate::pair::succeed;

fn play(program: &str, cases: &[(&str, u64, u64)]) {
    for (options, size, messages) in cases {
        // -c: they compare the bytes.
        let arguments = format!("-d soft0 -g 0 -c -s {size} -n {messages} {options}");
        let pair = succeed(program, &arguments);
        let wanted = [
            format!("{} bytes in ", size * messages * 2),
            format!("{messages} iters in "),
        ];
        for end in [&pair.server, &pair.client] {
            let is_told = wanted.iter().all(|words| end.stdout.contains(words));
            assert!(is_told, "{pair}");
        }
    }
}

#[test]
fn rc() {
    play(
        "ibv_rc_pingpong",
        &[
            ("", 4096, 1000),
            ("-e", 4096, 1000),
            // The extended interface, and stamps of completions.
            ("-N", 4096, 500),
            ("-N -e", 1, 500),
            ("-t", 4096, 500),
            ("-t -N", 1, 500),
            ("-m 1024", 1, 100),
            ("-m 1024", 1025, 100),
            ("-m 256", 100_000, 100),
            ("-m 4096", 1 << 20, 100),
        ],
    );
}

#[test]
fn srq() {
    let cases = [("", 4096, 1000), ("-q 1", 65_536, 100), ("-e", 4096, 1000)];
    play("ibv_srq_pingpong", &cases);
}

#[test]
fn unreliable_services() {
    play("ibv_uc_pingpong", &[("", 4096, 1000), ("-e", 4096, 1000)]);
    play("ibv_ud_pingpong", &[("", 2048, 1000), ("-e", 2048, 1000)]);
}
