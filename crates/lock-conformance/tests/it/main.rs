//! The suite on the reference backend, and on twins of it that are each broken in one way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod memory;
mod twins;
