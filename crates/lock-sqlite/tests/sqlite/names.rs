//! One file under several names: SQLite's other two files lie beside each of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use lock_core::{BackendError, BlockingBackend, Effect, ErrorKind, Renewed};
use lock_sqlite::SqliteConfig;
use lock_sqlite::blocking::Sqlite;
use test_support::Finish;

use crate::elsewhere::{OPENER, PATH, is_permitted, outcome, unshared};
use crate::rig::{Ask, Rig, WITHIN, busy, claim, granted, impatient};

#[track_caller]
fn assert_refused(error: &BackendError) {
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error}");
    assert!(error.to_string().contains("hard links"), "{error}");
    assert!(error.remedy().unwrap().contains("share the directory instead"), "{error}");
}

#[test]
fn a_file_with_a_second_name_is_refused_by_either_until_one_is_gone() {
    let rig = Rig::new();
    granted(rig.client().ask(&claim("a")));
    let second = rig.directory.path().join("elsewhere");
    fs::create_dir(&second).unwrap();
    let second = second.join("locks.db");
    fs::hard_link(rig.path(), &second).unwrap();
    for path in [&rig.path(), &second] {
        assert_refused(&Sqlite::open_with(&SqliteConfig::new(path), rig.timing()).unwrap_err());
    }
    fs::remove_file(&second).unwrap();
    busy(rig.client().ask(&impatient("a")));
}

#[test]
fn a_second_name_that_is_given_to_an_open_file_is_noticed_and_nothing_is_removed() {
    let rig = Rig::new();
    let client = rig.client();
    let lease = granted(client.ask(&claim("a")));
    let second = rig.directory.path().join("second.db");
    fs::hard_link(rig.path(), &second).unwrap();
    assert_refused(&client.renew(std::slice::from_ref(&lease), WITHIN).unwrap_err());
    assert_refused(&client.refusal(&impatient("b")));
    fs::remove_file(&second).unwrap();
    assert!(matches!(client.extend(&lease), Renewed::Renewed { .. }));
}

#[test]
fn a_file_that_is_mounted_by_itself_is_refused_and_one_in_a_mounted_directory_is_not() {
    let rig = Rig::new();
    granted(rig.client().ask(&claim("a")));
    let place = rig.directory.path().join("a mount");
    fs::create_dir(&place).unwrap();
    let file = place.join("locks.db");
    fs::write(&file, "").unwrap();
    let Some(mounted_file) = open_mounted(&rig.path(), &file, &file) else { return };
    assert!(mounted_file.starts_with("Config") && mounted_file.contains("mount its directory"), "{mounted_file}");
    let mounted_directory = open_mounted(rig.directory.path(), &place, &file).unwrap();
    assert_eq!(mounted_directory, "opened");
}

/// Neither the mounts nor the boot of the machine can be read there: its leases would be timed by another clock.
#[test]
fn a_process_that_cannot_see_proc_is_refused() {
    let rig = Rig::new();
    granted(rig.client().ask(&claim("a")));
    let (empty, proc) = (rig.directory.path().join("empty"), Path::new("/proc"));
    fs::create_dir(&empty).unwrap();
    let Some(outcome) = open_mounted(&empty, proc, &rig.path()) else { return };
    assert!(outcome.starts_with("Config") && outcome.contains("mount /proc"), "{outcome}");
}

/// The outcome of opening `file` where `from` is mounted at `to`; `None` if this user may not mount.
fn open_mounted(from: &Path, to: &Path, file: &Path) -> Option<String> {
    if !is_permitted(mounting("", from, to)) {
        return None;
    }
    let open = format!("&& exec '{}' --exact {OPENER} --nocapture", std::env::current_exe().unwrap().display());
    Some(outcome(&mounting(&open, from, to).env(PATH, file).finish()))
}

/// A shell in a mount namespace of its own that mounts, and then continues.
fn mounting(then: &str, from: &Path, to: &Path) -> Command {
    let mut command = unshared(&["--mount", "sh", "-c", &format!("mount --bind \"$0\" \"$1\" {then}")]);
    command.args([from, to]);
    command
}
