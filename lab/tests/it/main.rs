//! The laboratory, as people see it: one program for all of these tests, which start it as a process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test stops where it cannot go on")]

mod account;
mod cache;
mod command_line;
mod failures;
mod support;
