//! The page: one HTML document with everything in it, that asks no network for anything.

mod answer;
pub mod folder;
pub mod summary;
pub(crate) mod tables;

use std::{collections::HashSet, ops::Range};

use base64::Engine as _;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use results::{load::Loaded, model::Comparison, text::unbroken};
use settings::{Pattern, listed};
use sha2::{Digest as _, Sha256};

use crate::judge::finding::Finding;
use crate::observe::format::plural;
use crate::show::page::folder::GENERATOR;
use crate::show::plot::{
    draw::palette::{self, Colour, colour},
    figure::{Figure, Section, Table},
};

const STYLE: &str = include_str!("style.css");
/// One scope, in which nothing is seen from outside.
const SCRIPT: &str = concat!(
    "(function () {\n\"use strict\";\n",
    include_str!("words.js"),
    include_str!("tables.js"),
    include_str!("charts.js"),
    include_str!("figures.js"),
    "})();\n"
);

const SHOWN_REASONS: usize = 8;

/// Findings that the answer and the tiles stand for.
const SAID: [&str; 4] = ["best", "no_clear_winner", "few_runs", "nothing_wrong"];

/// Rows of a table that has room below the tiles.
const FEW_ROWS: usize = 6;

/// Name of the page's list of the pictures that lie beside it.
pub const FIGURES_NAME: &str = "rocebench-figures";

/// Everything that the page shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Page<'a> {
    pub results: &'a [Loaded],
    /// The same with the flows of each case of a pattern as one.
    pub sums: &'a [Loaded],
    /// What they come to beside a base.
    pub comparison: Option<&'a Comparison>,
    pub sections: &'a [Section],
    /// What the judges found of cases and runs.
    pub findings: &'a [Finding],
    /// Files that could not be used, with file, line and reason.
    pub refused: &'a [String],
    /// What else is not in the figures, and why.
    pub left_out: &'a [String],
}

impl Page<'_> {
    /// The document. Its first screen answers: a sentence, the tiles, the first figure, and the table of cases or nodes.
    pub fn html(&self) -> String {
        let title = summary::title(self.sums);
        let answer = answer::answer(self);
        let headlines: Vec<&String> = (self.findings.iter())
            .filter(|finding| !SAID.contains(&finding.id))
            .map(|finding| &finding.text)
            .collect();
        let nodes = self.tables_of_nodes();
        let all_cases = tables::of_results(&self.without_nodes(&nodes));
        let (sections, empty): (Vec<&Section>, Vec<&Section>) =
            (self.sections.iter()).partition(|section| !section.figures.is_empty());
        let list: Vec<&str> = sections
            .iter()
            .flat_map(|section| &section.figures)
            .map(|figure| figure.id.as_str())
            .collect();
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy());
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content=(GENERATOR);
                    meta name=(FIGURES_NAME) content=(list.join(" "));
                    title { "rocebench: " (title) }
                    style { (PreEscaped(style())) (PreEscaped(printed_columns(&all_cases.settings))) }
                }
                body {
                    a.skip href="#main" { "Skip to the figures" }
                    header {
                        h1 { "rocebench: " (title) }
                        (self.menu(&sections))
                        (self.warnings())
                    }
                    main #main tabindex="-1" {
                        @if !answer.is_empty() { p.answer { (unbroken(&answer)) } }
                        div.first.few[all_cases.table.rows.len() <= FEW_ROWS] {
                            (summary::tiles(self, &answer))
                            @if let Some(section) = sections.first() { (lead(section, &answer)) }
                            section.wide aria-labelledby="cases" {
                                div.beside {
                                    h2 #cases { (if nodes.is_empty() { "All cases" } else { "All nodes" }) }
                                    p.choose hidden {
                                        label { "Show only cases that contain " input type="search" placeholder="read 4"; }
                                        " " output {}
                                    }
                                }
                                @for (index, of_nodes) in nodes.iter().enumerate() {
                                    (tables::table(&format!("nodes-table-{}", index + 1), of_nodes, &[]))
                                }
                                @if nodes.is_empty() || !all_cases.table.rows.is_empty() {
                                    (tables::table("cases-table", &all_cases.table, &all_cases.uncounted))
                                }
                            }
                        }
                        @if headlines.iter().any(|text| **text != answer) {
                            h2 { "What stands out" }
                            (answers(headlines.into_iter(), &answer))
                        }
                        @for (index, section) in sections.iter().enumerate() { (show(section, index == 0, &answer)) }
                        h2 #subject { "What was measured" }
                        (summary::subject(self.results))
                        h2 #left-out { "Left out" }
                        (self.left_out(&empty))
                    }
                    footer {
                        p {
                            "Made by " (GENERATOR) " from result files. Gb are 10" sup { "9" } " bits. Figures are of payload, at the end that ran the sweep. "
                            "The pictures are also SVG files beside this page; the page works without them and without a network."
                        }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
        .into_string()
    }

    /// Nodes in place of rounds: beside the base, over files, or each node's medians.
    fn tables_of_nodes(&self) -> Vec<Table> {
        let compared: Vec<Table> =
            self.comparison.iter().flat_map(|it| &it.nodes).map(tables::of_nodes).collect();
        if !compared.is_empty() {
            return compared;
        }
        let figures = || self.sections.iter().flat_map(|section| &section.figures);
        let of_kind = ["trend-of-nodes", "nodes-strip"].map(|id| {
            figures().filter(move |it| it.id.starts_with(id)).flat_map(|it| it.tables.clone())
        });
        of_kind
            .map(Iterator::collect)
            .into_iter()
            .find(|it: &Vec<_>| !it.is_empty())
            .unwrap_or_default()
    }

    /// The results without cases whose nodes are shown in their place.
    fn without_nodes(&self, nodes: &[Table]) -> Vec<Loaded> {
        let compared = self.comparison.iter().flat_map(|it| &it.nodes);
        let shown: HashSet<&String> = compared.flat_map(|it| &it.cases).collect();
        let mut left = self.sums.to_vec();
        for loaded in &mut left {
            loaded.result.cases.retain(|case| {
                let is_round = case.config.pattern == Some(Pattern::Pairs) && !nodes.is_empty();
                !shown.contains(&case.id) && !is_round
            });
        }
        left
    }

    fn warnings(&self) -> Markup {
        let devices: Vec<&str> = Vec::from_iter(summary::software_devices(self.results));
        let refused = self.refused.len();
        html! {
            @if !devices.is_empty() {
                p.warning role="note" {
                    (listed(&devices)) ": software. These are not figures of a network adapter."
                }
            }
            @if refused > 0 {
                p.warning { (refused) " " (plural(refused, "file")) " could not be used: " a href="#left-out" { "left out" } "." }
            }
        }
    }

    /// Contents, colours, and what the pointer and the keys do.
    fn menu(&self, sections: &[&Section]) -> Markup {
        let places = sections.iter().map(|section| (section.id, section.heading));
        let others =
            [("cases", "All cases"), ("subject", "What was measured"), ("left-out", "Left out")];
        html! {
            details.menu {
                summary { "Contents, colours, keys" }
                // Works without a script: the style sheet looks at what is chosen.
                fieldset {
                    legend { "Colours" }
                    @for (id, label) in [("system", "as the system"), ("light", "light"), ("dark", "dark")] {
                        label { input type="radio" name="colours" id={ "colours-" (id) } checked[id == "system"]; (label) }
                    }
                }
                nav aria-label="Contents" {
                    ol { @for (id, heading) in places.chain(others) { li { a href={ "#" (id) } { (heading) } } } }
                }
                ul.how hidden {
                    li { "Point at a chart: its values." }
                    li { "Drag over a part: enlarge it. Double-click: show all." }
                    li { "Click a name in a legend: hide its line, or show it." }
                    li { "By keyboard: Tab to a figure, ← and → for points, ↑ and ↓ for charts, + and − to enlarge and reduce, Esc to show all." }
                }
            }
        }
    }

    /// What has no figure, and why; what would make more figures is folded.
    fn left_out(&self, empty: &[&Section]) -> Markup {
        let undrawn: Vec<_> = empty.iter().filter(|it| !it.is_capped).collect();
        let reasons = self.left_out;
        let (shown, folded) = reasons.split_at(reasons.len().min(SHOWN_REASONS));
        html! {
            @if !self.refused.is_empty() {
                p.warning { strong { (self.refused.len()) " refused" } ": files that could not be used." }
                (list(self.refused))
            }
            @if !shown.is_empty() { (list(shown)) }
            @if !folded.is_empty() {
                details.long { summary { (folded.len()) " more" } (list(folded)) }
            }
            @if !undrawn.is_empty() {
                details.long {
                    summary { (undrawn.len()) " " (plural(undrawn.len(), "section")) " not drawn, and what they need" }
                    dl { @for section in undrawn { dt { (section.heading) } dd { (section.needs) } } }
                }
            } @else if self.refused.is_empty() && shown.is_empty() {
                p { "Nothing." }
            }
        }
    }
}

fn list(reasons: &[String]) -> Markup {
    html! { ul { @for reason in reasons { li { (reason) } } } }
}

fn style() -> String {
    let (colours, figures) = (colour_declarations(), palette::rules_of_page());
    // Paper stays light.
    format!(
        ":root{{color-scheme:light;{colours}}}@media screen{{:root{{color-scheme:light dark}}\
         :root:has(#colours-light:checked){{color-scheme:light}}:root:has(#colours-dark:checked){{color-scheme:dark}}}}\n\
         {STYLE}\n{figures}"
    )
}

/// On paper the table of all cases has no column of a setting.
fn printed_columns(settings: &Range<usize>) -> String {
    let (first, last) = (settings.start + 1, settings.end);
    let columns = format!("#cases-table tr>:nth-child(n+{first}):nth-child(-n+{last})");
    format!("@media print{{{columns}{{display:none}}}}")
}

/// Nothing is fetched, nothing is sent, and of scripts only the page's own runs.
fn policy() -> String {
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; \
         base-uri 'none'; form-action 'none'"
    )
}

/// Sentences but for that which the page begins with.
fn answers<'s>(sentences: impl Iterator<Item = &'s String>, answer: &str) -> Markup {
    let mut others = sentences.filter(|sentence| *sentence != answer).peekable();
    html! {
        @if others.peek().is_some() {
            ul.answers { @for sentence in others { li { (unbroken(sentence)) } } }
        }
    }
}

/// The first section with its first figure. How to read it comes after it.
fn lead(section: &Section, answer: &str) -> Markup {
    html! {
        section.lead aria-labelledby=(section.id) {
            h2.drawn #(section.id) { (section.heading) }
            (answers(section.sentences.iter(), answer))
            @if let Some(figure) = section.figures.first() { (picture(figure, Some(section.intro))) }
        }
    }
}

/// A section; of the one that leads the page, the figures that are left.
fn show(section: &Section, leads: bool, answer: &str) -> Markup {
    let [suffix, continued] = if leads { ["-more", ", continued"] } else { ["", ""] };
    let figures = &section.figures[usize::from(leads)..];
    html! {
        @if !figures.is_empty() {
            section aria-labelledby={ (section.id) (suffix) } {
                h2 #{ (section.id) (suffix) } { (section.heading) (continued) }
                @if !leads {
                    (answers(section.sentences.iter(), answer))
                    p { (section.intro) }
                }
                @for figure in figures { (picture(figure, None)) }
            }
        }
    }
}

fn picture(figure: &Figure, how_to_read: Option<&str>) -> Markup {
    html! {
        h3.drawn #(figure.id) { (figure.title) }
        figure aria-labelledby=(figure.id) data-about=(figure.subtitle) {
            div.picture {
                div.whole { (PreEscaped(&figure.svg)) }
                // Where the style sheet is blocked, as by Jenkins' content policy, one of both is shown.
                div.narrow hidden { (PreEscaped(&figure.narrow_svg)) }
            }
            figcaption {
                a href={ (figure.id) ".svg" } { "Picture as a file" }
                @if let Some(how) = how_to_read { details { summary { "How to read it" } p { (how) } } }
                @for (index, table) in figure.tables.iter().enumerate() {
                    @let name = if figure.tables.len() == 1 { "Table" } else { &table.caption };
                    (tables::folded(&format!("{}-table-{}", figure.id, index + 1), name, table))
                }
            }
        }
    }
}

/// The page's own, beside those of the figures.
const OWN_COLOURS: [Colour; 5] = [
    colour("--page-panel", "#f3f5f7", "#20242b"),
    colour("--page-line", "#c9ced3", "#3c444b"),
    colour("--page-link", "#0b57a4", "#8ab8f0"),
    colour("--page-focus", "#0b57a4", "#ffd24d"),
    colour("--page-warning", "#7a4100", "#ffc266"),
];

/// All of them as custom properties: which value they have follows from the property `color-scheme`.
fn colour_declarations() -> String {
    OWN_COLOURS
        .into_iter()
        .chain(palette::colours())
        .map(|it| format!("{}:light-dark({},{});", it.property, it.light, it.dark))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::plot::draw::palette::wcag::contrast;

    #[test]
    fn text_can_be_read_on_what_it_stands_on() {
        let [panel, _, link, focus, warning] = OWN_COLOURS;
        for of in [|it: Colour| it.light, |it: Colour| it.dark] {
            for ink in [palette::INK, palette::MUTED, link, warning] {
                for paper in [palette::GROUND, panel] {
                    let contrast = contrast(of(ink), of(paper));
                    assert!(contrast >= 4.5, "{ink:?} on {paper:?}: {contrast:.2}");
                }
            }
            assert!(contrast(of(focus), of(palette::GROUND)) >= 3.0);
        }
    }
}
