//! Formats of pictures besides SVG, and the mark by which each file is known as ours.

use std::fs;
use std::path::Path;

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
    /// Vectors, for papers.
    Pdf,
    /// Dots, [`PNG_DPI`] an inch.
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
pub(crate) fn marked_svg(svg: &str) -> String {
    format!("<!-- {} -->\n{}\n", mark(), svg.trim_end())
}

/// Whether rocebench made the file.
pub(crate) fn is_ours(path: &Path) -> bool {
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
    use super::*;

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
