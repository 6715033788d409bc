//! What the core refuses to know: a clock that counts suspend, alarms by it, randomness, and this host. Beside it, the
//! half of a client that is the same in both facades.
//!
//! Nothing here is async or waits for a store: both facades and the backends use it, and it decides nothing about
//! leases.

mod alarms;
mod builder;
mod clock;
mod errors;
mod host;
mod known;
mod proof;
mod sharded;
mod spec;
mod stations;
mod sync;
mod tray;

pub use alarms::{Alarms, NAP_MAX, Ring, Ringer};
pub use builder::{Build, Builder, Settings};
pub use clock::{Clock, HostClock, ManualClock, SharedClock};
pub use errors::{no_randomness, panicked};
pub use host::{Owners, boot_id, host_name, new_owner, note, random_u64};
pub use known::KnownOwners;
pub use proof::Proof;
pub use sharded::Sharded;
pub use spec::Spec;
pub use stations::{StationCell, Stations};
pub use tray::Tray;
