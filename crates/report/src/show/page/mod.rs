//! The page: one HTML document with everything in it, that asks no network for anything. It must not know how a
//! figure is drawn, nor where the page is written.

pub(crate) mod cases;
mod colours;
pub mod folder;
mod key_figures;
mod subject;
mod tables;

use base64::Engine as _;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::results::load::Loaded;
use crate::show::plot::draw::palette;
use crate::show::plot::figure::{Figure, Table};
use crate::show::plot::formats::GENERATOR;
use crate::show::plot::section::Section;
use crate::text::unbroken;

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

/// Reasons why something is left out that are not folded.
const SHOWN_REASONS: usize = 8;

/// Name of the page's list of the pictures that lie beside it.
pub const FIGURES_NAME: &str = "rocebench-figures";

/// Everything that the page shows.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The results drawn.
    pub results: &'a [Loaded],
    /// The same with the flows of each case of a pattern as one.
    pub sums: &'a [Loaded],
    /// The figures.
    pub sections: &'a [Section],
    /// What they come to, in sentences.
    pub headlines: &'a [String],
    /// Files that could not be used, with file, line and reason.
    pub refused: &'a [String],
    /// What else is not in the figures, and why.
    pub left_out: &'a [String],
}

impl Page<'_> {
    /// The document.
    pub fn html(&self) -> String {
        let title = subject::title(self.results);
        let drawn = || {
            self.sections
                .iter()
                .filter(|section| !section.figures.is_empty())
        };
        let all_cases = cases::all(self.sums);
        let list: Vec<&str> = drawn()
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
                    style { (PreEscaped(style())) (PreEscaped(printed_columns(&all_cases))) }
                }
                body {
                    a.skip href="#main" { "Skip to the figures" }
                    header {
                        h1 { "rocebench: " (title) }
                        @if !self.headlines.is_empty() {
                            ul.answers { @for sentence in self.headlines { li { (unbroken(sentence)) } } }
                        }
                        (self.software_note())
                        (colour_choice())
                        (self.hint_at_left_out())
                        p.choose hidden {
                            label { "Lines and cases with " input type="search" placeholder="read 4 QPs"; }
                            " " output {}
                        }
                        p.how hidden {
                            "Point at a chart to read its figures; drag over a part to enlarge it, double-click to show all. "
                            "By keyboard: Tab to a chart, ← and → for its points, ↑ and ↓ for other charts of the figure, "
                            "+ and − to enlarge and reduce, Esc to show all."
                        }
                        (self.contents())
                    }
                    main #main tabindex="-1" {
                        @for section in drawn() { (show(section)) }
                        h2 #key-figures { "Key figures" }
                        (tables::table("key-figures-table", &key_figures::key_figures(self.results)))
                        h2 #subject { "What was measured" }
                        (subject::subject(self.results))
                        section.wide aria-labelledby="cases" {
                            h2 #cases { "All cases" }
                            (tables::folded("cases-table", &all_cases, true))
                        }
                        h2 #left-out { "Left out" }
                        (self.left_out())
                    }
                    footer {
                        p {
                            "Made by " (GENERATOR) " from result files. Gb are 10" sup { "9" } " bits. Figures are of payload, at the end that ran the sweep. "
                            "The pictures lie beside this page as SVG files; the page needs neither them nor a network."
                        }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
        .into_string()
    }

    fn software_note(&self) -> Markup {
        let devices = subject::software_devices(self.results);
        html! {
            @if !devices.is_empty() {
                p.warning role="note" {
                    strong { "Software" } ": " (devices.join(", "))
                    @if devices.len() == 1 { " is a software device" } @else { " are software devices" }
                    "; no figure measured on "
                    @if devices.len() == 1 { "it" } @else { "them" }
                    " is a network adapter’s."
                }
            }
        }
    }

    /// What is missing is told at the end, and that it is at the top.
    fn hint_at_left_out(&self) -> Markup {
        let (refused, left_out) = (self.refused.len(), self.left_out.len());
        let files = if refused == 1 { "file" } else { "files" };
        html! {
            @if refused > 0 {
                p.warning { (refused) " " (files) " could not be used: " a href="#left-out" { "left out" } "." }
            } @else if left_out > 0 {
                p { "Something is not in the figures: " a href="#left-out" { "left out" } "." }
            }
        }
    }

    fn contents(&self) -> Markup {
        html! {
            nav aria-label="Contents" {
                ol {
                    @for section in self.sections.iter().filter(|section| !section.figures.is_empty()) {
                        li {
                            a href={ "#" (section.id) } { (section.heading) }
                            @if section.figures.len() > 1 {
                                details {
                                    summary { (section.figures.len()) " figures" }
                                    ol { @for figure in &section.figures {
                                        li { a href={ "#" (figure.id) } { (figure.title) } }
                                    } }
                                }
                            }
                        }
                    }
                    li { a href="#key-figures" { "Key figures" } }
                    li { a href="#subject" { "What was measured" } }
                    li { a href="#cases" { "All cases" } }
                    li { a href="#left-out" { "Left out" } }
                }
            }
        }
    }

    fn left_out(&self) -> Markup {
        let empty: Vec<&Section> = self
            .sections
            .iter()
            .filter(|section| section.figures.is_empty() && !section.is_capped)
            .collect();
        let (shown, folded) = self
            .left_out
            .split_at(self.left_out.len().min(SHOWN_REASONS));
        html! {
            @if !self.refused.is_empty() {
                p.warning { strong { (self.refused.len()) " refused" } ": files that could not be used." }
                ul { @for reason in self.refused { li { (reason) } } }
            }
            @if !shown.is_empty() || !empty.is_empty() {
                ul {
                    @for reason in shown { li { (reason) } }
                    @for section in &empty {
                        li { "No figure “" (section.heading) "”: it needs " (section.needs) "." }
                    }
                }
            }
            @if !folded.is_empty() {
                details.long {
                    summary { (folded.len()) " more" }
                    ul { @for reason in folded { li { (reason) } } }
                }
            }
            @if self.refused.is_empty() && self.left_out.is_empty() && empty.is_empty() {
                p { "Nothing." }
            }
        }
    }
}

fn style() -> String {
    let (light, dark) = (colours::declarations(false), colours::declarations(true));
    // Paper stays light.
    format!(
        ":root{{color-scheme:light;{light}}}\
         @media screen and (prefers-color-scheme:dark){{\
         :root:not(:has(#colours-light:checked)){{color-scheme:dark;{dark}}}}}\
         @media screen{{:root:has(#colours-dark:checked){{color-scheme:dark;{dark}}}}}\n{STYLE}\n{}",
        palette::rules_of_page()
    )
}

/// On paper the table of all cases has no column of a setting.
fn printed_columns(all_cases: &Table) -> String {
    let hidden = cases::settings_columns(all_cases);
    format!(
        "@media print{{#cases-table tr>:nth-child(n+{}):nth-child(-n+{}){{display:none}}}}",
        hidden.start + 1,
        hidden.end
    )
}

/// Nothing is fetched, nothing is sent, and of scripts only the page's own runs.
fn policy() -> String {
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; \
         base-uri 'none'; form-action 'none'"
    )
}

/// Works without a script: the style sheet looks at what is chosen.
fn colour_choice() -> Markup {
    html! {
        fieldset {
            legend { "Colours" }
            @for (id, label) in [("system", "as the system"), ("light", "light"), ("dark", "dark")] {
                label { input type="radio" name="colours" id={ "colours-" (id) } checked[id == "system"]; (label) }
            }
        }
    }
}

fn show(section: &Section) -> Markup {
    html! {
        section aria-labelledby=(section.id) {
            h2 #(section.id) { (section.heading) }
            @if !section.sentences.is_empty() {
                ul.answers { @for sentence in &section.sentences { li { (unbroken(sentence)) } } }
            }
            p { (section.intro) }
            @for figure in &section.figures { (show_figure(figure)) }
        }
    }
}

fn show_figure(figure: &Figure) -> Markup {
    let caption = format!("{}-words", figure.id);
    html! {
        div.keep {
            h3.drawn #(figure.id) { (figure.title) }
            figure aria-labelledby=(figure.id) aria-describedby=(caption) {
                div.picture {
                    div.whole { (PreEscaped(inline(&figure.svg))) }
                    div.narrow { (PreEscaped(inline(&figure.narrow_svg))) }
                }
                figcaption #(caption) {
                    (figure.description) " "
                    span.hidden { (figure.subtitle) ". " }
                    a href={ (figure.id) ".svg" } { "This picture as a file" }
                }
            }
        }
        @for (index, table) in figure.tables.iter().enumerate() {
            (tables::folded(&format!("{}-table-{}", figure.id, index + 1), table, false))
        }
    }
}

/// The picture without what an SVG has before its root when it is a file.
fn inline(svg: &str) -> &str {
    svg.find("<svg").map_or(svg, |start| &svg[start..])
}

#[cfg(test)]
mod tests;
