//! What the core must not know: a clock that counts suspend, alarms on that clock, randomness, and this host. It also
//! holds the half of a client that is the same in both facades.
//!
//! Nothing here decides anything about leases. Except the bridge, nothing is async or waits for a store.
//!
//! - This host: `clock`, `alarms`, `host`.
//! - A client: `builder`; `stations` by name, and what they share (`client_context`); `errors`; `outage` (which callers share).
//! - One lock: `options` (how to hold it), `lock` (a name with its options), `member` (a lock of several), `acquire_call`,
//!   `cancel` (ends a wait), `site` (a station with its waiters), `waiters` (the state of each turn).
//! - One hold: `turn`, `weak` (sees its end without keeping it), `proof`, `hold_call` (a request to the store about it).
//! - One latch: `named_latch` (its name and ttl, and a call about it), `wake_registry` (its waiters).
//! - `setters`: the setters of options, for every type that has options.
//! - Observing: stations report events to each `observer`. `pending_events` has those of which observers were not notified yet, and
//!   `notifying_guard` notifies them once the site is unlocked. `traced` and `measured` are the observers of the features `tracing` and
//!   `metrics` (without these, `untraced` and `unmeasured`).
//! - Renewal: `renewals` (the queue), `keeper_view` (what the keeper serves).
//! - Async stores for threads, with the feature `bridge`: `bridge` (a runtime), `bridged` and `bridged_node` (what uses it).

#[cfg(not(unix))]
compile_error!(
    "leasehold supports Unix systems such as Linux and macOS, but not Windows: the clock of a lease has to count while the machine sleeps"
);

mod acquire_call;
mod alarms;
#[cfg(feature = "bridge")]
mod bridge;
#[cfg(feature = "bridge")]
mod bridged;
#[cfg(feature = "bridge")]
mod bridged_node;
mod builder;
mod cancel;
mod client_context;
mod clock;
mod errors;
mod hold_call;
mod host;
mod keeper_view;
mod kinds;
mod lock;
#[cfg(feature = "metrics")]
mod measured;
#[cfg(not(feature = "metrics"))]
#[path = "unmeasured.rs"]
mod measured;
mod member;
mod named_latch;
mod notifying_guard;
mod observer;
mod options;
mod outage;
mod pending_events;
mod proof;
#[cfg(test)]
mod recorder;
mod renewals;
mod setters;
mod sharded;
mod site;
mod stations;
mod sync;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "tracing")]
mod traced;
#[cfg(not(feature = "tracing"))]
#[path = "untraced.rs"]
mod traced;
mod turn;
mod waiters;
mod wake_registry;
mod weak;

pub use acquire_call::AcquireCall;
pub use alarms::{Alarm, Alarms, NAP_MAX, Ring};
#[cfg(feature = "bridge")]
pub use bridge::Bridge;
#[cfg(feature = "bridge")]
pub use bridged::Bridged;
pub use builder::{Build, Builder, Settings};
pub use cancel::{CancelToken, Watch as CancelWatch};
pub use client_context::ClientContext;
pub use clock::{Clock, HostClock, ManualClock, SharedClock};
pub use errors::{ChangeError, Error, HoldError, Unchanged, counted, panicked};
pub use hold_call::HoldCall;
pub use host::{BOOT_ID, boot_id, host_name, is_gone, new_owner, note, random_u64, secret, since_1970};
pub use keeper_view::{CloseOnDrop, KeeperView};
pub use kinds::{AnyKind, Exclusive, Permits, Shared};
pub use lock::{LimitCall, Lock};
pub use lock_core::station::{Event, Level, LongWaits, Outcome};
pub use member::{ClientId, Member};
pub use named_latch::{LatchCall, NamedLatch};
pub use notifying_guard::NotifyingGuard;
pub use observer::{Observer, SharedObserver};
pub use options::{LockOptions, Setting};
pub use outage::Outage;
pub use proof::Proof;
pub use renewals::{KeeperState, KeeperStep, RenewalQueue};
pub use site::{Driver, Inner, Locked, Site};
pub use stations::Stations;
pub use turn::{Held, Turn};
pub use waiters::{End, TurnResult, Turns, Waiters};
pub use wake_registry::{CloseSignal, Wake, WakeRegistration};
pub use weak::WeakHeld;
