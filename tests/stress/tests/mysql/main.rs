//! Many processes in both facades on one MariaDB: six on locks of all kinds while everything breaks, and a crowd on one
//! lock.
//!
//! The seed is printed, and read from `LEASEHOLD_SEED`; `LEASEHOLD_STRESS_SECONDS` makes the runs longer.

use stress::crowd::play_crowd;
use stress::sql::{play_mistake, play_storm};
use test_support::MysqlServer;

const WORKER: &str = env!("CARGO_BIN_EXE_stress-worker");

#[test]
fn turns_never_overlap_tokens_rise_and_nobody_starves() {
    play_storm::<MysqlServer>(WORKER);
}

#[test]
#[ignore = "it needs both cores for itself; `cargo xtask chaos` runs it"]
fn guests_of_a_crowd_have_equally_many_turns_and_nobody_is_told_of_an_error() {
    play_crowd::<MysqlServer>(WORKER);
}

#[test]
fn a_process_that_does_not_look_whether_it_holds_is_found() {
    play_mistake::<MysqlServer>(WORKER);
}
