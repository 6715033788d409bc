//! What the tests of the command share: processes that report their ids, and whether they still run.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "most tests are for Linux"))]

pub(crate) mod browser;
pub(crate) mod dashboard;
pub(crate) mod leasehold;
pub(crate) mod nodes;
pub(crate) mod screen;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod transcript;

use std::path::{Path, PathBuf};

use tempfile::TempDir;
pub(crate) use test_support::bounds::wait_for;

/// A directory of a test, with files that its processes write.
pub(crate) struct Scratch(TempDir);

impl Scratch {
    pub(crate) fn new() -> Self {
        // Signals to the processes of a test must have their effect, however the tests were started.
        test_support::signals::default_in_children();
        Self(tempfile::tempdir().unwrap())
    }

    /// One whose path is equally long on all machines.
    pub(crate) fn in_tmp() -> Self {
        Self(tempfile::tempdir_in("/tmp").unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Waits for a file with at least one whole line and returns its text.
    pub(crate) fn text_of(&self, name: &str) -> String {
        let path = self.file(name);
        wait_for(&format!("{name} to be written"), || {
            std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        })
    }

    /// The process ids in a file.
    pub(crate) fn pids_of(&self, name: &str) -> Vec<i32> {
        self.text_of(name).split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }
}

/// `PATH`, on which `leasehold` is found first.
pub(crate) fn path_with_leasehold() -> String {
    let binaries = Path::new(env!("CARGO_BIN_EXE_leasehold")).parent().unwrap().display();
    format!("{binaries}:{}", std::env::var("PATH").unwrap())
}

/// Whether a process still runs; one that is only waiting to be reaped does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

/// Waits until none of these processes runs.
pub(crate) fn wait_for_death(pids: &[i32]) {
    wait_for(&format!("the death of {pids:?}"), || pids.iter().all(|&pid| !is_alive(pid)).then_some(()));
}

/// A command that starts a child, writes both process ids to `pids` in its directory, and ignores SIGTERM.
pub(crate) const STUBBORN: &str = "trap '' TERM; sleep 60 & echo $$ $! > pids; wait; wait; sleep 60";
