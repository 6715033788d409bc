//! A user who wants a lock.

use std::sync::Arc;

use lock_core::Hold;

use crate::wish::Wish;

/// A user in line, or the holder.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) wish: Wish,
    pub(crate) hold: Option<Arc<Hold>>,
}
