//! The command, as scripts and people see it: one program for all of these tests, which start it as a process.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops where it cannot go on"
)]

/// The messages of the guard have it.
#[path = "../../src/command_end.rs"]
mod command_end;
mod support;

mod away;
mod bad_input;
mod jobs;
mod log;

#[cfg(target_os = "linux")]
mod any_file;
#[cfg(target_os = "linux")]
mod breaking;
#[cfg(target_os = "linux")]
mod cookbook;
#[cfg(target_os = "linux")]
mod dashboard;
#[cfg(target_os = "linux")]
mod dashboard_browser;
#[cfg(target_os = "linux")]
mod death;
#[cfg(target_os = "linux")]
mod defaults;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod elect;
mod etcd;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod kinds;
#[cfg(target_os = "linux")]
mod messages;
#[cfg(target_os = "linux")]
mod mysql;
#[cfg(target_os = "linux")]
mod narrow;
#[cfg(target_os = "linux")]
mod output;
mod postgres;
#[cfg(target_os = "linux")]
mod readme;
#[cfg(target_os = "linux")]
mod redis;
#[cfg(target_os = "linux")]
mod redlock;
#[cfg(target_os = "linux")]
mod redlock_move;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod schedules;
#[cfg(target_os = "linux")]
mod store_errors;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod transcripts;
#[cfg(target_os = "linux")]
mod watching;
mod zookeeper;
