//! Each command line of the README and of the book is one that the command accepts. A shell runs the blocks of a page, one after another,
//! with programs that only note how they were called.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use test_support::pages::blocks_in;
use test_support::{Finish, temp_dir};

use super::line;

/// Notes its name and its words, each with a separator behind it, on one line. It writes once: the programs of a pipe run at the same time.
const STUB: &str = "#!/bin/sh\nline=$(printf '%s\\037' \"${0##*/}\" \"$@\")\nprintf '%s\\n' \"$line\" >> \"$NOTES\"\n";

/// Writes the stubs, also of programs that no test needs to run. The shell does it: a file that this process had open could still be open
/// in a child of another test, and could not be run then.
const SETUP: &str = "mkdir bin; for name in leasehold cargo jq mariadb psql redis-cli redis-server sqlite3; do \
    printf '%s' \"$STUB\" > bin/$name; chmod +x bin/$name; done; PATH=$PWD/bin:/usr/bin:/bin\n";

/// The lines with which the blocks call `leasehold`.
fn calls(blocks: &str) -> Vec<Vec<OsString>> {
    let folder = temp_dir();
    let notes = folder.path().join("notes");
    let mut shell = Command::new("sh");
    shell.args(["-euc", &[SETUP, blocks].concat()]).current_dir(folder.path()).env("TMPDIR", folder.path());
    shell.env("STUB", STUB).env("NOTES", &notes).env("LEASEHOLD_URL", "redis://db1");
    let output = shell.finish();
    assert!(output.status.success(), "{blocks}\n{}", String::from_utf8_lossy(&output.stderr));
    let words = |line: &str| line.split_terminator('\x1f').map(OsString::from).collect();
    let calls = fs::read_to_string(notes).unwrap_or_default();
    calls.lines().filter(|line| line.starts_with("leasehold\x1f")).map(words).collect()
}

/// The commands about servers need a URL, which the pages give them in the environment.
fn is_accepted(call: &[OsString]) -> bool {
    let takes_url = |task: &OsString| ["redlock", "redis", "zookeeper", "etcd"].iter().any(|name| task == name);
    let takes_url = call.get(1).is_some_and(takes_url);
    let with_url = [call, &["redis://db1".into()]].concat();
    line::parse(call).is_ok() || takes_url && line::parse(&with_url).is_ok()
}

#[test]
fn the_command_lines_of_the_pages_are_accepted() {
    let mut pages: BTreeMap<PathBuf, String> = BTreeMap::new();
    blocks_in("sh").into_iter().for_each(|block| pages.entry(block.page).or_default().push_str(&block.code));
    let mut count = 0;
    for (page, blocks) in pages {
        for call in calls(&blocks) {
            assert!(is_accepted(&call), "{}: {call:?}", page.display());
            count += 1;
        }
    }
    assert!(count > 30, "the pages have {count} command lines");
}
