//! The rules of a lock store: who is granted a lock, who waits, who is next, with which tokens and slots, and what a
//! limit, a latch or a revocation does.
//!
//! A store shows the rows of one lock as [`Rows`], and calls one function for each request. The function reads, decides,
//! and then writes all changes together, or none. Nothing here reads a clock or does I/O: the time comes with the rows. An end
//! is exclusive: at its end, a lease has ended.
//!
//! ```
//! # use lock_core::*;
//! # use lock_rules::{Rows, Undone};
//! /// Answers a claim on a lock whose rows were loaded.
//! fn acquire<R: Rows<Client = u32>>(rows: &mut R, claim: &Claim) -> Result<Answer, Undone<R::Error>> {
//!     lock_rules::acquire(rows, 7, claim)
//! }
//! ```
//!
//! Reading order: `rows` (what a store keeps of a lock) · `plan` (one request: what it has read and decided) · `acquire`,
//! `release`, `renew`, `limit`, `entry` (the requests) · `latch` (latches, which are no locks) · `periods` (the constants) · `window`
//! (the same requests for stores behind a network) · `poll` (waiters of stores that do not push) · `entries` (stores that keep an order
//! of their own, without rows) · `session_proof`, `lease_proof` (how long a session, or a lease, of such a store lasts at least).

mod acquire;
pub mod entries;
mod entry;
mod latch;
mod lease_proof;
mod limit;
mod periods;
mod plan;
pub mod poll;
mod position;
mod refusal;
mod release;
mod renew;
mod rows;
mod session_proof;
pub mod window;

pub use acquire::{acquire, is_replaced_by};
pub use entry::{entry, fits_at};
pub use latch::{Change, LatchRows, LatchUpdate, ask_latch};
pub use lease_proof::{LeaseProof, Renewal, Seen};
pub use limit::{limit, limit_after};
pub use periods::{PLACE_MAX, REPLACED_FOR, TOMBSTONE_MIN, place_for, remembered_until, tombstone_for};
pub use position::{COUNTED_MAX, position};
pub use refusal::{Undone, cannot_keep, cannot_replace, given_up, held_in_another_mode, nothing_to_replace, used_up};
pub use release::{release, revoke};
pub use renew::{fence, renew};
pub use rows::{Changes, Hold, Notice, Place, Rows, Standing, Write, ends_of};
pub use session_proof::SessionProof;
