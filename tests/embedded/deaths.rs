//! An end dies or falls silent at each step of a session.

use testing::deaths::{
    CONNECT, DRAIN, Death, HANDSHAKE, IN_THE_WINDOW, TRAFFIC, at, clients_get, first, servers_get,
};
use testing::program::Signal;
use testing::proxy::From;
use testing::server::EMBEDDED;

fn killed_servers(deaths: &[Death], more: &[&str]) {
    servers_get(EMBEDDED, Signal::Kill, deaths, more);
}

fn killed_clients(deaths: &[Death], more: &[&str]) {
    clients_get(EMBEDDED, Signal::Kill, deaths, more);
}

#[test]
fn server_killed_in_handshake() {
    killed_servers(&HANDSHAKE, &[]);
}

#[test]
fn server_killed_in_connect() {
    killed_servers(&CONNECT, &[]);
}

#[test]
fn server_killed_in_warm_up_or_measurement() {
    killed_servers(&TRAFFIC, &[]);
}

#[test]
fn server_killed_in_drain() {
    killed_servers(&DRAIN, &[]);
}

#[test]
fn server_killed_under_every_operation() {
    for op in ["write", "read"] {
        killed_servers(&[IN_THE_WINDOW], &["--op", op, "-b"]);
    }
}

#[test]
fn server_falls_silent() {
    let deaths = [at(From::Client, "prepare"), IN_THE_WINDOW, DRAIN[0]];
    servers_get(EMBEDDED, Signal::Stop, &deaths, &[]);
}

#[test]
fn client_killed_in_handshake() {
    killed_clients(&HANDSHAKE, &[]);
}

#[test]
fn client_killed_in_connect() {
    killed_clients(&CONNECT, &[]);
}

#[test]
fn client_killed_in_warm_up_or_measurement() {
    killed_clients(&TRAFFIC, &[]);
}

#[test]
fn client_killed_in_drain_or_report() {
    // After the last run's `run_done` a client may say goodbye before it is gone.
    let report = [
        at(From::Client, "finish"),
        at(From::Server, "report"),
        first(From::Client, "run_done"),
    ];
    killed_clients(&[&DRAIN[..], &report].concat(), &[]);
}

#[test]
fn client_killed_in_both_directions() {
    for op in ["send", "write", "read"] {
        killed_clients(&[IN_THE_WINDOW], &["--op", op, "-b"]);
    }
}

#[test]
fn client_falls_silent() {
    let deaths = [at(From::Client, "prepare"), Death::In("warm-up"), DRAIN[1]];
    clients_get(EMBEDDED, Signal::Stop, &deaths, &[]);
}
