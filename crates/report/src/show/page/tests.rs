//! The page of a pattern over many nodes.

use crate::results::sample::has;
use crate::results::sample::loaded;
use crate::results::sample::mesh::{Mesh, Slow};
use crate::show::page::Page;
use crate::show::plot::figures::nodes::Racks;
use crate::show::plot::{sections, sums};

/// What is wrong stands before what was measured, and the flows of a round are one row.
#[test]
fn nodes_come_first_and_flows_of_patterns_do_not_flood_the_table() {
    let mut mesh = Mesh::of(24).with(Slow::Sends(3, 0.5)).runs(1);
    mesh.histograms = true;
    let results = [loaded(mesh.pairs()), loaded(mesh.all_to_all())];
    let sums = sums::of_patterns(&results);
    let sections = sections::sections(&results, (&*sums).into(), None, &Racks::default());
    let page = Page {
        results: &results,
        sums: &sums,
        sections: &sections,
        ..Page::default()
    };
    let html = page.html();
    let nodes = html.find("<h2 class=\"drawn\" id=\"nodes\"").unwrap();
    let (answers, _) = html[nodes..].split_once("<figure").unwrap();
    has(answers, ["node4 sends"]);
    let latency = html.find("<h2 id=\"latency\"");
    assert!(latency.is_none_or(|latency| nodes < latency));
    let cases = &html[html
        .find("<table class=\"sortable\" id=\"cases-table\"")
        .unwrap()..];
    let (cases, _) = cases.split_once("</table>").unwrap();
    assert_eq!(cases.matches("<tr>").count(), 1 + 46 + 1);
}
