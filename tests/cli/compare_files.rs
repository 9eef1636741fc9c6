//! The files and folders that `rocebench compare` is given: which it takes, and what it says of the others.

use std::fs;

use results::sample::has;

use crate::compare::{cases, compare, compared, data, launches};

#[test]
fn a_folders_good_files_are_used_beside_its_bad_ones() {
    let folder = tempfile::tempdir().unwrap();
    // The same result again is no second launch.
    let again = ("slower.json", "z.json");
    for (from, to) in ["slower.json", "truncated.json", "newer.json"]
        .map(|name| (name, name))
        .into_iter()
        .chain([again])
    {
        fs::copy(data(from), folder.path().join(to)).unwrap();
    }
    let (base, new) = (data("base.json"), folder.path().display().to_string());
    let comparison = compared(3, &[&base, &new]);
    assert_eq!(comparison.new.files.len(), 1);
    assert_eq!(comparison.refused.len(), 2);
    has(&comparison.refused[1], ["truncated.json:"]);
    has(&comparison.notes[0], ["z.json has the same content"]);
    let quiet = compare(&[&base, &new, "--quiet"]);
    has(quiet.stderr(), ["warning: "]);
    assert_eq!(quiet.stdout, "");
}

#[test]
fn folders_without_results_and_cases_in_common() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().display().to_string();
    let ran = compare(&[&data("base.json"), &empty]).exits(2);
    has(ran.stderr(), ["holds no result files"]);
    let other = launches(&folder.path().join("other"), "base.json", 1, |result, _| {
        for case in cases(result) {
            case["id"] = format!("other-{}", case["id"].as_str().unwrap()).into();
        }
    });
    let unmatched = compare(&[&data("base.json"), &other]).exits(2);
    has(unmatched.stderr(), ["no case is on both sides"]);
}

/// No more of it is read than tells that it is no result.
#[test]
fn a_file_without_end_is_refused_at_its_first_byte() {
    let ran = compare(&["/dev/zero", &data("base.json")]).exits(2);
    has(ran.stderr(), ["it does not begin with `{`"]);
    let folder = tempfile::tempdir().unwrap();
    let zeros = folder.path().join("zeros.json");
    fs::File::create(&zeros).unwrap().set_len(3 << 30).unwrap();
    let of_zeros = compare(&[&zeros.display().to_string(), &data("base.json")]).exits(2);
    has(of_zeros.stderr(), ["it does not begin with `{`"]);
    let large = folder.path().join("large.json");
    fs::write(&large, "{").unwrap();
    let file = fs::File::options().append(true).open(&large).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    let of_large = compare(&[&large.display().to_string(), &data("base.json")]).exits(2);
    has(of_large.stderr(), ["it is larger than 1 GiB"]);
}
