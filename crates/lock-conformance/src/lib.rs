//! The suite that every backend runs, in both facades.
//!
//! A backend describes with a [`Harness`] how its stores are made, watched and broken, and writes one line in its
//! tests: [`suite!`]`(MyHarness)`. That makes one test for each case and facade, named `<facade>::<group>::<case>`,
//! where the facade is `nonblocking` (tokio) or `blocking`. Each test gets a store of its own, on servers that it may share.
//!
//! Nothing is skipped silently. What a store lacks is found out once, before any case: a case that does not apply makes no store. What a
//! harness cannot break must be listed with a reason ([`Harness::exempt`]); the tests `<facade>::account` compare the list
//! with the store, show what it says to what it cannot do, and print it.
//!
//! Reading order: `harness` (what a backend gives) · `list` (the cases) · `suite` (the macro that makes tests of them) ·
//! `bench` (what a case gets) · `verbs` with `asks` (several at once), `facade` with `locks` (the two layers, each for async and blocking) · `cases` (what must be
//! true) · `child` (other processes) · `on_command` (faults for stores that have none of their own).

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a case fails by panicking")]

mod absence;
mod asks;
mod bench;
pub mod cases;
mod changes;
mod child;
mod facade;
mod fault;
mod harness;
mod history;
mod list;
mod locks;
mod need;
mod on_command;
mod pairs;
mod play;
mod player;
mod reference;
mod suite;
mod verbs;

pub use bench::Bench;
pub use facade::{Client, Facade};
pub use fault::{Fault, Faults, NoFaults};
pub use harness::Harness;
pub use list::{CASES, Case, case};
pub use locks::{Guard, Waiter};
pub use need::{Exemption, Need};
pub use on_command::OnCommand;
pub use play::play_child;
pub use suite::{Absent, account, run};
pub use verbs::Verbs;
