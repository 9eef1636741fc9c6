//! Figure: what each change did to the speed of a case that was explained, with its interval, those that decided first.

use results::{
    load::Loaded,
    model::{CaseResult, ChangeTrial, Diagnosis, Verdict},
};

use super::comparison::{INTERVAL, ROW_PX, style};
use crate::show::plot::{
    draw::{Key, KeyMark, Scale, SeriesStyle, Unit},
    figure::{Cell, Drawn, Figure, Picture, Table},
    marks::{Axis, Chart, Dot, Fill, Mark, Rule, Tile},
};
use crate::show::why::{remarks, remedies};

/// Speeds that differ by less are equal.
const SMALL: f64 = 0.1;

/// A figure for each case that was explained, and what is said of it.
pub(crate) fn drawn(results: &[Loaded]) -> Drawn {
    let cases = results.iter().flat_map(|loaded| &loaded.result.cases);
    let explained = cases.filter_map(|case| Some((case, case.diagnosis.as_ref()?)));
    let mut drawn = Drawn::from(Vec::new());
    for (case, diagnosis) in explained {
        drawn.figures.extend(figure(drawn.figures.len(), case, diagnosis));
        drawn.sentences.push(diagnosis.answer.clone());
        drawn.sentences.extend(remedies(diagnosis));
    }
    drawn
}

/// What a change did; how it came out stands in the table.
fn effect(trial: &ChangeTrial) -> Verdict {
    match (trial.low, trial.high) {
        (Some(low), _) if low > 1.0 + SMALL / 2.0 => Verdict::Faster,
        (_, Some(high)) if high < 1.0 - SMALL / 2.0 => Verdict::Slower,
        (Some(low), Some(high)) if low > 1.0 - SMALL && high < 1.0 + SMALL => Verdict::Equal,
        _ => Verdict::Unclear,
    }
}

const EFFECTS: [(Verdict, &str); 4] = [
    (Verdict::Faster, "faster"),
    (Verdict::Slower, "slower"),
    (Verdict::Equal, "the same"),
    (Verdict::Unclear, "unclear"),
];

fn figure(index: usize, case: &CaseResult, diagnosis: &Diagnosis) -> Option<Figure> {
    let with_ratio: Vec<(&ChangeTrial, f64)> =
        diagnosis.trials.iter().filter_map(|trial| Some((trial, trial.ratio?))).collect();
    let (mut tiles, mut dots) = (Vec::new(), vec![Mark::Rule(Rule::upright(1.0))]);
    let (mut least, mut most) = (1.0_f64, 1.0_f64);
    for (y, (trial, ratio)) in (0..).map(|row| -f64::from(row)).zip(&with_ratio) {
        let (low, high) = trial.low.zip(trial.high).unwrap_or((*ratio, *ratio));
        (least, most) = (least.min(low.max(ratio / 4.0)), most.max(high.min(ratio * 4.0)));
        let style: SeriesStyle = style(effect(trial));
        let hint = format!("{}: {ratio:.2} times as fast, {low:.2} to {high:.2}", trial.changed);
        let fill = Fill::Plain(style.colour);
        let ends = (low.max(ratio / 4.0), high.min(ratio * 4.0));
        tiles.push(Tile {
            height: INTERVAL,
            behind: format!("{ratio:.2}"),
            ..Tile::new(y, ends, fill, &*hint)
        });
        dots.push(Mark::Dot(Dot::new("", (*ratio, y), style, hint)));
    }
    let keys = EFFECTS
        .into_iter()
        .filter(|(verdict, _)| with_ratio.iter().any(|(trial, _)| effect(trial) == *verdict))
        .map(|(verdict, words)| Key::new(KeyMark::Marker, style(verdict), words));
    let x = Axis::new(
        "speed with the change ÷ without (log)",
        Scale::log10(least, most).widened(0.05),
        Unit::Plain,
    );
    let y = Axis::rows("", with_ratio.iter().map(|(trial, _)| trial.changed.clone()));
    let picture = Picture {
        subtitle: format!(
            "{}: one thing changed at a time, in turns with the case; 95 % intervals",
            case.id
        ),
        keys: keys.collect(),
        charts: vec![Chart::of_rows(
            ROW_PX,
            x,
            y,
            std::iter::once(Mark::Tiles(tiles)).chain(dots).collect(),
        )],
        notes: remarks(diagnosis),
        tables: vec![table(diagnosis)],
    };
    let id = if index == 0 { "changes".to_owned() } else { format!("changes-{}", index + 1) };
    let title = format!("What limits {}: changes that were tried", case.id);
    (!with_ratio.is_empty())
        .then(|| picture.named(id, title, format!("Changes: {}", diagnosis.answer)))
}

fn table(diagnosis: &Diagnosis) -> Table {
    Table::from_rows(
        "Changes, those that decided first",
        &diagnosis.trials,
        &[
            ("changed", &|trial| Cell::text(&trial.changed)),
            ("options", &|trial| Cell::text(&trial.options)),
            ("expected if so", &|trial| Cell::text(trial.expected.clone().unwrap_or_default())),
            ("times as fast", &|trial| Cell::number(trial.ratio, 3)),
            ("from", &|trial| Cell::number(trial.low, 3)),
            ("to", &|trial| Cell::number(trial.high, 3)),
            ("lost before (ppm)", &|trial| Cell::number(trial.lost_ppm.map(|it| it[0]), 0)),
            ("lost with it (ppm)", &|trial| Cell::number(trial.lost_ppm.map(|it| it[1]), 0)),
            ("so it is", &|trial| Cell::text(trial.held())),
            ("remark", &|trial| Cell::text(trial.failure.clone().unwrap_or_default())),
        ],
    )
}
