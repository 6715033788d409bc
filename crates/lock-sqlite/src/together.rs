//! Which index each open database of this process has.
//!
//! All connections of a process share the index (`-shm`) that the first of them opened, by the database's inode. A connection that is opened
//! after others have made a new index would work with the earlier one, and exclude nobody.
//!
//! # Source
//! `unixOpenSharedMemory` in `os_unix.c` of SQLite.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::file::Identity;

static OPEN: Mutex<Vec<Identity>> = Mutex::new(Vec::new());

/// A connection of this process. It counts until this is dropped, which has to come after its closing.
#[derive(Debug)]
pub(crate) struct Joined(Identity);

impl Joined {
    pub(crate) fn new(identity: Identity) -> Self {
        open().push(identity);
        Self(identity)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut open = open();
        if let Some(place) = open.iter().position(|identity| *identity == self.0) {
            open.swap_remove(place);
        }
    }
}

/// How long a connection is looked for that keeps the new index from being used. One that is being closed counts a moment longer than
/// its files are open, and a new database may have their inodes meanwhile.
const CLOSING: Duration = Duration::from_millis(100);

const PACE: Duration = Duration::from_millis(1);

/// Whether this process still has the database open with another index than the one that is there now.
pub(crate) fn is_apart(present: &Identity) -> bool {
    let is_apart = || open().iter().any(|identity| present.has_newer_index_than(identity));
    let begin = Instant::now();
    while is_apart() {
        if begin.elapsed() >= CLOSING {
            return true;
        }
        thread::sleep(PACE);
    }
    false
}

fn open() -> MutexGuard<'static, Vec<Identity>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_being_closed_is_waited_for() {
        let (earlier, present) = (Identity::of_test(1, 2), Identity::of_test(1, 3));
        let joined = Joined::new(earlier);
        assert!(is_apart(&present));
        let closing = thread::spawn(move || {
            thread::sleep(PACE * 10);
            drop(joined);
        });
        assert!(!is_apart(&present));
        closing.join().unwrap();
    }
}
