//! The data of a new server, which takes a while to make: it is made once for each version, and copied for each server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::must;

/// Where the servers are that tests download or make once.
const SERVERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers");

/// The new data of the server that says this of its version. What is not there yet is made in a directory that is given.
pub(crate) fn of_version(version: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let words = version.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    let place = Path::new(SERVERS).join(words.collect::<Vec<_>>().join("-"));
    if !place.exists() {
        must("make the directory of servers", fs::create_dir_all(SERVERS));
        let beside = must("make a directory", tempfile::tempdir_in(SERVERS));
        let made = beside.path().join("made");
        make(&made);
        show_to_all(&made);
        // In one step, so that what is found above is complete. Another process may have been faster.
        let kept = fs::rename(made, &place);
        assert!(place.exists(), "keep new data: {kept:?}");
    }
    place
}

/// Lets every account copy it, whichever made it. There is no secret in it.
fn show_to_all(path: &Path) {
    let mode = if path.is_dir() { 0o755 } else { 0o644 };
    must("show new data", fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    if path.is_dir() {
        for entry in must("list new data", fs::read_dir(path)) {
            show_to_all(&must("list new data", entry).path());
        }
    }
}

/// Copies a directory to where there is none yet.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    must("make a directory of the data", fs::create_dir(to));
    for entry in must("list the data", fs::read_dir(from)) {
        let entry = must("list the data", entry);
        let target = to.join(entry.file_name());
        if must("look at the data", entry.file_type()).is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            must("copy the data", fs::copy(entry.path(), &target));
        }
    }
}

/// Fails unless the command succeeded.
#[track_caller]
pub(crate) fn done(what: &str, output: &Output) {
    let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{what}: {}", said.concat());
}
