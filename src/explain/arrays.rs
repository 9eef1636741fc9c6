//! Shows the connection arrays of both ends side by side.

use crate::lesson::Array;
use crate::protocol::endpoints::QpEndpoint;
use report::text::printable;
use verbs::Gid;

use super::columns::{padded, width};
use super::text::{Key, Language};

/// The most QPs shown; a peer may send any number.
const MOST_QPS: usize = 4;

/// Stands for a value that an end did not send.
const NOTHING: &str = "–";

type Value = fn(&QpEndpoint) -> String;

/// The lines of the table.
pub(super) fn lines(array: &Array, language: Language) -> Vec<String> {
    let ends = [&array.ours, &array.theirs];
    let mut rows = vec![[
        String::new(),
        language.text(Key::ThisEnd).to_owned(),
        language.text(Key::OtherEnd).to_owned(),
    ]];
    let [ours, theirs] = ends.map(|end| gid(&end.gid));
    rows.push([language.text(Key::RowGid).to_owned(), ours, theirs]);
    let [ours, theirs] = ends.map(|end| end.mtu_bytes.to_string());
    rows.push([language.text(Key::RowMtu).to_owned(), ours, theirs]);
    let most = ends.map(|end| end.qps.len()).into_iter().max().unwrap_or(0);
    let values: [(Key, Value); 5] = [
        (Key::RowQpn, |qp| format!("{:#08x}", qp.qpn)),
        (Key::RowPsn, |qp| format!("{:#08x}", qp.psn)),
        (Key::RowAddress, |qp| offered(qp, format!("{:#x}", qp.address))),
        (Key::RowRkey, |qp| offered(qp, format!("{:#x}", qp.rkey))),
        (Key::RowLength, |qp| offered(qp, qp.length.to_string())),
    ];
    for index in 0..most.min(MOST_QPS) {
        let number = if most > 1 { format!("QP {index}: ") } else { String::new() };
        for (key, value) in values {
            let [ours, theirs] =
                ends.map(|end| end.qps.get(index).map_or(NOTHING.to_owned(), value));
            rows.push([format!("{number}{}", language.text(key)), ours, theirs]);
        }
    }
    let columns =
        [0, 1].map(|place| rows.iter().map(|row| width(&row[place])).max().unwrap_or(0) + 2);
    rows.iter()
        .map(|[name, ours, theirs]| {
            let line = padded(name, columns[0]) + &padded(ours, columns[1]) + theirs;
            line.trim_end().to_owned()
        })
        .collect()
}

/// Shows an address only for memory that a peer may access.
fn offered(qp: &QpEndpoint, text: String) -> String {
    match qp.length {
        0 => NOTHING.to_owned(),
        _ => text,
    }
}

fn gid(text: &str) -> String {
    Gid::parse(text).map_or_else(|| printable(text, 45), |gid| gid.to_string())
}
