//! What can be at a path. A file that cannot be used is left as it was.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use lock_core::{AsyncBackend, BackendError, BlockingBackend, Effect, ErrorKind, Renewed};
use lock_sqlite::SqliteConfig;
use lock_sqlite::blocking::Sqlite;
use rusqlite::config::DbConfig;
use rustix::fs::{FlockOperation, flock};
use test_support::Finish;

use crate::elsewhere::{OPENER, PATH, outcome, tell};
use crate::rig::{Ask, Rig, WITHIN, claim, granted, secs};

fn refusal(path: &Path) -> BackendError {
    let error = Sqlite::open(&SqliteConfig::new(path)).unwrap_err();
    assert_eq!(error.effect(), Effect::None);
    assert!(error.remedy().is_some(), "{error}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    error
}

/// Everything in a directory, by name.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut contents: Vec<_> = paths.map(|path| (path.clone(), fs::read(&path).unwrap())).collect();
    contents.sort();
    contents
}

#[test]
fn a_new_file_is_for_its_user_alone() {
    let rig = Rig::new();
    granted(rig.client().ask(&claim("a")));
    let _open = rig.client();
    for entry in fs::read_dir(rig.directory.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{:?}", entry.file_name());
    }
}

/// As every daemon does after it was started.
#[test]
fn a_client_whose_process_changes_its_directory_stays_with_its_file() {
    let rig = Rig::new();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "files::changes_its_directory", "--nocapture"]).current_dir(rig.directory.path());
    let elsewhere = outcome(&command.env(PATH, "locks.db").finish());
    assert_eq!(elsewhere, "0 files elsewhere");
    assert_eq!(rig.rows("locks"), 6);
}

/// Played by another test as a process of its own; does nothing otherwise.
#[test]
fn changes_its_directory() {
    let Ok(path) = std::env::var(PATH) else { return };
    let (here, elsewhere) = (std::env::current_dir().unwrap(), tempfile::tempdir().unwrap());
    let configs = [
        SqliteConfig::from_url(&format!("sqlite:{path}")).unwrap(),
        serde_json::from_str(&format!(r#"{{"path":"{path}"}}"#)).unwrap(),
        SqliteConfig::new(&path),
    ];
    for (number, config) in configs.into_iter().enumerate() {
        std::env::set_current_dir(&here).unwrap();
        let client = Sqlite::open(&config).unwrap();
        let lease = granted(client.ask(&claim(&format!("before {number}"))));
        std::env::set_current_dir(&elsewhere).unwrap();
        assert!(matches!(client.extend(&lease), Renewed::Renewed { .. }));
        granted(client.ask(&claim(&format!("after {number}"))));
        Sqlite::open(&config).unwrap();
    }
    tell(format_args!("{} files elsewhere", fs::read_dir(&elsewhere).unwrap().count()));
}

/// As anybody can do it who may read the directory.
#[test]
fn who_locks_the_directory_stops_nobody() {
    let rig = Rig::new();
    let client = rig.client();
    let directory = fs::File::open(rig.directory.path()).unwrap();
    flock(&directory, FlockOperation::LockExclusive).unwrap();
    let lease = granted(client.ask(&claim("a")));
    let keeper = Arc::new(client).for_keeper();
    assert!(matches!(keeper.renew(&[lease], WITHIN).unwrap()[0], Renewed::Renewed { .. }));
    granted(rig.client().ask(&claim("b")));
    granted(BlockingBackend::for_keeper(Arc::new(rig.client())).acquire(&claim("c"), WITHIN).unwrap());
}

/// The connection that renews is there before anything is granted: a process may lose its rights later, or open too many files.
#[test]
fn a_client_renews_without_opening_anything_more() {
    let rig = Rig::new();
    let blocking = rig.client();
    let nonblocking = rig.nonblocking();
    let lease = granted(blocking.ask(&claim("a")));
    let path = rig.directory.path().join("locks.db-lock");
    let others = fs::File::open(path).unwrap();
    flock(&others, FlockOperation::LockExclusive).unwrap();
    let keeper = BlockingBackend::for_keeper(Arc::new(blocking));
    assert!(matches!(keeper.renew(std::slice::from_ref(&lease), secs(1)).unwrap()[0], Renewed::Renewed { .. }));
    let keeper = AsyncBackend::for_keeper(Arc::new(nonblocking));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let renewed = runtime.block_on(keeper.renew(std::slice::from_ref(&lease), secs(20)));
    assert!(matches!(renewed.unwrap()[0], Renewed::Renewed { .. }));
}

#[test]
fn a_path_that_leads_nowhere_is_refused() {
    let rig = Rig::new();
    let error = refusal(&rig.directory.path().join("no/locks.db"));
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.remedy().unwrap().starts_with("create the directory first"), "{error}");
    assert_eq!(refusal(rig.directory.path()).kind(), ErrorKind::Config);
    assert_eq!(contents(rig.directory.path()), []);
}

#[test]
fn a_dangling_link_is_refused_and_a_link_is_followed() {
    let rig = Rig::new();
    let link = rig.directory.path().join("link.db");
    std::os::unix::fs::symlink(rig.path(), &link).unwrap();
    assert_eq!(refusal(&link).kind(), ErrorKind::Config);
    let direct = rig.client();
    let through_link = Sqlite::open_with(&SqliteConfig::new(&link), rig.timing()).unwrap();
    granted(direct.ask(&claim("a")));
    crate::rig::busy(through_link.ask(&crate::rig::impatient("a")));
}

#[test]
fn a_file_that_is_no_database_is_left_untouched() {
    let rig = Rig::new();
    for garbage in ["x".repeat(10), "these are notes of somebody's\n".repeat(500)] {
        fs::write(rig.path(), &garbage).unwrap();
        let before = contents(rig.directory.path());
        assert_eq!(refusal(&rig.path()).kind(), ErrorKind::OtherKind);
        assert_eq!(contents(rig.directory.path()), before);
    }
}

#[test]
fn the_database_of_another_application_is_left_untouched() {
    for mode in ["DELETE", "WAL"] {
        let rig = Rig::new();
        let other = rig.raw();
        // As after a crash: its last commits are in a file beside the database.
        other.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        let write = "CREATE TABLE t(x); INSERT INTO t VALUES (1)";
        other.execute_batch(&format!("PRAGMA journal_mode = {mode}; {write}")).unwrap();
        drop(other);
        let without_index = |(path, _): &(PathBuf, Vec<u8>)| !path.to_str().unwrap().ends_with("-shm");
        let before: Vec<_> = contents(rig.directory.path()).into_iter().filter(without_index).collect();
        assert_eq!(refusal(&rig.path()).kind(), ErrorKind::OtherKind);
        let after: Vec<_> = contents(rig.directory.path()).into_iter().filter(without_index).collect();
        assert_eq!(after, before);
        assert_eq!(rig.rows("t"), 1);
    }
}

#[test]
fn a_newer_layout_is_refused_and_left_untouched() {
    let rig = Rig::new();
    rig.client();
    rig.raw().execute_batch("PRAGMA user_version = 99").unwrap();
    let before = fs::read(rig.path()).unwrap();
    let error = refusal(&rig.path());
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("layout 99"), "{error}");
    assert_eq!(fs::read(rig.path()).unwrap(), before);
}

#[test]
fn an_empty_file_is_taken() {
    let rig = Rig::new();
    fs::write(rig.path(), "").unwrap();
    granted(rig.client().ask(&claim("a")));
}

/// File modes do not bind root, so another process tries the refusals, as the user `nobody` if this process is root.
#[test]
fn a_read_only_file_or_directory_is_refused() {
    let rig = Rig::new();
    granted(rig.client().ask(&claim("a")));
    let (file, directory) = (rig.path(), rig.directory.path());
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let before = contents(directory);

    mode(&file, 0o444);
    mode(directory, 0o777);
    assert_denied(&file);
    assert_eq!(contents(directory), before);
    mode(&file, 0o666);
    mode(directory, 0o555);
    assert_denied(&file);
    assert_eq!(contents(directory), before);
    assert_denied(&directory.join("new.db"));
    assert_eq!(contents(directory), before);

    mode(directory, 0o777);
    assert_eq!(open_elsewhere(&file), "opened");
    mode(directory, 0o700);
}

#[track_caller]
fn assert_denied(path: &Path) {
    let outcome = open_elsewhere(path);
    assert!(outcome.starts_with("Denied") && outcome.contains("let this user write"), "{outcome}");
}

fn open_elsewhere(path: &Path) -> String {
    // The user `nobody` may not be allowed to run the test where it was built.
    let place = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
    let program = place.path().join("test");
    // Copied by another process: a thread of this one that forks meanwhile would keep the copy open for writing.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap();
    assert!(copied.success());
    let mut command = Command::new(program);
    command.args(["--exact", OPENER, "--nocapture"]).env(PATH, path).current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    outcome(&command.finish())
}
