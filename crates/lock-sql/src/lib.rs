//! What the stores for SQL servers share. The server has the tables and functions that answer requests: each takes one JSON text, and returns
//! one. [`Store`] calls the functions, and lets waiters know that their turn has come. A crate for one server is a [`Database`], with the
//! functions in its own SQL.
//!
//! - Three functions answer alone what is common (`fast.rs`): claims for exclusive locks, their releases, and renewals. All other requests
//!   load a window of the rules, decide, and commit (`session.rs`).
//! - No lock of a row is held over a round trip.
//! - What is in the tables is not documented here: see the SQL of each server.

mod address;
mod commit;
mod database;
mod encryption;
mod fast;
mod fence_error;
mod idle;
mod inspect;
mod latches;
mod notification;
mod pool;
mod session;
mod store;
mod waiters;
mod wire;

pub use address::{Address, AddressForm, Fields};
pub use database::{Connection, Database, Notifications, error};
pub use fence_error::FenceError;
pub use pool::{Connector, Lent, Pool, connect};
pub use store::Store;
