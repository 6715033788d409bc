//! The lock itself, without I/O.
//!
//! A lock that other processes respect is a *lease* in a store: it ends by itself, so that a holder that dies blocks
//! others only for its ttl. A holder therefore has to know until when it may rely on its lease: its *validity* counts
//! from the request, not from the answer, and ends before the lease does. The *keeper* renews it in time; if that
//! fails, the hold is *lost*, and the holder learns why. Since nothing can stop a process that was paused past its
//! lease, every turn has a *fencing token*, higher than all before it, which the protected resource can check.
//!
//! The machine that decides all this is the [`station`](station::Station): begin there. A facade (`lock-async`,
//! `lock-blocking`) carries out its decisions, and a backend translates them for its store. This crate reads no clock,
//! starts no thread, awaits nothing and knows no client library.
//!
//! Then: `verbs`, `backend`, `layer` and `immediate` (the requests to a store), `node` (those to one node of a quorum) · `hold` (what a guard
//! knows) · `keeper` (which lease is renewed when) · `latch` (counting arrivals) · `limit` (of a semaphore) · `policy` (the
//! numbers, with their reasons) · `budget` (of a lease: time to work, and to stop) · `name`, `location`, `owner`, `lease_id`, `token`, `ticket`, `time`, `note` (the values) · `store_url` (URLs of stores).

mod backend;
mod budget;
mod capabilities;
mod error;
mod event;
pub mod examine;
mod hold;
mod holder;
mod immediate;
pub mod inspect;
mod invalid;
mod keeper;
pub mod latch;
mod layer;
mod lease_id;
pub mod limit;
mod location;
mod name;
pub mod node;
mod note;
mod outcome;
mod owner;
mod policy;
mod prefix;
#[cfg(feature = "schema")]
pub mod schema;
mod slots;
mod stamped;
pub mod station;
mod store_config;
mod store_url;
mod terms;
mod ticket;
mod time;
mod token;
mod verbs;
mod write_token;

pub use backend::{AsyncBackend, Backend, BlockingBackend};
pub use budget::Budget;
pub use capabilities::{
    Ability, Capabilities, Copies, Counter, Durability, EntriesEnd, Isolation, Keep, RequestOrder, Waiting,
};
pub use error::{BackendError, Effect, ErrorKind, Operation};
pub use event::{Delivery, EventSink, Listener, Listeners, StoreEvent};
pub use hold::{Hold, LossReason, Lost};
pub use holder::Holder;
pub use immediate::Immediate;
pub use invalid::Invalid;
pub use keeper::{Admission, BATCH_MAX, Batch, ByOwner, Keeper, Lateness, Renewal, Via};
pub use layer::{AsyncLayer, BlockingLayer, Layer};
pub use lease_id::LeaseId;
pub use location::Location;
pub use name::LockName;
pub use note::Note;
pub use outcome::{AcquireError, Busy, Refusal, TryAcquireError};
pub use owner::Owner;
pub use policy::{CHAIN_DEFAULT, FLUSH_WITHIN, Policy, drift};
pub use prefix::Prefix;
pub use slots::Slots;
pub use stamped::Stamped;
pub use station::{OnUnavailable, Patience};
pub use store_config::{Reach, StoreConfig};
pub use store_url::{StoreUrl, UrlForm, UrlHost};
pub use terms::{Limit, Mode, ModeKind, NameKind, Terms, WriteSide};
pub use ticket::Ticket;
pub use time::{Moment, Ttl, human_duration, parse_duration, to_the_millisecond};
pub use token::{FencingToken, TokenRange, Width};
pub use verbs::{
    Answer, Certainty, Claim, Evidence, Fairness, Fenced, Lease, Queueing, ReleaseRequest, Released, Renewed,
};
pub use write_token::WriteToken;
