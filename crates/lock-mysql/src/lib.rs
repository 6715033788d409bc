//! The backend for MySQL and MariaDB: locks beside the data that they protect, and fences inside the user's own transactions.
//!
//! Clients wait in one queue, first come, first served, and poll for their turn.
//!
//! # What is guaranteed
//! - A grant, a renewal and everything else that a client may rely on is on disk before it is answered, where
//!   `innodb_flush_log_at_trx_commit` is 1, as it is by default, and `sync_binlog` is 1 if there is a binary log.
//! - A transaction that begins with `CALL leasehold_fence(name, token)` keeps the lock from everybody else until it ends, even if the lease expires
//!   meanwhile. Afterwards, the token of an earlier holder is refused with the SQLSTATE `LH001`. `LH002` says that the transaction has read before it was
//!   fenced, and too early; `LH003` that there is none. With a prefix, the name is `PREFIX:NAME`.
//! - A client that stalls between two statements delays nobody: no lock of a row is held over a round trip.
//! - Listings have tokens and no owners. Accounts that may run the procedures are trusted with them.
//!
//! # What is not guaranteed
//! - Leases are timed by the server's clock. Set forward, it ends them early: two clients can hold one lock until the first one renews. Fences
//!   still hold.
//! - A fail-over to an asynchronous replica may lose the latest grants. Tokens then go on above the clock.
//! - A fence ends with its transaction: also with one that a statement commits by itself, such as `CREATE TABLE`, and with a return to a
//!   savepoint from before the fence.
//! - A fenced transaction that stays open keeps the lock from everybody else. Set `wait_timeout`, or `idle_transaction_timeout` on MariaDB.

mod config;
mod connect;
mod described;
mod error;
mod examine;
mod fences;
mod held;
mod schema;
mod source;
mod variables;
mod version;

pub mod blocking;
pub mod nonblocking;

pub use config::MysqlConfig;
pub use fences::{FenceError, Fences};
pub use schema::setup;
