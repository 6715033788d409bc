//! The lock itself, without I/O.
//!
//! This crate holds the vocabulary, the four verbs that a store offers ([`AsyncBackend`], [`BlockingBackend`]), and
//! the machine that decides everything about leases. It reads no clock, starts no thread, awaits
//! nothing and knows no client library: `lock-async` and `lock-blocking` run it, the backend crates translate for it.
//!
//! Reading order: `name`, `owner`, `token`, `time` (the words) · `verbs` (what is said to a store) · `backend` (who it
//! is said to) · `station` (the machine) · `hold` (what a guard knows) · `keeper` (renewal).

mod backend;
mod capabilities;
mod error;
mod event;
mod hold;
pub mod inspect;
mod invalid;
mod keeper;
mod name;
mod note;
mod options;
mod outcome;
mod owner;
mod policy;
mod prefix;
pub mod station;
mod time;
mod token;
mod verbs;

pub use backend::{AsyncBackend, AsyncInspect, Backend, BlockingBackend, BlockingInspect};
pub use capabilities::{Capabilities, Durability, Isolation, Ordering, Waiting};
pub use error::{BackendError, Effect, ErrorKind, Operation};
pub use event::{Event, EventSink};
pub use hold::{Hold, LossReason, Lost};
pub use invalid::Invalid;
pub use keeper::{BATCH_MAX, Batch, Keeper, Tidings};
pub use name::LockName;
pub use note::Note;
pub use options::{LockOptions, Patience};
pub use outcome::{AcquireError, Ended, Refusal, VerifyError, WhileHeldError};
pub use owner::Owner;
pub use policy::{CHAIN_DEFAULT, Policy, drift};
pub use prefix::Prefix;
pub use time::{Moment, Ttl, human_duration, parse_duration};
pub use token::{FencingToken, TokenRange, Width};
pub use verbs::{Answer, Certainty, Claim, Fenced, Holder, Lease, Mode, Parting, Queueing, Released, Renewed};
