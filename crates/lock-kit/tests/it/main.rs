//! The kit over real stores, in both facades.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod all;
mod all_blocking;
mod circles;
mod degrading;
mod elections;
mod flights;
mod flights_kept;
mod flights_of_processes;
mod job_begun;
mod job_marks;
mod job_outcomes;
mod jobs;
mod keeping;
mod locations;
mod options;
mod reentrant_blocking;
mod round_trips;
mod shelf;
mod support;
