//! The product of all lists: each cell is a case with a name of its own.
//!
//! Order is that of the table of settings: what comes first there varies slowest; within each, as the list was given.
//! So a table reads downwards as scaling over QPs, size by size. What does not apply to a case makes no cases: rx
//! depth for WRITE and READ, inline for READ, settings of traffic where there is none.

use std::fmt::Write as _;

use settings::{Applies, Given, Id, ROWS, Row, SettingError, Settings, Takes};

use super::case::Case;
use super::error::PlanError;

/// Cases of one sweep.
pub(super) const MOST_CASES: u64 = 100_000;

/// A setting that was given, and its values.
struct Axis {
    row: &'static Row,
    values: Vec<String>,
    /// Some case has use for it, or none has for this reason.
    is_used: bool,
    why_not: Option<&'static str>,
}

/// What was given, setting by setting.
pub(super) struct Axes {
    axes: Vec<Axis>,
}

impl Axes {
    /// Reads every value.
    ///
    /// # Errors
    /// The first that is out of its range.
    pub(super) fn new(given: &Given) -> Result<Axes, PlanError> {
        let mut scratch = Settings::default();
        let mut axes = Vec::new();
        for row in ROWS {
            let values = given.values(row.flag);
            for value in values {
                row.read(&mut scratch, value)?;
            }
            if !values.is_empty() {
                axes.push(Axis {
                    row,
                    values: values.to_vec(),
                    is_used: false,
                    why_not: None,
                });
            }
        }
        Ok(Axes { axes })
    }

    /// All cases.
    ///
    /// # Errors
    /// Too many cases, or a setting that no case has use for.
    pub(super) fn cases(mut self) -> Result<Vec<Case>, PlanError> {
        let cells = self.cells()?;
        let mut cases = Vec::new();
        for cell in 0..cells {
            if let Some(case) = self.case(cell)? {
                cases.push(case);
            }
        }
        let useless = self.axes.iter().find(|axis| !axis.is_used);
        match useless.and_then(|axis| Some((axis.row.flag, axis.why_not?))) {
            Some((flag, why)) => Err(PlanError::NoEffect { flag, why }),
            None => Ok(cases),
        }
    }

    /// How many cells the product has.
    fn cells(&self) -> Result<u64, PlanError> {
        let length = |axis: &Axis| u64::try_from(axis.values.len()).unwrap_or(u64::MAX);
        let cases = self
            .axes
            .iter()
            .fold(1u64, |product, axis| product.saturating_mul(length(axis)));
        if cases <= MOST_CASES {
            return Ok(cases);
        }
        let longest = self.axes.iter().rev().max_by_key(|axis| axis.values.len());
        Err(PlanError::TooManyCases {
            cases,
            longest: longest.map_or("qps", |axis| axis.row.flag),
        })
    }

    /// The cell number `index`, or nothing if its case is another cell's case too.
    fn case(&mut self, index: u64) -> Result<Option<Case>, SettingError> {
        let mut settings = Settings::default();
        let mut rest = index;
        let mut is_first = Vec::with_capacity(self.axes.len());
        // The last setting varies fastest.
        for axis in self.axes.iter().rev() {
            let length = axis.values.len() as u64;
            let value = (rest % length) as usize;
            rest /= length;
            if let Some(value) = axis.values.get(value) {
                axis.row.read(&mut settings, value)?;
            }
            is_first.push(value == 0);
        }
        let asked = settings.clone();
        let usual = Settings::default();
        let mut is_repeated = false;
        for (axis, is_first) in self.axes.iter_mut().zip(is_first.into_iter().rev()) {
            let applies = (axis.row.applies)(&asked);
            match applies {
                Applies::Yes | Applies::Ignored => axis.is_used = true,
                Applies::Not(why) => axis.why_not = Some(why),
            }
            if applies != Applies::Yes {
                is_repeated |= !is_first;
                axis.row.copy(&mut settings, &usual);
            }
        }
        if is_repeated {
            return Ok(None);
        }
        settings.fit();
        let id = self.id(&settings);
        Ok(Some(Case { id, settings }))
    }

    /// `send-shared-q16-64KiB`, and then each setting that varies within the sweep or is not the default.
    fn id(&self, settings: &Settings) -> String {
        let usual = Settings {
            signal_every: settings.fitted_signal_every(),
            ..Settings::default()
        };
        let mut id = match settings.has_traffic() {
            true => {
                let size = settings::Size::from_bytes(settings.size_bytes);
                let size = size.unwrap_or(settings::Size::MAX);
                format!("{}-{}-q{}-{size}", settings.op, settings.cq, settings.qps)
            }
            false => format!("{}-q{}", settings.op, settings.qps),
        };
        for row in ROWS {
            if (row.applies)(settings) != Applies::Yes {
                continue;
            }
            let is_usual = row.is_equal(settings, &usual);
            let varies = || {
                self.axes
                    .iter()
                    .any(|axis| axis.row.flag == row.flag && axis.values.len() > 1)
            };
            // Writing to a String cannot fail.
            let _ = match row.id {
                Id::Letter(letter) if row.takes == Takes::Switch && !is_usual => {
                    write!(id, "-{letter}")
                }
                Id::Letter(letter) if row.takes == Takes::List && (!is_usual || varies()) => {
                    write!(id, "-{letter}{}", row.text(settings))
                }
                Id::Word if !is_usual => write!(id, "-{}", row.text(settings)),
                _ => Ok(()),
            };
        }
        id
    }
}
