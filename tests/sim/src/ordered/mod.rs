//! What stores with ordered entries have in common: the order, and servers with copies of the entries that wake the waiters.

mod entries;
mod replica;

pub(crate) use entries::{Entries, Entry, Turn};
pub(crate) use replica::{Judged, Replica, Watch};
