//! Figures of few and of many nodes, in the order that was asked for; what is slow is marked.

use results::sample::{
    loaded,
    mesh::{Mesh, Slow},
};

use super::{
    loads::{SVG, parsed},
    *,
};
use crate::show::{
    page::Page,
    plot::{figures::nodes, rows},
};

fn of(results: &[Loaded], racks: &Racks) -> Vec<Figure> {
    nodes::drawn(results, &rows::of_patterns(results), racks).figures
}

fn drawn(result: ResultFile) -> Vec<Figure> {
    of(&[loaded(result)], &Racks::default())
}

/// So many nodes a rack.
fn racks(nodes: usize, each: usize) -> Racks {
    let rack = |node: usize| format!("rack-in-room-2-{}", (node - 1) / each + 1);
    (1..=nodes).map(|node| (format!("node{node}"), rack(node))).collect()
}

fn ids(figures: &[Figure]) -> Vec<&str> {
    figures.iter().map(|figure| figure.id.as_str()).collect()
}

#[test]
fn figures_of_nodes_are_fit_to_be_seen_with_few_and_many() {
    let slow = |nodes| {
        let slow = vec![Slow::Sends(1, 0.6), Slow::Receives(0, 0.5)];
        Mesh { slow, ..Mesh::new(nodes) }
    };
    let long = |mut result: ResultFile| {
        let long = |name: &mut String| name.push_str(".a-cluster-with-a-long-name.example.com");
        for case in &mut result.cases {
            let ends = case
                .runs
                .iter_mut()
                .flat_map(|run| &mut run.flows)
                .flat_map(|flow| [&mut flow.from, &mut flow.to]);
            let configs = case.config.flows.iter_mut();
            ends.chain(configs.flat_map(|flow| [&mut flow.from, &mut flow.to])).for_each(long);
        }
        result.nodes.iter_mut().for_each(|node| long(&mut node.name));
        result
    };
    // Few nodes without racks and in racks of three, many in racks of sixteen.
    let few = [2, 3, 9, 16].map(|nodes| (nodes, vec![Racks::default(), racks(nodes, 3)]));
    let many = [64].map(|nodes| (nodes, vec![racks(nodes, 16)]));
    for (nodes, all_racks) in few.into_iter().chain(many) {
        let mut whole = slow(nodes);
        whole.runs = 1;
        let mesh = whole.clone().failing([(0, 1), (nodes - 1, 0)]);
        let patterns = [whole.ring(), whole.all_to_all(), long(whole.pairs())];
        for result in patterns.into_iter().chain([mesh.pairs()]) {
            let pattern = result.cases[0].config.pattern.clone();
            let results = [loaded(result)];
            for racks in &all_racks {
                let figures = of(&results, racks);
                assert!(!figures.is_empty() || nodes == 2, "{nodes} {pattern:?}");
                for figure in figures {
                    assert_eq!(unfit(&figure), [""; 0], "{nodes} {pattern:?} {}", figure.id);
                }
            }
        }
    }
}

#[test]
fn what_is_slow_is_marked_and_told_and_what_failed_is_hatched() {
    let mesh =
        Mesh::new(16).with(Slow::Receives(6, 0.59)).with(Slow::Pair(2, 8, 0.5)).failing([(0, 1)]);
    let figures = drawn(mesh.pairs());
    assert_eq!(ids(&figures), ["nodes-map-1", "nodes-strip-1"]);
    let (map, strip) = (&figures[0], &figures[1]);
    let bold = |figure: &Figure, name: &str| {
        let name = format!("font-weight=\"bold\">{name}<");
        figure.svg.matches(&name).count()
    };
    // A column's name, and both of a path's.
    assert_eq!(["7", "3", "9"].map(|name| bold(map, name)), [1, 1, 1]);
    has(&map.svg, ["no run that counts"]);
    // All of that round, which failed.
    assert_eq!(map.svg.matches(": no run that counts").count(), 8);
    let ends = ["to node7", "to node9"];
    assert_eq!(ends.map(|name| bold(strip, name)), [1, 0]);
    assert_eq!(map.tables[0].rows.len(), 16);
    assert_eq!(map.tables[0].rows[0][1..3], [Cell::Missing, Cell::Missing]);
    for figure in drawn(Mesh::new(16).pairs()) {
        assert_eq!(bold(&figure, "1"), 0);
        assert!(!figure.svg.contains("no run that counts"));
    }
}

#[test]
fn a_slow_row_has_its_numbers_however_small() {
    let figures = drawn(Mesh::new(16).with(Slow::Sends(3, 0.000_1)).all_to_all());
    let document = parsed(&figures[0]);
    // Of 16 rows of 15 cells, and the ticks of both axes.
    let words = document.descendants().filter(|it| it.has_tag_name((SVG, "text")));
    let numbers = words.filter_map(|it| it.text()?.parse::<f64>().ok());
    assert_eq!(numbers.count(), 16 * 15 + 2 * 16);
}

#[test]
fn open_loops_are_told_by_p99_and_closed_ones_where_it_tells_more() {
    let open_loops = drawn(Mesh::new(8).flag("rate", "50%").all_to_all());
    assert!(open_loops.iter().all(|figure| figure.title.starts_with("p99")));
    let mut file = Mesh::new(8).all_to_all();
    for run in &mut file.cases[0].runs {
        for flow in run.flows.iter_mut().filter(|flow| flow.to == "node4") {
            let latency = flow.latency_ns.as_mut().unwrap();
            latency.p99 = latency.p99.map(|p99| p99 * 5);
        }
    }
    let figures = drawn(file);
    let wanted = ["nodes-map-1", "nodes-p99-map-1", "nodes-strip-1"];
    assert_eq!(ids(&figures), wanted);
}

#[test]
fn in_lock_step_it_is_drawn_who_was_last_and_how_long_steps_took() {
    let results = [loaded(Mesh::lock_step([10, 12, 204, 30], 51_000.0))];
    let figures = of(&results, &Racks::default());
    assert_eq!(ids(&figures), ["nodes-steps-1"]);
    has(&figures[0].svg, ["node3: last in 80 % of the steps, its flows took 51.0 µs"]);
    let steps = specs::STEPS.figures(&rows::of_patterns(&results)[..]);
    assert_eq!(ids(&steps), ["step-percentiles"]);
    for figure in figures.iter().chain(&steps) {
        assert_eq!(unfit(figure), [""; 0], "{}", figure.id);
    }
}

#[test]
fn without_a_median_nothing_is_drawn() {
    let mut file = Mesh::new(8).all_to_all();
    for flow in file.cases[0].runs.iter_mut().flat_map(|run| &mut run.flows) {
        flow.totals.gbit_per_s = Some(0.0);
        flow.latency_ns = None;
    }
    assert_eq!(ids(&drawn(file)), [""; 0]);
}

#[test]
fn racks_part_the_map() {
    let results = [loaded(Mesh::new(12).pairs())];
    let racks: Racks =
        (1..=12).map(|node| (format!("node{node}"), format!("r{}", 3 - node % 3))).collect();
    let figures = of(&results, &racks);
    let order: Vec<&str> = figures[0].tables[0].columns[1..].iter().map(|it| &*it.name).collect();
    assert_eq!(order[..5], ["node2", "node5", "node8", "node11", "node1"]);
    assert_eq!(figures[0].svg.matches(">r2<").count(), 2);
    assert_eq!(figures[1].tables[0].rows[0][1], Cell::Text("r1".to_owned()));
}

#[test]
fn a_fan_is_a_curve_with_a_line_for_each_way_of_sharing_queues() {
    let of = |cq| {
        let mesh = Mesh::new(9).with(Slow::Sends(3, 0.5)).flag("cq", cq);
        mesh.incast(&[1, 2, 4, 8])
    };
    let mut both = of("shared");
    both.cases.extend(of("per-qp").cases);
    let figures = drawn(both);
    assert_eq!(ids(&figures), ["nodes-strip-1", "nodes-strip-2", "fan-in"]);
    let fan = &figures[2];
    assert_eq!(unfit(fan), [""; 0]);
    has(&fan.svg, [">CQ per-qp<", "Jain"]);
    assert_eq!(fan.tables[0].rows.len(), 8);
    let columns: Vec<&str> = fan.tables[0].columns.iter().map(|it| &*it.name).collect();
    let wanted = ["nodes that send", "Runs", "Gb/s", "p99 (µs)", "Jain"];
    assert_eq!(columns[1..], wanted);
    // One fan-in is no curve.
    assert_eq!(ids(&drawn(Mesh::new(5).incast(&[4]))), ["nodes-strip-1"]);
}

#[test]
fn flows_of_a_pattern_do_not_flood_other_figures_and_tables() {
    let mut mesh = Mesh::new(24).with(Slow::Sends(3, 0.5)).runs(1);
    mesh.histograms = true;
    let results = [loaded(mesh.pairs()), loaded(mesh.all_to_all())];
    let sums = rows::of_patterns(&results);
    let sections = plot::sections(&results, (&*sums).into(), None, &Racks::default());
    let figures: usize = sections.iter().map(|section| section.figures.len()).sum();
    assert!(figures <= 10, "{figures}");
    for figure in sections.iter().flat_map(|section| &section.figures) {
        assert_eq!(unfit(figure), [""; 0], "{}", figure.id);
        let lines = figure.svg.matches("node3&gt;").count();
        assert_eq!(lines, 0, "{} has lines of single flows", figure.id);
    }
    let text = plot::left_out(&results, None).join("\n");
    let words = "Only “Nodes” shows the flows of a pattern (--pattern) one by one";
    has(text, [words]);
    let page = Page { results: &results, sums: &sums, sections: &sections, ..Page::default() };
    // What is wrong stands before what was measured, nodes stand in place of rounds, and the flows of a case are one row.
    let html = page.html();
    // A table that is cut shows that it scrolls.
    assert_eq!(html.matches("<table").count(), html.matches("class=\"scroll\"").count());
    let nodes = html.find("<h2 class=\"drawn\" id=\"nodes\"").unwrap();
    has(&html[..nodes], ["<p class=\"answer\">", "node4 sends"]);
    let latency = html.find("<h2 id=\"latency\"");
    assert!(latency.is_none_or(|latency| nodes < latency));
    let (_, cases) = html.split_once("id=\"cases-table\"").unwrap();
    let (cases, _) = cases.split_once("</table>").unwrap();
    assert_eq!(cases.matches("<tr>").count(), 1 + 1);
    assert_eq!(html.matches("<table class=\"sortable\" id=\"nodes-table-").count(), 2);
}

/// Thirty nights of eight nodes, of which one sends less from the twenty-first on.
#[test]
fn a_node_that_slows_down_is_named_with_the_night_before_anything_else() {
    let nights: Vec<Loaded> = (1..=30)
        .map(|night| {
            let mesh = Mesh { seed: night, ..Mesh::new(8).runs(1).noise(0.03) };
            let slowed = if night < 21 { mesh } else { mesh.with(Slow::Sends(3, 0.7)) };
            let mut file = loaded(slowed.pairs());
            file.path = format!("{night}.json").into();
            file.result.started_at = format!("2026-11-{night:02}T02:00:00Z");
            file
        })
        .collect();
    let sums = rows::of_patterns(&nights);
    let sections = plot::sections(&nights, (&*sums).into(), None, &Racks::default());
    let trend = &sections[0];
    assert_eq!((trend.id, ids(&trend.figures)), ("trend", vec!["trend-of-nodes"]));
    assert_eq!(unfit(&trend.figures[0]), [""; 0]);
    let words = ["Since 2026-11-21 02:00 UTC node4 sends ", "less, beside the other nodes"];
    has(&trend.sentences[0], words);
    assert_eq!(trend.sentences.len(), 1, "{:?}", trend.sentences);
    let few = plot::steps(&nights[..6]);
    let none = "No node changed for sure beside the others in 6 files.";
    assert_eq!(few[0], none);
    has(&few[1], ["Too few files for a step: 6 of"]);
    for last in [15..21, 17..23, 19..25] {
        let named = &plot::steps(&nights[last])[0];
        has(named, [words[0], "less than before, beside the other nodes."]);
    }
}
