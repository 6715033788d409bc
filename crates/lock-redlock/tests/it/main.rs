//! The quorum over nodes in this process, which break on command and on a clock that can be moved.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod counting;
mod guard;
mod letters;
mod minority;
mod moving;
mod nonblocking;
mod reports;
mod support;
mod verbs;
