//! The backend for PostgreSQL: locks beside the data that they protect, and fences inside the user's own transactions.
//!
//! Clients wait in one queue, first come, first served, and learn by notifications that their turn has come.
//!
//! # What is guaranteed
//! - A grant, a renewal and everything else that somebody may rely on reaches the disk before it is answered, whatever
//!   `synchronous_commit` is by default; and synchronous standbys, if there are any.
//! - A transaction that begins with `SELECT leasehold.fence(name, token)` keeps the lock from everybody else until it ends, even if the lease
//!   expires meanwhile. With a prefix, the name is `PREFIX:NAME`. Afterwards, the token of an earlier holder is refused with the code `LH001`.
//! - A client that stalls between two statements delays nobody: no lock of a row is held over a round trip.
//! - Notifications and listings have tokens and no owners. Roles that may run the functions are trusted with them.
//!
//! # What is not guaranteed
//! - Leases are timed by the server's clock. Set forward, it ends them early: two clients can hold one lock until the first one renews. Fences
//!   still hold.
//! - A fail-over to an asynchronous standby may lose the latest grants. Tokens then go on above the clock.
//! - A fenced transaction that stays open keeps the lock from everybody else. Set `idle_in_transaction_session_timeout`.

mod config;
mod connect;
mod described;
mod error;
mod examine;
mod fences;
mod held;
mod login;
mod schema;
mod source;

pub mod blocking;
pub mod nonblocking;

pub use config::PostgresConfig;
pub use fences::{FenceError, Fences};
pub use schema::setup;
