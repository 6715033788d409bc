//! Checks of fencing tokens at the resource that a lock protects.
//!
//! A holder can be paused past its lease, and write when a later holder has the lock. No lock can prevent that; the resource can.
//! It remembers the highest [fencing token](lock_core::FencingToken) that it has seen, and refuses lower ones. What counts is
//! that the comparison and the write are one step: between two, another holder could write. So each check here is one:
//!
//! | the resource | the check | one step, because | feature |
//! |---|---|---|---|
//! | memory of a process | [`Gate`] | the writes of different holders take turns | |
//! | rows of a SQL table | [`sql::FenceColumn`] | it is one statement | `rusqlite` |
//! | anything in a SQL database | [`sql::FenceTable`] | it is one transaction | `rusqlite` |
//! | a key in Redis | [`redis::Fenced`] | it is one script | `redis`, and `async` |
//! | an HTTP service of one process | [`http::FencingLayer`] | the requests of different holders take turns | `tower` |
//!
//! - **Raise before you read.** A new holder's first step is to raise the fence to its token (`raise`), and then it reads. Until a
//!   later holder's token is there, an earlier one may still write: also between the later one's read and write, and then that
//!   write is lost without an error. `raise` returns when that cannot happen any more.
//! - **Equal tokens pass**, because one holder may write several times. Equal tokens are not ordered among themselves.
//! - **A writer raises the fence, a reader does not**, since it would shut out the other readers. So `raise` takes a
//!   [`WriteToken`](lock_core::WriteToken), which guards of writers and permits have. The token of a read guard says that what is read is not older than that: a
//!   read check wants a fence that is not higher, and changes nothing. It does not stop an earlier writer that was paused: what
//!   belongs together has to be read in one transaction, or by a writer.
//! - **Each slot has a fence of its own.** The permits of a semaphore have tokens that rise for each slot, and say nothing about
//!   other slots. Take `guard.write_tokens()`, and raise the fence of each slot's own resource or row.
//! - **A refusal is final**: stop the work. The lock was lost, and what was read under it may be out of date.
//!
//! A token is compared with those of the same lock. Two locks that protect one resource need two fences.
//!
//! If a resource can compare a value, but not which of two is higher, see [`LeaseId`](lock_core::LeaseId).

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
