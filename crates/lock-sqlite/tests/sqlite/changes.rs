//! Files that are deleted or replaced under running clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use lock_core::{BlockingBackend, Certainty, ErrorKind, Fenced, Released, Renewed};
use lock_sqlite::SqliteConfig;
use lock_sqlite::blocking::Sqlite;
use rusqlite::config::DbConfig;
use test_support::Finish;

use crate::elsewhere::{PATH, outcome, tell};
use crate::rig::{Ask, Rig, WITHIN, busy, claim, granted, impatient, lasting, position};

fn beside(rig: &Rig, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", rig.path().display()))
}

fn is_sound(rig: &Rig) {
    let report: String = rig.raw().query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(report, "ok");
}

#[test]
fn a_deleted_file_is_a_loss_and_a_new_one_unites_all_clients_again() {
    let rig = Rig::new();
    let (here, there) = (rig.client(), rig.client());
    let mine = claim("a");
    let lost = granted(here.ask(&mine));
    position(there.ask(&claim("a")));
    fs::remove_file(rig.path()).unwrap();

    assert_eq!(here.fence(&lost, WITHIN).unwrap(), Fenced::NotHeld);
    assert_eq!(here.extend(&lost), Renewed::NotHeld);
    assert_eq!(here.part(&mine), Released::NotHeld);
    let found = granted(there.ask(&impatient("a")));
    assert!(found.tokens.low() > lost.tokens.high());
    busy(here.ask(&impatient("a")));
    busy(rig.client().ask(&impatient("a")));
    is_sound(&rig);
}

#[test]
fn the_first_client_after_a_deletion_excludes_the_others() {
    let rig = Rig::new();
    let clients: Vec<_> = (0..4).map(|_| rig.client()).collect();
    for round in 0..20 {
        fs::remove_file(rig.path()).unwrap();
        let answers = std::thread::scope(|scope| {
            let ask = |client| move || granted_or_none(client);
            let running: Vec<_> = clients.iter().map(|client| scope.spawn(ask(client))).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).filter(|granted| *granted).count()
        });
        assert_eq!(answers, 1, "round {round}");
        is_sound(&rig);
    }
}

fn granted_or_none(client: &Sqlite) -> bool {
    matches!(client.ask(&impatient("a")), lock_core::Answer::Granted { .. })
}

#[test]
fn a_file_that_is_replaced_by_an_old_copy_draws_higher_tokens() {
    let rig = Rig::new();
    let client = rig.client();
    granted(client.ask(&claim("old")));
    rig.raw().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let copy = rig.directory.path().join("copy");
    fs::copy(rig.path(), &copy).unwrap();
    let lost = granted(client.ask(&claim("a")));

    fs::rename(&copy, rig.path()).unwrap();
    assert_eq!(client.extend(&lost), Renewed::NotHeld);
    busy(client.ask(&impatient("old")));
    assert!(granted(rig.client().ask(&claim("a"))).tokens.low() > lost.tokens.high());
    busy(client.ask(&impatient("a")));
    is_sound(&rig);
}

/// Nobody uses the file meanwhile, so no client can notice that it is an old one.
#[test]
fn a_backup_that_is_put_back_and_a_log_that_is_lost_draw_higher_tokens() {
    let rig = Rig::new();
    let client = rig.client();
    granted(client.ask(&claim("old")));
    let backup = rig.directory.path().join("backup");
    rig.raw().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    fs::copy(rig.path(), &backup).unwrap();
    let lost = granted(client.ask(&claim("a")));
    drop(client);
    fs::copy(&backup, rig.path()).unwrap();
    let after = granted(rig.client().ask(&claim("a")));
    assert!(after.tokens.low() > lost.tokens.high());

    let crashing = rig.raw();
    crashing.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    crashing.execute_batch("SELECT last FROM counter").unwrap();
    let in_the_log = granted(rig.client().ask(&claim("b")));
    drop(crashing);
    fs::remove_file(beside(&rig, "-wal")).unwrap();
    let again = granted(rig.client().ask(&impatient("b")));
    assert!(again.tokens.low() > in_the_log.tokens.high());
    is_sound(&rig);
}

#[test]
fn companions_that_are_deleted_leave_one_store_for_all() {
    for endings in [&["-shm"][..], &["-wal"], &["-wal", "-shm"]] {
        let rig = Rig::new();
        let (here, there) = (rig.client(), rig.client());
        let before = granted(here.ask(&claim("a")));
        for ending in endings {
            fs::remove_file(beside(&rig, ending)).unwrap();
        }
        let after = granted(there.ask(&claim("b")));
        assert!(after.tokens.low() > before.tokens.high(), "{endings:?}");
        busy(here.ask(&impatient("b")));
        busy(rig.client().ask(&impatient("b")));
        is_sound(&rig);
    }
}

/// A client that comes after the removal works with files that belong together, and a client from before joins, although nobody has
/// used its keeper since.
#[test]
fn a_lock_that_was_taken_after_companions_were_deleted_is_freed_by_nobody() {
    for endings in [&["-shm"][..], &["-wal", "-shm"]] {
        let rig = Rig::new();
        let here = Arc::new(Sqlite::open(&rig.config()).unwrap());
        let keeper = BlockingBackend::for_keeper(Arc::clone(&here) as Arc<dyn BlockingBackend>);
        let mine = claim("a");
        granted(here.ask(&mine));
        for ending in endings {
            fs::remove_file(beside(&rig, ending)).unwrap();
        }
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["--exact", "changes::takes_c", "--nocapture"]);
        assert_eq!(outcome(&other.env(PATH, rig.path()).finish()), "has c");

        here.release(&mine.release(Certainty::Answered), WITHIN).unwrap();
        busy(here.ask(&impatient("c")));
        drop((here, keeper));
        busy(Sqlite::open(&rig.config()).unwrap().ask(&impatient("c")));
        is_sound(&rig);
    }
}

/// Played by another test as a process of its own; does nothing otherwise.
#[test]
fn takes_c() {
    let Ok(path) = std::env::var(PATH) else { return };
    let client = Sqlite::open(&SqliteConfig::new(path)).unwrap();
    granted(client.ask(&lasting("1h", claim("c"))));
    tell("has c");
}

/// A lock that is kept needs no client. One that was connected to the earlier files closes last.
#[test]
fn an_earlier_client_that_is_closed_last_takes_nothing_along() {
    let rig = Rig::new();
    let here = Sqlite::open(&rig.config()).unwrap();
    granted(here.ask(&claim("a")));
    fs::remove_file(beside(&rig, "-shm")).unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", "changes::takes_c", "--nocapture"]);
    assert_eq!(outcome(&other.env(PATH, rig.path()).finish()), "has c");
    drop(here);
    busy(Sqlite::open(&rig.config()).unwrap().ask(&impatient("c")));
    is_sound(&rig);
}

#[test]
fn leftover_companion_files_are_not_used_with_a_new_file() {
    let rig = Rig::new();
    let client = rig.client();
    granted(client.ask(&claim("a")));
    let kept = |ending: &str| fs::read(beside(&rig, ending)).unwrap();
    let (wal, shm) = (kept("-wal"), kept("-shm"));
    drop(client);
    fs::remove_file(rig.path()).unwrap();
    fs::write(beside(&rig, "-wal"), wal).unwrap();
    fs::write(beside(&rig, "-shm"), shm).unwrap();
    granted(rig.client().ask(&impatient("a")));
    is_sound(&rig);
}

#[test]
fn a_directory_that_is_moved_away_is_an_error_until_it_is_back() {
    let rig = Rig::new();
    let inner = rig.directory.path().join("inner");
    let moved = rig.directory.path().join("moved");
    fs::create_dir(&inner).unwrap();
    let config = SqliteConfig::new(inner.join("locks.db"));
    let client = Sqlite::open_with(&config, rig.timing()).unwrap();
    let lease = granted(client.ask(&claim("a")));
    rename(&inner, &moved);
    assert_eq!(client.renew(std::slice::from_ref(&lease), WITHIN).unwrap_err().kind(), ErrorKind::Config);
    rename(&moved, &inner);
    assert!(matches!(client.extend(&lease), Renewed::Renewed { .. }));
}

fn rename(from: &Path, to: &Path) {
    fs::rename(from, to).unwrap();
}
