//! Machines whose network is not the usual one: another default of the system, addresses that come and go, another machine.

use testing::own_network::{LOOPBACK, in_own_network};
use testing::process::{STEP, Signal, run};
use testing::program::{Server, call, call_by};
use testing::table::holds;
use testing::wait::wait_until;

const IPV6_ONLY_BY_DEFAULT: &str =
    "ip link set lo up && echo 1 >/proc/sys/net/ipv6/bindv6only && exec \"$@\"";

#[test]
fn ipv4_reaches_servers_where_sockets_of_ipv6_take_none_by_default() {
    let own = "own_networks::ipv4_reaches_servers_where_sockets_of_ipv6_take_none_by_default";
    in_own_network(own, IPV6_ONLY_BY_DEFAULT, || holds("tests/embedded/tables/ipv4.txt"));
}

#[test]
fn a_port_whose_interface_is_down_is_down() {
    let own = "own_networks::a_port_whose_interface_is_down_is_down";
    in_own_network(own, "exec \"$@\"", || holds("tests/embedded/tables/down.txt"));
}

#[test]
fn faults_of_nodes_are_named() {
    let own = "own_networks::faults_of_nodes_are_named";
    in_own_network(own, LOOPBACK, || holds("tests/embedded/tables/planted.txt"));
}

/// The kernel takes a moment to see that both ends of a pair are up.
fn await_carrier(before: &str, interface: &str) {
    let is_up = || run(&format!("{before}ip link show {interface}")).contains("state UP");
    wait_until("a carrier", STEP, is_up);
}

/// Without link-local addresses, so that the first address is that of `soft1`.
const WITHOUT_LINK_LOCAL: &str = "ip link set lo up && \
    echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 && \
    ip link add here up type veth peer name there && ip link set there up && exec \"$@\"";

#[test]
fn each_session_has_the_addresses_of_its_time() {
    let own = "own_networks::each_session_has_the_addresses_of_its_time";
    in_own_network(own, WITHOUT_LINK_LOCAL, || {
        await_carrier("", "here");
        // It begins before there is any address, on a further device of loopback.
        let server = Server::embedded("-d soft1");
        for address in ["192.0.2.2", "192.0.2.3"] {
            run(&format!("ip address add {address}/24 dev here"));
            let words = "-d soft1 -n 5 --warmup 0 --timeout 18";
            let ended = call(&format!("{} {words}", server.name)).is_whole(1);
            for node in ended.result().nodes {
                assert_eq!(node.devices[0].gid, Some(format!("::ffff:{address}")));
            }
            run(&format!("ip address del {address}/24 dev here"));
        }
        server.end();
    });
}

/// The server is in a namespace of its own, which gets an address when it serves already.
#[test]
fn loopback_is_refused_where_the_other_end_is_another_machine() {
    let own = "own_networks::loopback_is_refused_where_the_other_end_is_another_machine";
    in_own_network(own, LOOPBACK, || {
        let apart = call_by("unshare --net sh there.sh", "serve -p 0");
        let server = Server::embedded_by(apart.with_file("there.sh", LOOPBACK));
        let pid = server.program.pid();
        run(&format!("ip link add here type veth peer name there netns {pid}"));
        let there = format!("nsenter --target {pid} --net ");
        let ends = [("", "here", "192.0.2.1"), (&*there, "there", "192.0.2.2")];
        for (before, interface, address) in ends {
            run(&format!("{before}ip address add {address}/24 dev {interface}"));
            run(&format!("{before}ip link set {interface} up"));
        }
        for (before, interface, _) in ends {
            await_carrier(before, interface);
        }
        let words = format!("192.0.2.2:{} -n 5 --warmup 0 --timeout 18", server.port);
        let ended = call(&words).is_whole(1);
        let gids = ended.result().nodes.into_iter().map(|node| node.devices[0].gid.clone());
        let expected = ["::ffff:192.0.2.1", "::ffff:192.0.2.2"].map(|gid| Some(gid.to_owned()));
        assert_eq!(gids.collect::<Vec<_>>(), expected);
        let refused = call(&format!("{words} -d soft0")).is_refused(&[
            "soft0 is on loopback, and 192.0.2.2 is another machine",
            "--device soft1",
        ]);
        assert!(refused.json().is_null(), "before any run");
        server.end();
    });
}

/// Nobody else takes a port of this network.
#[test]
fn servers_that_start_later_are_waited_for() {
    let own = "own_networks::servers_that_start_later_are_waited_for";
    in_own_network(own, LOOPBACK, || {
        let client = |words: &str| {
            call(&format!("{words} -n 5 --warmup 0 -s 64 --timeout 18 --wait-for-server 10m"))
        };
        let serve = |port: u16| Server::embedded_by(call(&format!("serve -d soft0 -p {port}")));
        let waiting = "waiting for the server, ";

        let ends = client("127.0.0.1:7001 -d soft0").start();
        ends.has_said(waiting);
        let first = serve(7001);
        ends.wait().exits(0).says(&["connecting to 127.0.0.1:7001: Connection refused"]);

        // One of two nodes is there.
        let mesh = client("mesh --nodes 127.0.0.1:7001,127.0.0.1:7002").start();
        mesh.has_said("connecting to 127.0.0.1:7002: Connection refused");
        let second = serve(7002);
        mesh.wait().exits(0);
        first.end();
        second.end();

        let stopped = client("127.0.0.1:7001").start();
        stopped.has_said(waiting);
        stopped.signal(Signal::Interrupt);
        stopped.wait().exits(1).says(&["interrupted"]);
        call("127.0.0.1:7001 --wait-for-server 1ms")
            .fails(&["waited 0.001 s for the server: connecting to", "start `rocebench serve`"]);
        call("doctor 127.0.0.1:7001 --wait-for-server 1ms").run().exits(1);
    });
}
