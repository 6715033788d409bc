//! What is composed from locks: several locks at once, re-entrant locks, locks that degrade, jobs, elections, and values that are
//! computed once. It works on every store, with one exception: the slots of jobs and their `at_least` need a store that can
//! keep a released lock, so neither `redlock://` nor `zookeeper://`.
//!
//! Import [`Kit`] to call its methods on a client. `leasehold::blocking` has the same for plain threads.
//!
//! # Several locks at once
//!
//! `locks.all(names)` acquires and releases several locks as one. Sets of locks never wait for each other in a circle, in
//! whatever order their names are given. A free set takes one round trip, whatever its size.
//! [`leasehold::all`](crate::all) does that for mutexes of several clients, also of different stores.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let locks = leasehold::connect("memory:").await?;
//! use std::time::Duration;
//! use leasehold::Kit;
//!
//! let guard = locks.all(["account:7", "account:3"]).wait(Duration::from_secs(5)).acquire().await?;
//! for (name, token) in guard.write_tokens() {
//!     println!("raise the fence of {name} to {token}"); // all of them before you read
//! }
//! for (name, token) in guard.tokens() {
//!     println!("write to {name} with token {token}");
//! }
//! guard.release().await?; // an error if any of them had been lost
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! Use one lock instead where you can: a set costs a lease for each of its locks, and holds the first ones while it waits for
//! the last one.
//!
//! # Re-entrant locks
//!
//! With plain threads, `locks.reentrant(name)` is a lock that the thread which holds it can acquire again, without a request to the
//! store and with the same fencing token:
//!
//! ```
//! # #[cfg(all(feature = "blocking", feature = "memory"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let locks = leasehold::blocking::connect("memory:")?;
//! use leasehold::blocking::Kit;
//!
//! let outer = locks.reentrant("order:7").acquire()?;
//! let inner = locks.reentrant("order:7").acquire()?; // in a function that is called meanwhile
//! assert_eq!(inner.fencing_token(), outer.fencing_token());
//! inner.release()?; // the lock stays held
//! outer.release()?; // the last guard releases it
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "blocking", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! In async code, neither a thread nor a task says which calls belong together, so there is no such lock. Pass the guard on, or share
//! it:
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let locks = leasehold::connect("memory:").await?;
//! let outer = locks.mutex("order:7").acquire().await?.share();
//! let inner = outer.again()?; // in a function that was given `outer`: an error if the lock was lost
//! inner.release().await?;
//! outer.release().await?; // the last one releases the lock
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! With threads as well, use a plain mutex where you can: code that takes the guard as an argument shows who holds the lock.
//!
//! # When the store is unreachable
//!
//! A mutex returns the store's error after an operation timeout. With [`OnUnavailable::Wait`](crate::OnUnavailable::Wait), it waits for the store as long as for other holders. `locks.degrading(name)` falls back to a process-local lock: other processes may hold
//! it at the same time. Its guard says so, and then it has no fencing token.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let locks = leasehold::connect("memory:").await?;
//! use leasehold::Kit;
//! use leasehold::kit::Scope;
//!
//! let guard = locks.degrading("refill:42").acquire().await?;
//! if guard.scope() == Scope::Process {
//!     println!("other processes may refill it as well: {:?}", guard.error());
//! }
//! guard.release().await?;
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! # Jobs
//!
//! `locks.job(name)` is work that a schedule calls for on several machines, and one of them does. With a [`Slot`], it runs once for
//! that time of the schedule, whichever machines call and whatever their clocks say.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let locks = leasehold::connect("memory:").await?;
//! # async fn send_report() {}
//! use leasehold::Kit;
//! use leasehold::kit::{JobOutcome, Slot};
//!
//! let slot: Slot = "2099-11-21T03:00".parse()?; // when the schedule calls, not when this runs
//! match locks.job("nightly").slot(slot).run(async |_guard| send_report().await).await? {
//!     JobOutcome::Ran(_) => println!("sent"),
//!     JobOutcome::Skipped(skipped) => println!("{skipped}"), // by whom it has run, or runs now
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! For work that is not one function, `begin` gives a run to end with `done` or `failed`.
//!
//! # Elections
//!
//! `locks.election(name)` has one leader among several candidates, and another one when it fails. A leader whose lease is not renewed
//! steps down before the lease can end. That does not cover a lock that an operator breaks. Its term is a fencing token.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let locks = leasehold::connect("memory:").await?;
//! # async fn schedule(_: leasehold::FencingToken) {}
//! use std::ops::ControlFlow;
//! use leasehold::Kit;
//!
//! let election = locks.election("scheduler");
//! let led = election.run_while_leader(|leadership| async move {
//!     schedule(leadership.term()).await; // is dropped when the leader steps down, and begun again in its next term
//!     ControlFlow::Break(()) // resign, and campaign no more
//! });
//! led.await?;
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! # Values that are computed once
//!
//! `locks.single_flight(key)` computes a value once, even if many callers in many processes miss the cache at the same time.
//! [`SingleFlight`] has an example. The cache is yours; say with the trait [`Cache`] how it finds and keeps a value.
//!
//! # Which errors to retry
//!
//! | error | what to do |
//! |---|---|
//! | [`AcquireAllError`] | it names the lock of the set, and has that lock's [error](crate::AcquireError) |
//! | [`Error::Lost`](crate::Error::Lost) of a re-entrant lock | drop all guards of the lost hold. Acquire again, and start from what the resource has stored |
//! | [`JobError::Acquire`] | as its [error](crate::AcquireError) says: the work was not begun |
//! | [`JobError::NotMarked`] | call again: the job is skipped if the slot was marked after all, although the work was not begun |
//! | [`JobError::Lost`] | see what was done of the work; from `begin`, it was not begun. A slot that is called for again is skipped, unless `retry_after_crash` is set, or `Run::failed` or `try_run` freed it first |
//! | [`JobError::Backend`] | as [`HoldError::Backend`](crate::HoldError::Backend), from the guard of a run or its `release` |
//! | [`LeadershipLost`] | stop the work, and campaign again |
//! | [`ElectionError::Acquire`] | as its [error](crate::AcquireError) says: this candidate does not lead |
//! | [`ElectionError::Lost`] | see what was done of the work: another candidate may have led since |
//! | [`ObserveError`] | if the store error may pass, look again |
//! | [`ReleaseAllError`] | if [`lost`](ReleaseAllError::lost) names a lock, part of the work may have been done without it; otherwise nothing |

pub use lock_core::Budget;
#[cfg(feature = "async")]
pub use lock_kit::nonblocking::{
    All, AllGuard, AllWatch, Cache, Degrading, DegradingGuard, Election, Job, Kit, Leaders, Leadership, Run,
    SingleFlight, all,
};
#[cfg(any(feature = "async", feature = "blocking"))]
pub use lock_kit::{
    AcquireAllError, Begun, ElectionError, Entry, Found, Guards, JobError, JobOutcome, JobRun, Leader, LeadershipLost,
    Leading, ObserveError, ReleaseAllError, RunEnd, Scope, Scoped, SkipReason, Skipped, Slot, SlotAfter,
};
