//! The embedded store on real files, real threads and real processes.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod changes;
mod contention;
mod earlier;
mod earlier_program;
mod elsewhere;
mod files;
mod inspect;
mod latches;
mod limits;
mod modes;
mod names;
mod older;
mod permits;
mod replacing;
mod rig;
mod timing;
mod turns;
mod watching;
