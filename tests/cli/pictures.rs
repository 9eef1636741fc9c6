//! `rocebench plot --format`: files that another renderer than a browser makes of the pictures. Fails where there is no
//! rsvg-convert.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Output};

use crate::input::text;
use crate::plot::small;
use report::results::json;

/// A folder with a result, `r.json`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    json::write(&small().result(), &folder.path().join("r.json")).unwrap();
    folder
}

fn plot(folder: &Path, args: &[&str], path: Option<&Path>) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rocebench"));
    command.current_dir(folder).args(["plot", "r.json"]);
    command.args(["-o", "plots"]).args(args);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.output().unwrap()
}

/// Names of the files with this extension, without it.
fn names(folder: &Path, extension: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder.join("plots")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let of_kind = paths.filter(|path| path.extension().is_some_and(|it| it == extension));
    of_kind
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

/// How many pixels have each colour.
fn pixels(png: &[u8]) -> BTreeMap<[u8; 3], usize> {
    let mut reader = png::Decoder::new(Cursor::new(png)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut bytes).unwrap();
    let mut colours = BTreeMap::new();
    let pixels: Vec<&[u8]> = bytes[..frame.buffer_size()]
        .chunks_exact(frame.color_type.samples())
        .collect();
    for alike in pixels.chunk_by(PartialEq::eq) {
        let pixel = alike[0];
        *colours.entry([pixel[0], pixel[1], pixel[2]]).or_default() += alike.len();
    }
    colours
}

/// Colours of lines and areas of a picture, by its attributes.
fn painted(svg: &str) -> BTreeSet<[u8; 3]> {
    let is_shape = |line: &&str| line.starts_with("<path") || line.starts_with("<rect");
    let drawn = svg
        .lines()
        .filter(is_shape)
        .filter(|line| !line.contains("opacity"));
    let colours = drawn.flat_map(|line| {
        ["stroke=\"#", "fill=\"#"].map(|attribute| {
            let digits = line.split_once(attribute)?.1.get(..6)?;
            let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
            Some([byte(0)?, byte(2)?, byte(4)?])
        })
    });
    colours.flatten().collect()
}

#[test]
fn each_picture_has_its_file_in_each_format_as_wide_as_asked() {
    let folder = folder();
    for (width, points, dots) in [("page", 540, 2250), ("column", 270, 1125)] {
        let output = plot(
            folder.path(),
            &["--width", width, "--format", "pdf,png"],
            None,
        );
        assert!(output.status.success(), "{}", text(&output.stderr));
        let all = names(folder.path(), "svg");
        assert!(all.len() > 3, "{all:?}");
        assert_eq!(names(folder.path(), "pdf"), all);
        assert_eq!(names(folder.path(), "png"), all);
        for name in &all {
            let file = |extension: &str| {
                let path = folder.path().join(format!("plots/{name}.{extension}"));
                fs::read(path).unwrap()
            };
            let pdf = file("pdf");
            let pdf = String::from_utf8_lossy(&pdf);
            assert!(pdf.starts_with("%PDF-"), "{name}");
            assert!(
                pdf.contains(&format!("/MediaBox [ 0 0 {points} ")),
                "{name}"
            );
            let png = file("png");
            assert_eq!(png[16..20], u32::to_be_bytes(dots), "{name}");
            if width == "page" {
                continue;
            }
            let colours = pixels(&png);
            let painted = painted(&String::from_utf8(file("svg")).unwrap());
            assert!(painted.len() > 2, "{name}: {painted:?}");
            for colour in painted {
                let count = colours.get(&colour).copied().unwrap_or(0);
                assert!(count > 20, "{name}: {colour:?} in {count} pixels");
            }
        }
    }
    // The next page takes away what it does not write.
    let output = plot(folder.path(), &[], None);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(names(folder.path(), "pdf").is_empty() && names(folder.path(), "png").is_empty());
}

#[test]
fn without_the_program_nothing_is_drawn() {
    let folder = folder();
    let output = plot(folder.path(), &["--format", "png"], Some(folder.path()));
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("cannot write PNG: rsvg-convert is not installed")
            && said.contains("hint: apt install librsvg2-bin"),
        "{said}"
    );
    assert!(!folder.path().join("plots").exists());
}

#[test]
fn a_program_that_fails_replaces_no_file() {
    let folder = folder();
    assert!(plot(folder.path(), &[], None).status.success());
    let before = names(folder.path(), "svg");
    let page = folder.path().join("plots/index.html");
    fs::remove_file(
        folder
            .path()
            .join("plots")
            .join(format!("{}.svg", before.first().unwrap())),
    )
    .unwrap();
    let program = folder.path().join("rsvg-convert");
    for (script, reason) in [
        (
            "echo broken >&2; exit 3",
            "rsvg-convert failed (exit status: 3): broken",
        ),
        ("echo text", "the output of rsvg-convert is not a PDF file"),
    ] {
        // Another test's child may have a file open that this process writes, and then nobody can run it: a child of its own
        // writes it.
        let source = folder.path().join("source");
        let script = format!("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n{script}\n");
        fs::write(&source, script).unwrap();
        let mut install = Command::new("install");
        let installed = install.args(["-m", "755"]).args([&source, &program]);
        assert!(installed.status().unwrap().success());
        let written = fs::metadata(&page).unwrap().modified().unwrap();
        let output = plot(folder.path(), &["--format", "pdf"], Some(folder.path()));
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(
            said.contains("cannot write plots/") && said.contains(reason),
            "{said}"
        );
        assert_eq!(names(folder.path(), "svg").len(), before.len() - 1);
        assert_eq!(fs::metadata(&page).unwrap().modified().unwrap(), written);
    }
}
