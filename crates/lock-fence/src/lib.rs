//! Checks of fencing tokens at the resource that a lock protects.
//!
//! A holder can be paused past its lease, and write when a later holder has written. No lock can prevent that; the resource can.
//! It remembers the highest [fencing token](lock_core::FencingToken) that it has seen, and refuses lower ones. What counts is
//! that the comparison and the write are one step: between two, another holder could write. So each check here is one:
//!
//! | the resource | the check | one step, because | feature |
//! |---|---|---|---|
//! | memory of a process | [`Gate`] | the writes of different holders take turns | |
//! | rows of a SQL table | [`sql::FenceColumn`] | it is one statement | `rusqlite` |
//! | anything in a SQL database | [`sql::FenceTable`] | it is one transaction | `rusqlite` |
//! | a key in Redis | [`redis::Fenced`] | it is one script | `redis`, and `async` |
//! | an HTTP service | [`http::FencingLayer`] | the requests of different holders take turns | `tower` |
//!
//! - **Equal tokens pass**, because one holder may write several times. Equal tokens are not ordered among themselves.
//! - **A writer raises the fence, a reader does not.** The token of a read guard says that what is read is not older than that: a
//!   read check wants a fence that is not higher, and changes nothing.
//! - **Each slot has a fence of its own.** The permits of a semaphore have tokens that rise for each slot, and say nothing about
//!   other slots. Take `guard.tokens()`, and check each with a resource or a row for its slot.
//! - **A refusal is final**: stop the work. The lock was lost, and what was read under it may be out of date.
//!
//! A token is compared with those of the same lock. Two locks that protect one resource need two fences.
//!
//! If a resource can compare a value, but not which of two is higher, see [`LeaseId`](lock_core::LeaseId).

mod block_on;
mod gate;
#[cfg(feature = "tower")]
pub mod http;
#[cfg(feature = "redis")]
pub mod redis;
mod refused;
#[cfg(feature = "rusqlite")]
pub mod sql;

pub use gate::{Admitted, Gate};
pub use refused::Refused;
