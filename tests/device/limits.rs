//! What a device or a machine cannot do comes back as a sentence with the limit, and exit code 2.

use testing::process::run;
use testing::program::Server;

#[test]
fn a_larger_mtu_than_the_ports() {
    let lower = |mtu: &str| {
        for interface in ["v0", "v1"] {
            run(&format!("ip link set {interface} mtu {mtu}"));
        }
    };
    let server = Server::start();
    lower("1500");
    let ended = server.call("-n 1 --warmup 0 -m 4096").run();
    let smaller = server.call("-n 9 --warmup 0 --verify").run();
    lower("4200");
    ended.exits(2).says(&["4096", "1024", "--mtu"]);
    let config = &smaller.exits(0).result().cases[0].config;
    assert_eq!(config.flows[0].path_mtu, Some(1024));
}
