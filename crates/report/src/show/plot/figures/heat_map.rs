//! Figure: what more QPs bring at each size, a map for each operation, device and layout of CQs: throughput as a share
//! of the best number of QPs. Colours of cells by how large a share is.

use std::collections::{BTreeMap, BTreeSet};

use results::{
    load::Loaded,
    model::{CaseFlow, CaseResult},
};
use settings::{CqMode, ROWS, Settings, Workload};

use crate::observe::{Metric, Observed, format::human_size};
use crate::show::plot::{
    draw::{
        Key, KeyMark,
        palette::{Colour, GROUND, INK, MAP, SeriesStyle},
    },
    figure::{Cell, Figure, Picture, Table},
    marks::{Axis, Chart, Fill, Mark, Tile},
    rows::groups::distinct,
};

/// Maps that are drawn; of more, those whose cells differ most.
const MOST_MAPS: usize = 9;
/// Least and most width of a cell, and its height.
const CELL_PX: (f64, f64) = (30.0, 64.0);
const ROW_PX: f64 = 22.0;
/// The first step of the map on which text has the ground's colour instead of the ink's.
const DARK_STEP: usize = 6;

/// An operation on a device with one layout of completion queues.
#[derive(Default)]
struct Grid {
    /// Of all cases: one that failed leaves a gap.
    qps: BTreeSet<u32>,
    sizes: BTreeSet<u32>,
    /// By QPs and size: throughput of the best case in Gb/s, and how many cases there are.
    cells: BTreeMap<(u32, u32), (f64, usize)>,
}

impl Grid {
    /// A cell's throughput over that of the best of its size.
    fn share(&self, qps: u32, size: u32) -> Option<f64> {
        let best = self
            .cells
            .iter()
            .filter(|(place, _)| place.1 == size)
            .map(|(_, cell)| cell.0)
            .fold(0.0, f64::max);
        Some(self.cells.get(&(qps, size))?.0 / best)
    }

    fn shares(&self) -> impl Iterator<Item = f64> {
        self.cells.keys().filter_map(|(qps, size)| self.share(*qps, *size))
    }

    fn has_two_of_a_size(&self) -> bool {
        let sizes: BTreeSet<u32> = self.cells.keys().map(|place| place.1).collect();
        sizes.len() < self.cells.len()
    }

    /// With two numbers of QPs at a size, by device, operation and layout.
    fn of_results(results: &[Loaded]) -> Vec<([String; 3], Grid)> {
        let mut rows: BTreeMap<_, Vec<CaseFlow<'_>>> = BTreeMap::new();
        for flow in
            results.iter().flat_map(|loaded| &loaded.result.cases).flat_map(CaseResult::flows)
        {
            let settings = &flow.settings;
            // What many nodes move together is no share of a link.
            let is_one = settings.pattern.is_none() && settings.size_mix.is_none();
            if is_one && settings.is_closed_loop() && !settings.is_set_up() {
                let op = Workload::ALL.iter().position(|op| *op == settings.op);
                let cq = CqMode::ALL.iter().position(|cq| *cq == settings.cq);
                let key = ((device(&flow), op, cq), settings.size_bytes, others(settings));
                rows.entry(key).or_default().push(flow);
            }
        }
        let mut grids: BTreeMap<_, ([String; 3], Grid)> = BTreeMap::new();
        for ((key, size, _), flows) in rows {
            let qps: BTreeSet<u32> = flows.iter().map(|flow| flow.settings.qps).collect();
            if qps.len() < 2 {
                continue;
            }
            let (words, grid) = grids.entry(key).or_default();
            let settings = &flows[0].settings;
            *words =
                [settings.op.name(), &device(&flows[0]), settings.cq.name()].map(str::to_owned);
            grid.qps.extend(qps);
            grid.sizes.insert(size);
            for flow in flows {
                let place = (flow.settings.qps, size);
                let rate = Observed::new(flow).median(Metric::GbitPerS);
                if let Some(rate) = rate.filter(|rate| *rate > 0.0) {
                    let cell = grid.cells.entry(place).or_default();
                    *cell = (cell.0.max(rate), cell.1 + 1);
                }
            }
        }
        grids.into_values().filter(|(_, grid)| grid.has_two_of_a_size()).collect()
    }

    fn chart(&self, heading: String, shades: &[Shade]) -> Chart {
        let rows: Vec<u32> = self.qps.iter().rev().copied().collect();
        let tiles = rows.iter().enumerate().flat_map(|(row, qps)| {
            self.sizes.iter().enumerate().map(move |(column, size)| {
                let at = (column as f64, -(row as f64));
                self.tile((*qps, *size), at, shades)
            })
        });
        let marks = vec![Mark::Tiles(tiles.collect())];
        let sizes = self.sizes.iter().map(|size| human_size(u64::from(*size)));
        let axes =
            (Axis::columns("size", sizes), Axis::rows("QPs", rows.iter().map(u32::to_string)));
        Chart { heading, ..Chart::of_cells(CELL_PX, ROW_PX, axes, marks) }
    }

    fn tile(&self, (qps, size): (u32, u32), (x, y): (f64, f64), shades: &[Shade]) -> Tile {
        let ends = (x - 0.5, x + 0.5);
        let Some((share, cell)) = self.share(qps, size).zip(self.cells.get(&(qps, size))) else {
            return Tile::new(y, ends, Fill::Hatched, NOT_MEASURED);
        };
        let (percent, size) = (share * 100.0, human_size(u64::from(size)));
        let Shade { colour, ink, .. } = Shade::at(shades, share);
        // A digit after the point below ten.
        let digits = usize::from(percent < 9.95);
        let hint = format!("{qps} QPs, {size}: {percent:.1} %, {:.3} Gb/s", cell.0);
        Tile {
            within: Some((format!("{percent:.digits$}"), *ink)),
            ..Tile::new(y, ends, Fill::Plain(*colour), hint)
        }
    }
}

const NOT_MEASURED: &str = "not measured";

fn device(flow: &CaseFlow<'_>) -> String {
    let device = flow.config.and_then(|config| config.from_device.clone());
    device.unwrap_or_default()
}

/// All settings but QPs, size, and those that may follow from them: a single QP that was measured with another send depth
/// only says nothing about QPs.
fn others(settings: &Settings) -> Vec<String> {
    ROWS.iter()
        .filter(|row| {
            let follows = row.may_follow && row.flag != "tx-depth";
            !follows && !row.may_differ && !["qps", "size"].contains(&row.flag)
        })
        .map(|row| row.text(settings))
        .collect()
}

pub(super) fn or_unknown(device: &str) -> &str {
    match device {
        "" => "an unknown device",
        device => device,
    }
}

fn shades() -> Vec<Shade> {
    MAP.into_iter()
        .enumerate()
        .map(|(step, colour)| {
            let up_to = (step + 1) as f64 / MAP.len() as f64;
            let words = if step == 0 { "up to " } else { "" };
            let label = format!("{words}{:.0} %", up_to * 100.0);
            Shade::new(up_to, colour, step >= DARK_STEP, label)
        })
        .collect()
}

/// The figure; none without two numbers of QPs at a size.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    figure(&Grid::of_results(results)).into_iter().collect()
}

fn figure(grids: &[([String; 3], Grid)]) -> Option<Figure> {
    let mut order: Vec<usize> = (0..grids.len()).collect();
    order.sort_by(|one, other| {
        let [one, other] = [one, other].map(|at| grids[*at].1.shares().fold(1.0, f64::min));
        one.total_cmp(&other)
    });
    order.truncate(MOST_MAPS);
    order.sort_unstable();
    let drawn: Vec<_> = order.iter().filter_map(|at| grids.get(*at)).collect();
    let devices: Vec<&str> =
        distinct(drawn.iter().map(|(words, _)| or_unknown(&words[1]))).into_iter().collect();
    let cases = drawn.iter().flat_map(|(_, grid)| grid.cells.values().map(|cell| cell.1));
    let best_of = match cases.max()? {
        1 => String::new(),
        most => format!("; each cell is the best of up to {most} cases"),
    };
    let shades = shades();
    let charts = drawn.iter().map(|([op, device, cq], grid)| {
        let heading = match devices.len() {
            1 => format!("{op}, {cq} CQs"),
            _ => format!("{op}, {cq} CQs, {}", or_unknown(device)),
        };
        grid.chart(heading, &shades)
    });
    let mut keys = Shade::keys(&shades);
    if drawn.iter().any(|(_, grid)| grid.cells.len() < grid.qps.len() * grid.sizes.len()) {
        keys.push(Key::new(KeyMark::Hatched, SeriesStyle::default(), NOT_MEASURED));
    }
    let left_out = grids.len() - drawn.len();
    let note = (left_out > 0).then(|| {
        format!("The figure has the {MOST_MAPS} maps whose cells differ most; {left_out} more are in the table.")
    });
    let picture = Picture {
        subtitle: format!("Percent of the best of each size, on {}{best_of}", devices.join(", ")),
        keys,
        charts: charts.collect(),
        notes: note.into_iter().collect(),
        tables: vec![table(grids)],
    };
    Some(picture.named(
        "heat-map",
        "Effect of more QPs at each size (%)",
        "Each cell: Gb/s as a percentage of the best number of QPs at that size.",
    ))
}

fn table(grids: &[([String; 3], Grid)]) -> Table {
    let mut rows = Vec::new();
    for (words, grid) in grids {
        for &qps in &grid.qps {
            for &size in &grid.sizes {
                let mut row = words.each_ref().map(Cell::text).to_vec();
                row.extend([qps, size].map(|number| Cell::number(f64::from(number), 0)));
                row.push(Cell::number(grid.cells.get(&(qps, size)).map(|cell| cell.0), 3));
                row.push(Cell::number(grid.share(qps, size).map(|share| share * 100.0), 1));
                rows.push(row);
            }
        }
    }
    let caption = "Throughput, also as a percentage of the best number of QPs at that size";
    let names = ["op", "device", "CQ", "QPs", "size (B)", "Gb/s", "share (%)"];
    Table::new(caption, names, rows)
}

/// The colour of shares up to one.
pub(super) struct Shade {
    up_to: f64,
    pub(super) colour: Colour,
    /// That of words on it.
    pub(super) ink: Colour,
    label: String,
}

impl Shade {
    pub(super) fn new(up_to: f64, colour: Colour, is_dark: bool, label: String) -> Shade {
        Shade { up_to, colour, ink: if is_dark { GROUND } else { INK }, label }
    }

    /// That of a share; the last one for all that is larger.
    pub(super) fn at(shades: &[Shade], share: f64) -> &Shade {
        let found = shades.iter().find(|shade| share <= shade.up_to);
        found.unwrap_or(&shades[shades.len() - 1])
    }

    pub(super) fn keys(shades: &[Shade]) -> Vec<Key> {
        shades
            .iter()
            .map(|shade| {
                let style = SeriesStyle { colour: shade.colour, ..SeriesStyle::default() };
                Key::new(KeyMark::Area, style, &shade.label)
            })
            .collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use results::sample::{file, moved};

    use super::*;
    use crate::show::plot::draw::palette::wcag::contrast;

    fn case(qps: u32, size_bytes: u32, gbit_per_s: Option<f64>) -> CaseResult {
        let settings = Settings { qps, size_bytes, ..Settings::default() };
        moved(settings, gbit_per_s)
    }

    fn grids_of(cases: impl Into<Vec<CaseResult>>) -> Vec<Grid> {
        let grids = Grid::of_results(&[file(cases.into())]);
        grids.into_iter().map(|(_, grid)| grid).collect()
    }

    #[test]
    fn the_best_case_of_a_cell_is_kept_and_what_failed_is_a_gap() {
        let grids = grids_of([
            case(1, 64, Some(10.0)),
            case(1, 64, Some(20.0)),
            case(4, 64, Some(40.0)),
            case(4, 4096, Some(80.0)),
            case(16, 4096, None),
        ]);
        let [grid] = <[Grid; 1]>::try_from(grids).ok().unwrap();
        assert_eq!((grid.cells[&(1, 64)], grid.cells.len()), ((20.0, 2), 3));
        assert!(grid.qps.iter().eq(&[1, 4, 16]));
        for (qps, size, share) in [(1, 64, 0.5), (4, 64, 1.0), (4, 4096, 1.0)] {
            assert_eq!(grid.share(qps, size), Some(share));
        }
    }

    #[test]
    fn cases_that_differ_in_more_than_qps_are_in_no_row() {
        let mut shallow = case(1, 64, Some(1.0));
        shallow.config.settings.tx_depth = 1;
        let others = [case(2, 64, Some(20.0)), case(4, 64, Some(40.0))];
        let grids = grids_of([&[shallow][..], &others].concat());
        assert!(grids[0].qps.iter().eq(&[2, 4]));
    }

    #[test]
    fn words_can_be_read() {
        can_be_read(&shades());
    }

    #[test]
    fn a_mix_of_sizes_is_in_no_cell_and_sizes_alone_are_no_map() {
        let mut mix = case(4, 64, Some(40.0));
        mix.config.settings.size_mix = "64:9,64K:1".parse().ok();
        assert!(mix.config.size_mix.is_some());
        for other in [mix, case(1, 4096, Some(20.0))] {
            assert!(grids_of([case(1, 64, Some(10.0)), other]).is_empty());
        }
    }

    pub(in super::super) fn can_be_read(shades: &[Shade]) {
        for Shade { colour, ink, label, .. } in shades {
            assert!(contrast(colour.light, ink.light) >= 4.5, "{label}");
            assert!(contrast(colour.dark, ink.dark) >= 4.5, "{label}");
        }
    }
}
