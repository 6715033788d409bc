//! The form for threads.

use lock_forms::blocking as both;

#[path = "for_tasks/source.rs"]
pub(crate) mod source;
