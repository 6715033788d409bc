//! `lock-host`, `lock-blocking` and the code that threads share in `lock-redis`, compiled again from the same files, with
//! shuttle's threads and locks in `sync`.
//!
//! Time is a clock that a test moves, and randomness is a counter: so a schedule decides everything and can be run
//! again. Sleeps never time out here; code that relies on a timeout gets stuck, and shuttle reports it.

#![allow(dead_code, unreachable_pub, reason = "not all of the included files is used")]

// The files of the facade name those of the host so.
extern crate self as lock_host;

mod sync {
    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, atomic};
    pub(crate) use shuttle::thread;
}

#[path = "../../../crates/lock-host/src/acquire_call.rs"]
mod acquire_call;
#[path = "../../../crates/lock-host/src/alarms.rs"]
mod alarms;
#[path = "../../../crates/lock-host/src/builder.rs"]
mod builder;
#[path = "../../../crates/lock-host/src/cancel.rs"]
mod cancel;
#[path = "../../../crates/lock-host/src/client_context.rs"]
mod client_context;
#[path = "../../../crates/lock-host/src/clock.rs"]
mod clock;
#[path = "../../../crates/lock-host/src/errors.rs"]
mod errors;
#[path = "../../../crates/lock-host/src/hold_call.rs"]
mod hold_call;
mod host;
#[path = "../../../crates/lock-host/src/keeper_view.rs"]
mod keeper_view;
#[path = "../../../crates/lock-host/src/kinds.rs"]
mod kinds;
#[path = "../../../crates/lock-host/src/lock.rs"]
mod lock;
#[path = "../../../crates/lock-host/src/unmeasured.rs"]
mod measured;
#[path = "../../../crates/lock-host/src/member.rs"]
mod member;
#[path = "../../../crates/lock-host/src/named_latch.rs"]
mod named_latch;
#[path = "../../../crates/lock-host/src/notifying_guard.rs"]
mod notifying_guard;
#[path = "../../../crates/lock-host/src/observer.rs"]
mod observer;
#[path = "../../../crates/lock-host/src/options.rs"]
mod options;
#[path = "../../../crates/lock-host/src/outage.rs"]
mod outage;
#[path = "../../../crates/lock-host/src/pending_events.rs"]
mod pending_events;
#[path = "../../../crates/lock-host/src/proof.rs"]
mod proof;
#[cfg(test)]
#[path = "../../../crates/lock-host/src/recorder.rs"]
mod recorder;
#[path = "../../../crates/lock-host/src/renewals.rs"]
mod renewals;
#[path = "../../../crates/lock-host/src/setters.rs"]
mod setters;
#[path = "../../../crates/lock-host/src/sharded.rs"]
mod sharded;
#[path = "../../../crates/lock-host/src/site.rs"]
mod site;
#[path = "../../../crates/lock-host/src/stations.rs"]
mod stations;
#[path = "../../../crates/lock-host/src/untraced.rs"]
mod traced;
#[path = "../../../crates/lock-host/src/turn.rs"]
mod turn;
#[path = "../../../crates/lock-host/src/waiters.rs"]
mod waiters;
#[path = "../../../crates/lock-host/src/wake_registry.rs"]
mod wake_registry;
#[path = "../../../crates/lock-host/src/weak.rs"]
mod weak;

#[path = "../../../crates/lock-blocking/src/acquire.rs"]
mod acquire;
#[path = "../../../crates/lock-blocking/src/change.rs"]
mod change;
#[path = "../../../crates/lock-blocking/src/client.rs"]
mod client;
#[path = "../../../crates/lock-blocking/src/closing.rs"]
mod closing;
#[path = "../../../crates/lock-blocking/src/driver.rs"]
mod driver;
#[path = "../../../crates/lock-blocking/src/guard.rs"]
mod guard;
#[path = "../../../crates/lock-blocking/src/keeper.rs"]
mod keeper;
#[path = "../../../crates/lock-blocking/src/latch.rs"]
mod latch;
#[path = "../../../crates/lock-blocking/src/limit.rs"]
mod limit;
#[path = "../../../crates/lock-blocking/src/loss.rs"]
mod loss;
#[path = "../../../crates/lock-blocking/src/lost.rs"]
mod lost;
#[path = "../../../crates/lock-blocking/src/mutex.rs"]
mod mutex;
#[path = "../../../crates/lock-blocking/src/opening.rs"]
mod opening;
#[path = "../../../crates/lock-blocking/src/pool.rs"]
mod pool;
#[path = "../../../crates/lock-blocking/src/run_while_held.rs"]
mod run_while_held;
#[path = "../../../crates/lock-blocking/src/rw_lock.rs"]
mod rw_lock;
#[path = "../../../crates/lock-blocking/src/semaphore.rs"]
mod semaphore;
#[path = "../../../crates/lock-blocking/src/threads.rs"]
mod threads;
#[path = "../../../crates/lock-blocking/src/wake_signal.rs"]
mod wake_signal;

#[path = "../../../crates/lock-redis/src/blocking/slots.rs"]
mod slots;

use lock_forms::blocking as both;

pub mod broken;
pub mod sharing;
mod store;

pub use acquire_call::AcquireCall;
pub use alarms::{Alarm, Alarms, NAP_MAX, Ring};
pub use builder::{Build, Builder, Settings};
pub use cancel::CancelToken;
pub use client::Client;
pub use client_context::ClientContext;
pub use clock::{Clock, HostClock, ManualClock, SharedClock};
pub use errors::{ChangeError, Error, HoldError, Unchanged, counted, panicked};
pub use guard::Guard;
pub use hold_call::HoldCall;
pub use host::{note, random_u64, secret};
pub use keeper_view::{CloseOnDrop, KeeperView};
pub use kinds::{Exclusive, Permits, Shared};
pub use latch::Latch;
pub use lock::{LimitCall, Lock};
pub use lock_core::station::{Event, Level, LongWaits, Outcome};
pub use loss::LossWatch;
pub use member::{ClientId, Member};
pub use mutex::{Mutex, NamedLock, ReadLock, Semaphore};
pub use named_latch::{LatchCall, NamedLatch};
pub use notifying_guard::NotifyingGuard;
pub use observer::{Observer, SharedObserver};
pub use options::{LockOptions, Setting};
pub use proof::Proof;
pub use renewals::{KeeperState, KeeperStep, RenewalQueue};
pub use rw_lock::RwLock;
pub use site::{Driver, Inner, Locked, Site};
pub use stations::Stations;
pub use store::Store;
pub use turn::{Held, Turn};
pub use waiters::{End, TurnResult, Turns, Waiters};
pub use wake_registry::Wake;
pub use weak::WeakHeld;
