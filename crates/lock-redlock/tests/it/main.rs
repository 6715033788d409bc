//! The quorum over nodes in this process, which break on command and on a clock that can be moved.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

mod blocking;
mod counting;
mod deliveries;
mod doubts;
mod dwells;
mod held_back;
mod inspecting;
mod minority;
mod moving;
mod moving_mishaps;
mod nonblocking;
mod passes;
mod recovery;
mod reports;
mod revocations;
mod rounds;
mod script;
mod strangers;
mod successors;
mod support;
mod verbs;
