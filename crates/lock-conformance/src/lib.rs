//! The suite that every backend runs, in both faces.
//!
//! A backend describes how its stores are made, watched and broken by a [`Harness`], and writes one line in its tests:
//! [`suite!`]`(MyHarness)`. That makes one test for each case and face, named `<face>::<group>::<case>`, where the face
//! is `nonblocking` (tokio) or `blocking`. Each test gets a store of its own.
//!
//! Nothing is skipped in silence. What a store cannot do selects a case that shows that it truly does not; what a
//! harness cannot break has to be listed with its reason ([`Harness::exempt`]), and the tests `<face>::account` hold
//! the list against the store and print it.
//!
//! Reading order: `harness` (what a backend gives) · `suite` (the list of cases, the macro) · `bench` (what a case
//! gets) · `verbs`, `face` (the two layers, without their colours) · `cases` (what must be true) · `child` (other
//! processes) · `on_command` (faults for stores that have none of their own).

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a case fails by panicking")]

mod bench;
pub mod cases;
mod child;
mod face;
mod harness;
mod need;
mod on_command;
mod suite;
mod verbs;

pub use bench::Bench;
pub use child::play_child;
pub use face::{Client, Guard, Waiter};
pub use harness::{Fault, Faults, Harness, NoFaults};
pub use need::{Colour, Exemption, Need};
pub use on_command::OnCommand;
pub use suite::{CASES, Case, account, case, run};
pub use verbs::Verbs;
