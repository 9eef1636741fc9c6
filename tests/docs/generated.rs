//! Tables within a page that are made from the program's: `UPDATE_SETTINGS=1` writes them.

use rocebench::cli::ExitKind;
use verbs::WcStatus;

use super::page;

/// A table between two comments of a page.
pub struct Table {
    pub page: &'static str,
    pub begin: &'static str,
    pub end: &'static str,
}

impl Table {
    /// The page before the table, the table, and the page after it; `None` for a page without one.
    pub fn parts<'p>(&self, page: &'p str) -> Option<[&'p str; 3]> {
        let (before, rest) = page.split_once(self.begin)?;
        let (table, after) = rest.split_once(self.end)?;
        Some([before, table, after])
    }

    /// That the page has this table; or else, if it is asked for, it is written.
    pub fn holds(&self, made: &str) {
        let text = page(self.page);
        // A page without the marks is one without the table.
        let [before, found, after] = self.parts(&text).unwrap();
        if std::env::var_os("UPDATE_SETTINGS").is_some() {
            let path = format!("{}/{}", env!("CARGO_MANIFEST_DIR"), self.page);
            let whole = [before, self.begin, made, self.end, after].concat();
            std::fs::write(path, whole).unwrap();
            return;
        }
        let remedy = "UPDATE_SETTINGS=1 writes it anew";
        assert!(found == made, "{}, {}: {remedy}", self.page, self.begin);
    }
}

#[test]
fn every_status_is_explained_as_the_program_does() {
    let table = Table {
        page: "docs/troubleshooting.md",
        begin: "<!-- statuses: made from crates/verbs/src/cq.rs -->\n",
        end: "<!-- end of statuses -->\n",
    };
    let unknown = WcStatus(u32::MAX).name();
    let rows: Vec<String> = (1..64)
        .map(WcStatus)
        .filter(|it| it.name() != unknown)
        .map(|it| format!("| {it} | {} | {} |\n", it.meaning(), it.remedy()))
        .collect();
    assert!(rows.len() > 10);
    let head = "\n| status | usually means | what to try |\n|---|---|---|\n";
    table.holds(&format!("{head}{}\n", rows.concat()));
}

#[test]
fn every_exit_status_is_explained_once() {
    let table = Table {
        page: "docs/troubleshooting.md",
        begin: "<!-- exit statuses: made from src/cli/terminal.rs -->\n",
        end: "<!-- end of exit statuses -->\n",
    };
    let rows = ExitKind::ALL.map(|kind| format!("| {} | {} |\n", kind.status(), kind.meaning()));
    let head = "\n| | |\n|---|---|\n| 0 | all done, and nothing is slower, beyond a limit or broken; figures may be `unclear` |\n";
    table.holds(&format!("{head}{}\n", rows.concat()));
}

#[test]
fn every_cause_is_named_with_what_proves_it() {
    let table = Table {
        page: "docs/why.md",
        begin: "<!-- causes: made from crates/why/src/causes.rs -->\n",
        end: "<!-- end of causes -->\n",
    };
    let mut by_change: Vec<(&str, Vec<String>)> = Vec::new();
    for cause in why::CAUSES {
        let change = cause.proof.first().map_or("no change", |change| change.words());
        let name = format!("`{}`", cause.id);
        match by_change.iter_mut().find(|(words, _)| *words == change) {
            Some((_, names)) => names.push(name),
            None => by_change.push((change, vec![name])),
        }
    }
    let rows =
        by_change.iter().map(|(change, names)| format!("- {change}: {}\n", names.join(", ")));
    let made: String = rows.collect();
    table.holds(&format!("\n{made}\n"));
}
