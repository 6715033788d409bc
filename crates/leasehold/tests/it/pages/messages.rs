//! The messages that the page about troubleshooting explains are those of today.
#![allow(clippy::unwrap_used, reason = "tests may")]

use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../../../docs/book/src/troubleshooting.md");

/// The sources of all crates, where a text that is continued on the next line counts as one.
fn sources() -> String {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        let paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        let (below, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
        folders.extend(below.into_iter().filter(|path| !path.ends_with("tests")));
        for file in files.iter().filter(|path| path.extension().is_some_and(|end| end == "rs")) {
            let source = fs::read_to_string(file).unwrap();
            source.split("\\\n").for_each(|part| text.push_str(part.trim_start()));
        }
    }
    text
}

/// The messages of the index: all that the first cell of a row quotes.
fn indexed() -> Vec<&'static str> {
    let (_, index) = PAGE.split_once("## Index of error messages").unwrap();
    let (index, _) = index.split_once("## By symptom").unwrap();
    let cells = index.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn the_messages_of_the_page_exist() {
    let (sources, messages) = (sources(), indexed());
    assert!(messages.len() > 30, "the page explains {} messages", messages.len());
    for message in messages {
        assert!(sources.contains(message), "no source has the message {message:?}");
    }
}
