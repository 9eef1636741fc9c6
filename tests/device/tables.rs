//! Commands whose facts are words and values: the files in `tables`.

use testing::table::holds_on_rxe;

#[test]
fn operations() {
    holds_on_rxe("tests/device/tables/operations.txt");
}

#[test]
fn refused() {
    holds_on_rxe("tests/device/tables/refused.txt");
}

#[test]
fn lessons() {
    holds_on_rxe("tests/device/tables/lessons.txt");
}
