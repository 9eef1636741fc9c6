//! The folder with the page and its pictures in the width asked for. Files that are not rocebench's are not touched: neither replaced
//! nor removed. It must not know what is in the pictures.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::draw::{Width, as_file};
use super::figure::Figure;
use super::page::{FIGURES_NAME, GENERATOR};
use crate::results::file::{WriteError, prepare_directory, write_whole};

/// The page's name in its folder.
pub const PAGE_NAME: &str = "index.html";

/// How each picture begins, by which it is known as ours.
const MARK: &str = "<!-- Drawn by rocebench";

/// How much of a file is looked at to tell whose it is.
const BEGINNING_BYTES: u64 = 4096;

/// The pictures or the page could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file that rocebench did not make is where one of its own should be.
    #[error("{} was not made by rocebench and is left alone; move it away, or name another folder with --out", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The folder could not be made, or a file not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes the pictures, then the page, each whole or not at all; then removes the pictures of an earlier page of
/// this folder that the new one does not have. Returns the page's path.
///
/// # Errors
/// When the folder or a file cannot be written, or a file in the way is not rocebench's. The earlier page is then
/// still there, some pictures beside it may be new.
pub fn write<'a>(
    folder: &Path,
    html: &str,
    figures: impl Iterator<Item = &'a Figure>,
    width: Width,
) -> Result<PathBuf, FolderError> {
    prepare_directory(folder)?;
    let page = folder.join(PAGE_NAME);
    let earlier = pictures_of_earlier_page(&page)?;
    let pictures: Vec<(String, &Figure)> = figures
        .map(|figure| (format!("{}.svg", figure.id), figure))
        .collect();
    for (name, _) in &pictures {
        let path = folder.join(name);
        if path.exists() && !begins_with(&path, MARK) {
            return Err(FolderError::Foreign { path });
        }
    }
    for (name, figure) in &pictures {
        let svg = as_file(figure.picture(width));
        write_whole(&folder.join(name), |out| picture(&svg, out))?;
    }
    write_whole(&page, |out| out.write_all(html.as_bytes()))?;
    let new: BTreeSet<&str> = pictures.iter().map(|(name, _)| name.as_str()).collect();
    for name in earlier.iter().filter(|name| !new.contains(name.as_str())) {
        let path = folder.join(name);
        if begins_with(&path, MARK) {
            // One picture too many does no harm.
            let _ = fs::remove_file(path);
        }
    }
    Ok(page)
}

/// The SVG with the mark, which must stand behind an XML declaration.
fn picture(svg: &str, out: &mut dyn io::Write) -> io::Result<()> {
    let root = svg.find("<svg").unwrap_or(0);
    let (before, root) = svg.split_at(root);
    writeln!(out, "{before}{MARK}: {GENERATOR} -->")?;
    writeln!(out, "{}", root.trim_end())
}

fn beginning(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)
        .ok()?
        .take(BEGINNING_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn begins_with(path: &Path, mark: &str) -> bool {
    beginning(path).is_some_and(|text| text.contains(mark))
}

/// Names of the pictures that the page of an earlier run lists; none without a page.
fn pictures_of_earlier_page(page: &Path) -> Result<Vec<String>, FolderError> {
    if !page.exists() {
        return Ok(Vec::new());
    }
    if !begins_with(page, "name=\"generator\" content=\"rocebench") {
        return Err(FolderError::Foreign {
            path: page.to_owned(),
        });
    }
    let html = fs::read(page).unwrap_or_default();
    let html = String::from_utf8_lossy(&html);
    let list = html
        .split_once(&format!("name=\"{FIGURES_NAME}\" content=\""))
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("", |(list, _)| list);
    let is_id = |id: &&str| {
        id.chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    Ok(list
        .split_whitespace()
        .filter(is_id)
        .map(|id| format!("{id}.svg"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::page::Page;
    use crate::plot::section::Section;

    fn section(ids: &[&str]) -> Section {
        Section {
            id: "s",
            heading: "S",
            intro: String::new(),
            needs: "",
            is_capped: false,
            sentences: Vec::new(),
            figures: ids
                .iter()
                .map(|id| Figure {
                    id: (*id).to_owned(),
                    title: (*id).to_owned(),
                    svg: format!("<?xml version=\"1.0\"?>\n<svg><title>{id}</title></svg>"),
                    ..Figure::default()
                })
                .collect(),
        }
    }

    fn plot(folder: &Path, ids: &[&str]) -> Result<PathBuf, FolderError> {
        let sections = [section(ids)];
        let page = Page {
            results: &[],
            sums: &[],
            sections: &sections,
            headlines: &[],
            refused: &[],
            left_out: &[],
        };
        let figures = sections[0].figures.iter();
        write(folder, &page.html(), figures, Width::Page)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn pictures_of_the_earlier_page_go_and_other_files_stay() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("new/plots");
        plot(&folder, &["a", "b"]).unwrap();
        assert_eq!(names(&folder), ["a.svg", "b.svg", "index.html"]);
        fs::write(folder.join("notes.svg"), "<svg/>").unwrap();
        fs::copy(folder.join("b.svg"), folder.join("kept.svg")).unwrap();
        let page = plot(&folder, &["a", "c"]).unwrap();
        assert_eq!(page, folder.join("index.html"));
        assert_eq!(
            names(&folder),
            ["a.svg", "c.svg", "index.html", "kept.svg", "notes.svg"]
        );
        let picture = fs::read_to_string(folder.join("a.svg")).unwrap();
        assert!(
            picture.starts_with("<?xml version=\"1.0\"?>\n<!-- Drawn by rocebench"),
            "{picture}"
        );
    }

    #[test]
    fn files_of_others_are_never_replaced() {
        for name in ["index.html", "a.svg"] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(name);
            fs::write(&path, "<p>mine</p>").unwrap();
            let error = plot(directory.path(), &["a"]).unwrap_err().to_string();
            assert!(
                error.contains(name) && error.contains("not made by rocebench"),
                "{error}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), "<p>mine</p>");
            assert_eq!(names(directory.path()), [name]);
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = plot(&file.path().join("plots"), &["a"]).unwrap_err();
        assert!(matches!(error, FolderError::Write(_)), "{error}");
        let text = error.to_string();
        assert_eq!(text.matches("Not a directory").count(), 1, "{text}");
        assert!(text.contains("name another place"), "{text}");
    }
}
