//! What a client learns of a server before it relies on it. No I/O.

pub(crate) mod greeting;
mod learned;
pub(crate) mod server_info;
pub(crate) mod verification;
