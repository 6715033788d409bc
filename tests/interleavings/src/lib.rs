//! `lock-host` and `lock-blocking` once more, from the same files, with shuttle's threads and locks in `sync`.
//!
//! Time is a clock that a test moves, and randomness is a counter: so a schedule decides everything and can be run
//! again. Sleeps never time out here; whoever relies on that is stuck, and shuttle says so.

#![allow(dead_code, unreachable_pub, reason = "not all of the included files is used")]

// The files of the face name those of the host so.
extern crate self as lock_host;

mod sync {
    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, atomic};
    pub(crate) use shuttle::thread;
}

#[path = "../../../crates/lock-host/src/alarms.rs"]
mod alarms;
#[path = "../../../crates/lock-host/src/clock.rs"]
mod clock;
mod host;
#[path = "../../../crates/lock-host/src/sharded.rs"]
mod sharded;
#[path = "../../../crates/lock-host/src/stations.rs"]
mod stations;
#[path = "../../../crates/lock-host/src/tray.rs"]
mod tray;

#[path = "../../../crates/lock-blocking/src/cell.rs"]
mod cell;
#[path = "../../../crates/lock-blocking/src/client.rs"]
mod client;
#[path = "../../../crates/lock-blocking/src/driver.rs"]
mod driver;
#[path = "../../../crates/lock-blocking/src/guard.rs"]
mod guard;
#[path = "../../../crates/lock-blocking/src/keeper.rs"]
mod keeper;
#[path = "../../../crates/lock-blocking/src/mutex.rs"]
mod mutex;
#[path = "../../../crates/lock-blocking/src/seats.rs"]
mod seats;

pub mod broken;
mod store;

pub use alarms::{Alarms, NAP_MAX, Ring, Ringer};
pub use client::{Builder, Client};
pub use clock::{Clock, HostClock, ManualClock, SharedClock};
pub use guard::Guard;
pub use host::{note, random_u64, secret};
pub use mutex::Mutex;
pub use sharded::Sharded;
pub use stations::{StationCell, Stations};
pub use store::Store;
pub use tray::Tray;
