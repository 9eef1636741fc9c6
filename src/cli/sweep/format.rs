//! The documents of a sweep: how they are asked for, named and written.

use std::io::{self, Write};

use report::judge::findings::Findings;
use report::judge::threshold::Demands;
use report::show::{csv, json, junit};
use results::model::ResultFile;

/// A document of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    /// The figures of each case.
    Cases,
    /// The figures of each QP.
    Qps,
    Histograms,
    /// Flows and runs as tests.
    Junit,
}

impl Format {
    /// Those of which every sweep has a file.
    pub const OF_SWEEP: [Format; 4] =
        [Format::Json, Format::Cases, Format::Qps, Format::Histograms];

    /// The option that asks for a further one.
    pub fn option(self) -> &'static str {
        match self {
            Format::Json => "--json",
            Format::Cases => "--csv",
            Format::Qps => "--csv-qps",
            Format::Histograms => "--csv-histograms",
            Format::Junit => "--junit",
        }
    }

    /// How the name of a sweep's file ends.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Json => ".json",
            Format::Cases => ".csv",
            Format::Qps => "-qps.csv",
            Format::Histograms => "-histograms.csv",
            Format::Junit => ".xml",
        }
    }

    /// Writes the document to a stream; `findings` is what the result says, and tests of flows are for
    /// what is demanded of each.
    pub fn write_to(
        self,
        result: &ResultFile,
        findings: &Findings,
        demands: &Demands,
        out: impl Write,
    ) -> io::Result<()> {
        match self {
            Format::Json => json::write_to(result, findings, out),
            Format::Cases => csv::cases(result, out),
            Format::Qps => csv::qps(result, out),
            Format::Histograms => csv::histograms(result, out),
            Format::Junit => junit::write(result, findings, demands, out),
        }
    }
}
