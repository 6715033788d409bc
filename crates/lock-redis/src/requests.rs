//! What is asked of the server, and what its answers mean. No I/O.

pub(crate) mod end_dwell;
pub(crate) mod latch;
pub(crate) mod limit;
pub(crate) mod look;
pub(crate) mod renewal;
pub(crate) mod revocation;
pub(crate) mod seen;
pub(crate) mod simple;
pub(crate) mod value;
pub(crate) mod verbs;
