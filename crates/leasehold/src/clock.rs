//! What a client reads the time from: the host's clock, which counts the time for which the machine sleeps, or in tests one that the
//! test moves. `Builder::clock` sets it.

pub use lock_core::Moment;
pub use lock_host::{Clock, HostClock, ManualClock, SharedClock};
