//! The blocking facade over the reference backend.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod asking;
mod cancelling;
mod changing;
mod holding;
mod hung;
mod keeping;
mod kinds;
mod latches;
mod panics;
mod refused;
mod shared;
mod sharing;
mod support;
mod waiting;
mod watching;
