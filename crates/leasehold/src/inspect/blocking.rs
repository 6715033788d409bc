//! The functions of [`inspect`](super) for plain threads.

#[path = "nonblocking/following.rs"]
mod following;

use lock_forms::blocking as both;

pub use following::{list_all, next_changes};
