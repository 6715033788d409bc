//! Following the primary that sentinels name.

pub(crate) mod primary;
pub(crate) mod sentinel;
pub(crate) mod watch;
