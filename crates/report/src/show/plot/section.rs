//! Figures of one kind under one heading.

use super::figure::Figure;

/// What a kind of figure shows, and its figures.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its place on the page: lower case and hyphens; unique.
    pub id: &'static str,
    /// What the figures show, in a few words.
    pub heading: &'static str,
    /// How to read them.
    pub intro: String,
    /// What the results say, in sentences that are read before the figures.
    pub sentences: Vec<String>,
    /// The figures; empty where the results have nothing to draw.
    pub figures: Vec<Figure>,
    /// Whether figures of it were taken because the page has too many.
    pub is_capped: bool,
    /// What results need to have for a figure of this kind.
    pub needs: &'static str,
}
