//! The documents of a sweep: how they are asked for, named and written.

use std::io::{self, Write};

use report::results::model::ResultFile;
use report::results::{csv, histograms_csv, json};

/// A document of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Everything.
    Json,
    /// The figures.
    Csv,
    /// The distributions.
    Histograms,
}

impl Format {
    /// All of them: every sweep has a file of each.
    pub const ALL: [Format; 3] = [Format::Json, Format::Csv, Format::Histograms];

    /// The option that asks for a further one.
    pub fn option(self) -> &'static str {
        match self {
            Format::Json => "--json",
            Format::Csv => "--csv",
            Format::Histograms => "--csv-histograms",
        }
    }

    /// How the name of a sweep's file ends.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Json => ".json",
            Format::Csv => ".csv",
            Format::Histograms => "-histograms.csv",
        }
    }

    /// Writes the document to a stream.
    ///
    /// # Errors
    /// The stream's.
    pub fn write_to(self, result: &ResultFile, out: impl Write) -> io::Result<()> {
        match self {
            Format::Json => json::write_to(result, out),
            Format::Csv => csv::write_to(result, out),
            Format::Histograms => histograms_csv::write_to(result, out),
        }
    }
}
