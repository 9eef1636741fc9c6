//! The folder with the page and its pictures in the width and the formats asked for. Files that are not rocebench's
//! are not touched: neither replaced nor removed. Each of its own has a mark by which it is known.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use results::whole_file::{WriteError, prepare_directory, write_whole};

use crate::show::page::FIGURES_NAME;
use crate::show::plot::{
    draw::{Width, as_file},
    figure::Figure,
};

/// The page's name in its folder.
pub const PAGE_NAME: &str = "index.html";

/// Turns an SVG into the file of another format, or says why that is not possible and what to do.
pub type Convert<'c> = dyn Fn(&str, Format) -> Result<Vec<u8>, String> + 'c;

#[derive(Clone, Copy)]
pub struct Written<'w> {
    pub width: Width,
    /// In which formats besides SVG.
    pub formats: &'w [Format],
    pub convert: &'w Convert<'w>,
}

/// The pictures or the page could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file that rocebench did not make is where one of its own should be.
    #[error("{} was not made by rocebench and is left alone; move it away, or name another folder with --out", path.display())]
    Foreign { path: PathBuf },
    /// A picture has not got its format.
    #[error("cannot write {}: {reason}", path.display())]
    Unconverted {
        /// The file that was to be written.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The folder could not be made, or a file not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes the pictures, then the page, each whole or not at all; then removes the pictures of an earlier page of
/// this folder that were not written anew. Returns the page's path.
///
/// # Errors
/// When the folder or a file cannot be written, a file in the way is not rocebench's, or a picture cannot be converted. The
/// earlier page is then still there, some pictures beside it may be new.
pub fn write<'a>(
    folder: &Path,
    html: &str,
    figures: impl Iterator<Item = &'a Figure>,
    how: Written<'_>,
) -> Result<PathBuf, FolderError> {
    prepare_directory(folder)?;
    let page = folder.join(PAGE_NAME);
    let earlier = ids_of_earlier_page(&page)?;
    // All of them before the first file is replaced.
    let mut pictures: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for figure in figures {
        let svg = figure.picture(how.width);
        let marked = marked_svg(&as_file(svg)).into_bytes();
        pictures.insert(format!("{}.svg", figure.id), marked);
        for &format in how.formats {
            let name = format!("{}.{}", figure.id, format.extension());
            let file = (how.convert)(svg, format)
                .map_err(|reason| FolderError::Unconverted { path: folder.join(&name), reason })?;
            pictures.insert(name, file);
        }
    }
    for path in pictures.keys().map(|name| folder.join(name)) {
        if path.exists() && !is_ours(&path) {
            return Err(FolderError::Foreign { path });
        }
    }
    for (name, file) in &pictures {
        write_whole(&folder.join(name), |out| out.write_all(file))?;
    }
    write_whole(&page, |out| out.write_all(html.as_bytes()))?;
    let extensions = Format::ALL.map(Format::extension);
    for name in (earlier.iter())
        .flat_map(|id| {
            extensions.into_iter().chain(["svg"]).map(move |extension| format!("{id}.{extension}"))
        })
        .filter(|name| !pictures.contains_key(name))
    {
        let path = folder.join(name);
        if is_ours(&path) {
            // One picture too many does no harm.
            let _ = fs::remove_file(path);
        }
    }
    Ok(page)
}

/// Names of the figures that the page of an earlier run lists; none without a page.
fn ids_of_earlier_page(page: &Path) -> Result<Vec<String>, FolderError> {
    if !page.exists() {
        return Ok(Vec::new());
    }
    let html = fs::read(page).unwrap_or_default();
    let html = String::from_utf8_lossy(&html);
    let mark = html.find("name=\"generator\" content=\"rocebench");
    // In its head.
    if mark.is_none_or(|at| at > 4096) {
        let path = page.to_owned();
        return Err(FolderError::Foreign { path });
    }
    let list = html
        .split_once(&format!("name=\"{FIGURES_NAME}\" content=\""))
        .and_then(|(_, rest)| rest.split_once('"'));
    Ok(list
        .map_or("", |(list, _)| list)
        .split_whitespace()
        .filter(|id| id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
        .map(str::to_owned)
        .collect())
}

/// What a page and its pictures say of who made them.
pub const GENERATOR: &str = concat!("rocebench ", env!("CARGO_PKG_VERSION"));

/// How each picture says who made it, by which it is known as ours: in SVG, PDF and PNG.
const MARKS: [&str; 3] =
    ["<!-- Drawn by rocebench", "% Drawn by rocebench", "Software\0Drawn by rocebench"];

/// Dots of a PNG in an inch.
pub const PNG_DPI: u32 = 300;

/// Signature of a PNG, and the bytes of its first chunk, which has the size: what is added stands behind it.
const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const PNG_HEADER_BYTES: usize = 8 + 4 + 4 + 13 + 4;

/// A format that is made of a picture's SVG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Vectors, as papers print them at any size.
    Pdf,
    /// [`PNG_DPI`] dots an inch, for programs that take no vectors.
    Png,
}

impl Format {
    pub const ALL: [Format; 2] = [Format::Pdf, Format::Png];

    /// How names of its files end.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Pdf => "pdf",
            Format::Png => "png",
        }
    }

    /// The file with the mark; `None` when it is not of this format.
    pub fn marked(self, file: &[u8]) -> Option<Vec<u8>> {
        match self {
            Format::Pdf => marked_pdf(file),
            Format::Png => marked_png(file),
        }
    }
}

/// The SVG as a file with the mark.
fn marked_svg(svg: &str) -> String {
    format!("<!-- {} -->\n{}\n", mark(), svg.trim_end())
}

/// Whether rocebench made the file.
fn is_ours(path: &Path) -> bool {
    fs::read(path)
        .is_ok_and(|bytes| MARKS.iter().any(|mark| position(&bytes, mark.as_bytes()).is_some()))
}

fn mark() -> String {
    debug_assert!(GENERATOR.starts_with("rocebench"));
    format!("Drawn by {GENERATOR}")
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).rposition(|window| window == part)
}

/// A comment in front of the last line that a reader looks for: all places that the file names lie before it.
fn marked_pdf(file: &[u8]) -> Option<Vec<u8>> {
    if !file.starts_with(b"%PDF-") {
        return None;
    }
    let (before, behind) = file.split_at(position(file, b"startxref")?);
    Some([before, format!("% {}\n", mark()).as_bytes(), behind].concat())
}

/// Two chunks behind the first: the size of a dot, so that others show the picture as wide as it was drawn, and the mark.
fn marked_png(file: &[u8]) -> Option<Vec<u8>> {
    if !file.starts_with(PNG_SIGNATURE) {
        return None;
    }
    let (before, behind) = file.split_at_checked(PNG_HEADER_BYTES)?;
    let dots_a_metre = (f64::from(PNG_DPI) / 0.0254).round() as u32;
    let dots = dots_a_metre.to_be_bytes();
    // The unit is the metre.
    let size = png_chunk(b"pHYs", &[&dots[..], &dots, &[1]].concat());
    let mark = png_chunk(b"tEXt", format!("Software\0{}", mark()).as_bytes());
    Some([before, &size, &mark, behind].concat())
}

fn png_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let checked = [&kind[..], data].concat();
    let sum = crc32fast::hash(&checked);
    let length = (data.len() as u32).to_be_bytes();
    [&length[..], &checked, &sum.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use results::sample::{file_names as names, has, starts};

    use super::*;
    use crate::show::page::Page;
    use crate::show::plot::figure::Section;

    fn figure(id: &&str) -> Figure {
        Figure {
            id: (*id).to_owned(),
            title: (*id).to_owned(),
            svg: format!("<svg><title>{id}</title></svg>"),
            ..Figure::default()
        }
    }

    fn plot(folder: &Path, ids: &[&str]) -> Result<PathBuf, FolderError> {
        plot_in(folder, ids, &[], &|_, _| Err("not asked for".to_owned()))
    }

    fn plot_in(
        folder: &Path,
        ids: &[&str],
        formats: &[Format],
        convert: &Convert<'_>,
    ) -> Result<PathBuf, FolderError> {
        let sections = [Section {
            id: "s",
            heading: "S",
            figures: ids.iter().map(figure).collect(),
            ..Section::default()
        }];
        let page = Page { sections: &sections, ..Page::default() };
        let figures = sections[0].figures.iter();
        let how = Written { width: Width::Page, formats, convert };
        write(folder, &page.html(), figures, how)
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
        let left = ["a.svg", "c.svg", "index.html", "kept.svg", "notes.svg"];
        assert_eq!(names(&folder), left);
        let picture = fs::read_to_string(folder.join("a.svg")).unwrap();
        starts(&picture, "<!-- Drawn by rocebench");
    }

    #[test]
    fn each_picture_has_the_formats_asked_for_and_no_older_ones() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path();
        let file = |_: &str, format: Format| {
            let made = match format {
                Format::Pdf => b"%PDF-1.5\nstartxref\n".to_vec(),
                Format::Png => [&b"\x89PNG\r\n\x1a\n"[..], &[0; 25]].concat(),
            };
            Ok(format.marked(&made).unwrap())
        };
        plot_in(folder, &["a", "b"], &Format::ALL, &file).unwrap();
        let of = |id: &str| ["pdf", "png", "svg"].map(|it| format!("{id}.{it}"));
        let expected = [&of("a")[..], &of("b"), &["index.html".to_owned()]].concat();
        assert_eq!(names(folder), expected);
        let before = fs::read(folder.join("a.svg")).unwrap();
        let error = plot_in(folder, &["a", "c"], &Format::ALL, &|_: &str, format| match format {
            Format::Pdf => file("", format),
            Format::Png => Err("it died; try again".to_owned()),
        })
        .unwrap_err();
        has(error.to_string(), ["a.png: it died; try again"]);
        // Nothing was replaced or removed.
        assert_eq!(names(folder), expected);
        assert_eq!(fs::read(folder.join("a.svg")).unwrap(), before);
        plot_in(folder, &["a"], &[Format::Png], &file).unwrap();
        assert_eq!(names(folder), ["a.png", "a.svg", "index.html"]);
        fs::write(folder.join("a.pdf"), "mine").unwrap();
        let foreign = plot_in(folder, &["a"], &[Format::Pdf], &file).unwrap_err();
        assert!(matches!(foreign, FolderError::Foreign { .. }), "{foreign}");
        plot(folder, &["c"]).unwrap();
        assert_eq!(names(folder), ["a.pdf", "c.svg", "index.html"]);
    }

    #[test]
    fn files_of_others_are_never_replaced() {
        for name in ["index.html", "a.svg"] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(name);
            fs::write(&path, "<p>mine</p>").unwrap();
            let error = plot(directory.path(), &["a"]).unwrap_err().to_string();
            has(error, [name, "not made by rocebench"]);
            assert_eq!(fs::read_to_string(&path).unwrap(), "<p>mine</p>");
            assert_eq!(names(directory.path()), [name]);
        }
    }

    const PDF: &[u8] = b"%PDF-1.5\n1 0 obj\nendobj\nstartxref\n9\n%%EOF\n";

    #[test]
    fn files_of_each_format_are_marked_and_known() {
        let header = [PNG_SIGNATURE, &[0; 25], b"rest"].concat();
        let folder = tempfile::tempdir().unwrap();
        let long = [&PDF[..9], &[b' '; 20_000], &PDF[9..]].concat();
        for (format, file) in [PDF, &long]
            .map(|file| (Format::Pdf, file))
            .into_iter()
            .chain([(Format::Png, &*header)])
        {
            let path = folder.path().join("picture");
            fs::write(&path, file).unwrap();
            assert!(!is_ours(&path), "{format:?}");
            let marked = format.marked(file).unwrap();
            fs::write(&path, &marked).unwrap();
            assert!(is_ours(&path), "{format:?}");
            assert_eq!(marked[..9], file[..9]);
            assert!(file.iter().rev().take(4).eq(marked.iter().rev().take(4)));
        }
        for (format, other) in [(Format::Pdf, &header[..]), (Format::Png, PDF)] {
            assert_eq!(format.marked(other), None);
            assert_eq!(format.marked(b""), None);
        }
        assert_eq!(Format::Png.marked(PNG_SIGNATURE), None);
    }

    #[test]
    fn chunks_have_the_sum_that_readers_check() {
        // The last chunk of every PNG.
        let last = b"\x00\x00\x00\x00IEND\xae\x42\x60\x82";
        assert_eq!(png_chunk(b"IEND", b""), last);
    }
}
