//! The tokio facade over the reference backend.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod cancellation;
mod holding;
mod hung;
mod keeping;
mod naming;
mod panics;
mod sharing;
mod support;
mod waiting;
