//! Commands whose facts are words and values: the files in `tables`.

use testing::embedded_device::place_beside_the_program;
use testing::table::holds;

#[test]
fn transfers() {
    holds("tests/embedded/tables/transfers.txt");
}

#[test]
fn memory() {
    holds("tests/embedded/tables/memory.txt");
}

#[test]
fn losses() {
    holds("tests/embedded/tables/losses.txt");
}

#[test]
fn why() {
    holds("tests/embedded/tables/why.txt");
}

#[test]
fn ping_pong() {
    holds("tests/embedded/tables/ping_pong.txt");
}

#[test]
fn check() {
    holds("tests/embedded/tables/check.txt");
}

#[test]
fn networks() {
    holds("tests/embedded/tables/networks.txt");
}

#[test]
fn refused() {
    place_beside_the_program();
    holds("tests/embedded/tables/refused.txt");
}

#[test]
fn accept() {
    holds("tests/embedded/tables/accept.txt");
}

#[test]
fn recipes() {
    holds("tests/embedded/tables/recipes.txt");
}

#[test]
fn lessons() {
    holds("tests/embedded/tables/lessons.txt");
}
