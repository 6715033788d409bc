//! What the core refuses to know: a clock that counts suspend, alarms by it, randomness, and this host. Beside it, what
//! both faces keep of all their stations: the stations by name, and the keeper's tray.
//!
//! Everything here is colourless: both faces and the backends use it, and it decides nothing about leases.

mod alarms;
mod clock;
mod host;
mod sharded;
mod stations;
mod sync;
mod tray;

pub use alarms::{Alarms, NAP_MAX, Ring, Ringer};
pub use clock::{Clock, HostClock, ManualClock, SharedClock};
pub use host::{boot_id, host_name, new_owner, note, random_u64, secret};
pub use sharded::Sharded;
pub use stations::{StationCell, Stations};
pub use tray::Tray;
