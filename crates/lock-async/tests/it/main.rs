//! The tokio facade over the reference backend.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod asking;
mod barging;
mod cancellation;
mod careful;
mod driving;
mod holding;
mod hung;
mod keeping;
mod kinds;
mod latches;
mod order;
mod panics;
mod shared;
mod sharing;
mod support;
mod waiting;
mod watching;
