//! Following the primary that sentinels name.

mod primary;
mod sentinel;
mod watch;

pub(crate) use watch::watched;
