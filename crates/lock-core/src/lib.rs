//! The lock itself, without I/O.
//!
//! A lock that other processes respect is a *lease* in a store: it ends by itself, so that a holder that dies is in the
//! way for its ttl only. A holder therefore has to know until when it may rely on its lease: its *validity* counts from
//! when it asked, not from the answer, and ends before the lease does. The *keeper* asks for more in time; if that
//! fails, the hold is *lost*, and the holder is told why. Since nobody can stop a process that was paused past its
//! lease, every turn has a *fencing token*, higher than all before, which what the lock protects can check.
//!
//! The machine that decides all this is the [`station`](station::Station): begin there. What it decides, a facade
//! (`lock-async`, `lock-blocking`) carries out, and a backend translates for its store. So this crate reads no clock,
//! starts no thread, awaits nothing and knows no client library.
//!
//! Then: `verbs` and `backend` (what is said to a store), `node` (to one of several) · `hold` (what a guard knows) · `keeper` (who is renewed when) ·
//! `policy` (the numbers, with their reasons) · `name`, `owner`, `token`, `time`, `note` (the words).

mod backend;
mod capabilities;
mod error;
mod event;
mod hold;
pub mod inspect;
mod invalid;
mod keeper;
mod name;
pub mod node;
mod note;
mod options;
mod outcome;
mod owner;
mod policy;
mod prefix;
pub mod station;
mod terms;
mod time;
mod token;
mod verbs;

pub use backend::{AsyncBackend, AsyncInspect, Backend, BlockingBackend, BlockingInspect};
pub use capabilities::{Ability, Capabilities, Counter, Durability, Isolation, RequestOrder, Waiting};
pub use error::{BackendError, Effect, ErrorKind, Operation};
pub use event::{Event, EventSink, Heard, Listener, Listeners};
pub use hold::{Hold, LossReason, Lost};
pub use invalid::Invalid;
pub use keeper::{BATCH_MAX, Batch, Keeper, Lateness, Renewal};
pub use name::LockName;
pub use note::Note;
pub use options::{LockOptions, Patience};
pub use outcome::{AcquireError, Busy, Refusal, ReleaseError, VerifyError, WhileHeldError};
pub use owner::Owner;
pub use policy::{CHAIN_DEFAULT, FLUSH_WITHIN, Policy, drift};
pub use prefix::Prefix;
pub use terms::{Mode, ModeKind, Terms};
pub use time::{Moment, Ttl, human_duration, parse_duration, to_the_millisecond};
pub use token::{FencingToken, TokenRange, Width};
pub use verbs::{Answer, Certainty, Claim, Fenced, Holder, Lease, Queueing, ReleaseRequest, Released, Renewed};
