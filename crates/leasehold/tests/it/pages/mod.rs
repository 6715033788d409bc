//! The code in the README and in the book is the code here, word for word. The table of stores is written here.

mod configuration;
mod cookbook;
mod elections;
mod etcd;
mod fencing;
mod kinds;
mod kinds_with_threads;
mod locked;
mod manifests;
mod messages;
mod money;
mod mysql;
mod nightly;
mod questions;
mod rights;
mod service;
mod single_flight;
mod sql;
mod stores;
mod stores_by_name;
mod testing;
mod zookeeper;

use std::path::Path;

use test_support::pages::{self, Block};

/// Code without its comments and layout.
fn bare(code: &str) -> String {
    let lines = code.lines().map(|line| line.split(" // ").next().unwrap_or(line));
    lines.flat_map(str::split_whitespace).collect()
}

/// The languages of the blocks, each with a test. The first five have theirs here, and `toml` in `tests/it/schema.rs` and in the command;
/// the rest have theirs in the command. Output is shown as it was.
const LANGUAGES: [&str; 10] = ["rust", "sql", "pgsql", "redis", "toml", "sh", "cron", "ini", "yaml", "text"];

/// Those that a test reads from one page only.
const SCHEDULES: (&[&str], &str) = (&["cron", "ini", "yaml"], "docs/book/src/cookbook/schedules.md");

#[test]
fn every_block_is_in_a_language_that_a_test_reads() {
    for Block { page, language, code } in pages::blocks() {
        let language = language.as_str();
        assert!(LANGUAGES.contains(&language), "{}: no test reads {language:?}: {code}", page.display());
        let scheduled = SCHEDULES.0.contains(&language);
        assert!(!scheduled || page == Path::new(SCHEDULES.1), "{}: no test reads this {language}", page.display());
    }
}

#[test]
fn the_code_in_the_pages_is_the_code_here() {
    let files = [
        include_str!("../../../examples/async.rs"),
        include_str!("../../../examples/deposit.rs"),
        include_str!("../../../examples/losing.rs"),
        include_str!("service.rs"),
        include_str!("stores_by_name.rs"),
        include_str!("testing.rs"),
        include_str!("configuration.rs"),
        include_str!("kinds.rs"),
        include_str!("kinds_with_threads.rs"),
        include_str!("locked.rs"),
        include_str!("fencing.rs"),
        include_str!("cookbook.rs"),
        include_str!("money.rs"),
        include_str!("nightly.rs"),
        include_str!("mysql.rs"),
        include_str!("zookeeper.rs"),
        include_str!("etcd.rs"),
        include_str!("elections.rs"),
        include_str!("single_flight.rs"),
        include_str!("../../metrics/endpoint.rs"),
    ];
    let here: String = files.map(bare).concat();
    for Block { page, code, .. } in pages::blocks_in("rust") {
        assert!(here.contains(&bare(&code)), "{}: not compiled here: {code}", page.display());
    }
}
