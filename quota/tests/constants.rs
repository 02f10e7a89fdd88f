//! Every constant of the scripts stands in `docs/limiter-constants.md` with its value, and those of the
//! model in memory are the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop at the first fault")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const PAGE: &str = "../docs/limiter-constants.md";

/// The files below a folder that end so.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_str().unwrap().ends_with(ending) {
            found.push(path);
        }
    }
    found
}

/// What lines such as `local LOOK, WALK = 32, 48` define.
fn of_scripts() -> BTreeMap<String, f64> {
    let mut constants = BTreeMap::new();
    for file in files(Path::new("../lua"), ".lua") {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("local "));
        for (names, values) in lines.filter_map(|line| line.split_once(" = ")) {
            let pairs: Vec<_> = names.split(", ").zip(values.split(", ")).collect();
            if !names.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c == ',' || c == ' ') {
                continue;
            }
            for (name, value) in pairs {
                let Ok(value) = value.parse::<f64>() else { continue };
                let before = constants.insert(name.to_owned(), value).unwrap_or(value);
                assert!(same(before, value), "{name} has another value in {}", file.display());
            }
        }
    }
    constants
}

fn same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-12 * one.abs()
}

#[test]
fn the_page_has_each_of_them_with_its_value() {
    let (known, page) = (of_scripts(), fs::read_to_string(PAGE).unwrap());
    let (chosen, places) = page.split_once("## Places, codes and bounds").unwrap();
    let mut told = BTreeSet::new();
    for row in chosen.lines().filter_map(|line| line.strip_prefix("| `")) {
        let (name, rest) = row.split_once("` | ").unwrap();
        let value: f64 = rest.split(" | ").next().unwrap().replace(',', "").parse().unwrap();
        let Some(known) = known.get(name) else { panic!("{name} is in no script") };
        assert!(same(*known, value), "{name} is {known}, and {value} on the page");
        assert!(told.insert(name.to_owned()), "{name} is on the page twice");
    }
    for name in places.split('`').skip(1).step_by(2) {
        assert!(known.contains_key(name), "{name} is in no script");
        assert!(told.insert(name.to_owned()), "{name} is on the page twice");
    }
    let missing: Vec<_> = known.keys().filter(|name| !told.contains(*name)).collect();
    assert!(missing.is_empty(), "not in docs/limiter-constants.md: {missing:?}");
    assert!(told.len() > 150, "{}", told.len());
}

#[test]
fn the_model_in_memory_has_those_of_the_scripts() {
    let (known, mut compared) = (of_scripts(), 0);
    for file in files(Path::new("src/memory"), ".rs") {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().filter_map(|line| line.split_once("const ")?.1.strip_suffix(';'));
        for (name, typed) in lines.filter_map(|line| line.split_once(": ")) {
            let Some((_, value)) = typed.split_once(" = ") else { continue };
            let Ok(value) = value.replace('_', "").parse::<f64>() else { continue };
            let Some(known) = known.get(name) else { panic!("{name}: {}", file.display()) };
            assert!(
                same(*known, value),
                "{name} is {known} in lua/, {value} in {}",
                file.display()
            );
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
}
