//! The code in the README, in the pages about the kinds of locks, fencing and metrics, and in the cookbook is the code here, word for
//! word. The table of stores is written here.
#![cfg(feature = "full")]

mod cookbook;
mod elections;
mod fencing;
mod kinds;
mod kinds_with_threads;
mod locked;
mod readme;
mod single_flight;
mod stores;

/// Code without its comments and layout.
fn bare(code: &str) -> String {
    let lines = code.lines().map(|line| line.split(" // ").next().unwrap_or(line));
    lines.flat_map(str::split_whitespace).collect()
}

/// The code of a page, block by block.
fn snippets(page: &str) -> Vec<&str> {
    page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_code_in_the_pages_is_the_code_here() {
    let files = [
        include_str!("readme.rs"),
        include_str!("kinds.rs"),
        include_str!("kinds_with_threads.rs"),
        include_str!("locked.rs"),
        include_str!("fencing.rs"),
        include_str!("cookbook.rs"),
        include_str!("elections.rs"),
        include_str!("single_flight.rs"),
        include_str!("../metrics/endpoint.rs"),
    ];
    let here: String = files.map(bare).concat();
    let pages = [
        (include_str!("../../../../README.md"), 4),
        (include_str!("../../../../docs/book/src/kinds/mutex.md"), 2),
        (include_str!("../../../../docs/book/src/kinds/read-write.md"), 2),
        (include_str!("../../../../docs/book/src/kinds/semaphore.md"), 4),
        (include_str!("../../../../docs/book/src/kinds/all.md"), 2),
        (include_str!("../../../../docs/book/src/kinds/reentrant.md"), 2),
        (include_str!("../../../../docs/book/src/kinds/latch.md"), 2),
        (include_str!("../../../../docs/book/src/kinds/ticket.md"), 2),
        (include_str!("../../../../docs/book/src/kinds/locked.md"), 2),
        (include_str!("../../../../docs/book/src/fencing.md"), 7),
        (include_str!("../../../../docs/book/src/cookbook.md"), 3),
        (include_str!("../../../../docs/book/src/kinds/job.md"), 2),
        (include_str!("../../../../docs/book/src/kinds/election.md"), 3),
        (include_str!("../../../../docs/book/src/kinds/degrading.md"), 2),
        (include_str!("../../../../docs/book/src/kinds/single-flight.md"), 3),
        (include_str!("../../../../docs/book/src/metrics.md"), 1),
    ];
    for (page, count) in pages {
        let snippets = snippets(page);
        assert_eq!(snippets.len(), count);
        for snippet in snippets {
            assert!(here.contains(&bare(snippet)), "not compiled here: {snippet}");
        }
    }
}
