//! `rocebench plot --format`: what another renderer makes of the pictures. Fails where there is no rsvg-convert.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Cursor;
use std::path::Path;

use results::sample::has;
use testing::process::{Ended, script};

use crate::plot::folder;
use crate::program;

fn plot(folder: &Path, args: &[&str], path: Option<&Path>) -> Ended {
    let call = program(&["plot", "r.json", "-o", "plots"]).args(args).within(folder);
    match path {
        Some(path) => call.env("PATH", path.to_str().unwrap()).run(),
        None => call.run(),
    }
}

/// Names of the files with this extension, without it.
fn names(folder: &Path, extension: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder.join("plots")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let dotted = format!(".{extension}");
    names.filter_map(|name| name.strip_suffix(&dotted).map(str::to_owned)).collect()
}

/// How many pixels have each colour.
fn pixels(png: &[u8]) -> BTreeMap<[u8; 3], usize> {
    let mut reader = png::Decoder::new(Cursor::new(png)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut bytes).unwrap();
    let mut colours = BTreeMap::new();
    let pixels: Vec<&[u8]> =
        bytes[..frame.buffer_size()].chunks_exact(frame.color_type.samples()).collect();
    for alike in pixels.chunk_by(PartialEq::eq) {
        let pixel = alike[0];
        *colours.entry([pixel[0], pixel[1], pixel[2]]).or_default() += alike.len();
    }
    colours
}

/// Colours of lines and areas of a picture, by its attributes.
fn painted(svg: &str) -> BTreeSet<[u8; 3]> {
    svg.lines()
        .filter(|line| line.starts_with("<path") || line.starts_with("<rect"))
        .filter(|line| !line.contains("opacity"))
        .flat_map(|line| {
            ["stroke=\"#", "fill=\"#"].map(|attribute| {
                let digits = line.split_once(attribute)?.1.get(..6)?;
                let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
                Some([byte(0)?, byte(2)?, byte(4)?])
            })
        })
        .flatten()
        .collect()
}

#[test]
fn each_picture_has_its_file_in_each_format_as_wide_as_asked() {
    let folder = folder();
    for (width, points, dots) in [("page", 540, 2250), ("column", 270, 1125)] {
        let formats = ["--width", width, "--format", "pdf,png"];
        plot(folder.path(), &formats, None).exits(0);
        let figures = names(folder.path(), "svg");
        assert!(figures.len() > 3, "{figures:?}");
        assert_eq!(names(folder.path(), "pdf"), figures);
        assert_eq!(names(folder.path(), "png"), figures);
        for name in &figures {
            let file = |extension: &str| {
                let path = folder.path().join(format!("plots/{name}.{extension}"));
                fs::read(path).unwrap()
            };
            let pdf = file("pdf");
            let pdf = String::from_utf8_lossy(&pdf);
            let is_wide = pdf.contains(&format!("/MediaBox [ 0 0 {points} "));
            assert!(pdf.starts_with("%PDF-") && is_wide, "{name}");
            let png = file("png");
            assert_eq!(png[16..20], u32::to_be_bytes(dots), "{name}");
            if width == "page" {
                continue;
            }
            let colours = pixels(&png);
            let painted = painted(&String::from_utf8(file("svg")).unwrap());
            // Words, and what they are about.
            assert!(painted.len() > 1, "{name}: {painted:?}");
            for colour in painted {
                let count = colours.get(&colour).copied().unwrap_or(0);
                assert!(count > 20, "{name}: {colour:?} in {count} pixels");
            }
        }
    }
    // The next page takes away what it does not write.
    plot(folder.path(), &[], None).exits(0);
    assert!(names(folder.path(), "pdf").is_empty() && names(folder.path(), "png").is_empty());
}

#[test]
fn without_the_program_nothing_is_drawn() {
    let folder = folder();
    let path = Some(folder.path());
    let stderr = plot(folder.path(), &["--format", "png"], path).exits(2).stderr().to_owned();
    let words = "cannot write PNG: rsvg-convert is not installed";
    has(&stderr, [words, "hint: apt install librsvg2-bin"]);
    assert!(!folder.path().join("plots").exists());
}

#[test]
fn a_program_that_fails_replaces_no_file() {
    let folder = folder();
    plot(folder.path(), &[], None).exits(0);
    let mut left = names(folder.path(), "svg");
    let page = folder.path().join("plots/index.html");
    let first = left.pop_first().unwrap();
    fs::remove_file(page.with_file_name(first + ".svg")).unwrap();
    let program = folder.path().join("rsvg-convert");
    let broken = "rsvg-convert failed (exit status: 3): broken";
    let no_pdf = "the output of rsvg-convert is not a PDF file";
    for (fails, reason) in [("echo broken >&2; exit 3", broken), ("echo text", no_pdf)] {
        script(&program, &format!("[ \"$1\" = --version ] && exit 0\n{fails}\n"));
        let written = fs::metadata(&page).unwrap().modified().unwrap();
        let path = Some(folder.path());
        let ran = plot(folder.path(), &["--format", "pdf"], path).exits(1);
        has(ran.stderr(), ["cannot write plots/", reason]);
        assert_eq!(names(folder.path(), "svg"), left);
        assert_eq!(fs::metadata(&page).unwrap().modified().unwrap(), written);
    }
}
