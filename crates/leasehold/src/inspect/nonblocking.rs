//! For async code on tokio.

mod following;

use lock_forms::nonblocking as both;

pub use following::{list_all, next_changes};
