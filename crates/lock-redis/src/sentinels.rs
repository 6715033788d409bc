//! Following the primary that sentinels name.

mod directory;
mod primary;
mod sentinel;
mod watch;

pub(crate) use primary::Primary;
