//! Which index each open database of this process has.
//!
//! All connections of a process share the index (`-shm`) that the first of them opened, by the database's inode. A connection that is opened
//! after others have made a new index would work with the earlier one, and exclude nobody.
//!
//! # Source
//! `unixOpenSharedMemory` in `os_unix.c` of SQLite.

use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Whether this process still has the database open with another index than the one that is there now.
pub(crate) fn is_apart(present: &Identity) -> bool {
    open().iter().any(|identity| present.has_newer_index_than(identity))
}

fn open() -> MutexGuard<'static, Vec<Identity>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
