//! The clock of a client: by default that of the host, which also counts the time while the machine is suspended. Tests set a clock
//! that they move by hand, with `Builder::clock`.

pub use lock_core::{Moment, parse_duration};
pub use lock_host::{Clock, HostClock, ManualClock, SharedClock};
