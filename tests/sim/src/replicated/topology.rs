//! The sentinels: each learns in its own time which server was chosen as the primary.

use crate::clock::Time;
use crate::network::StoreId;
use crate::one::ConfigEpoch;

/// How many servers there are at most. Their numbers come before those of the sentinels.
pub(super) const SERVERS_MAX: usize = 3;
pub(super) const SENTINELS: [StoreId; 3] = [StoreId(SERVERS_MAX), StoreId(SERVERS_MAX + 1), StoreId(SERVERS_MAX + 2)];

/// The primary, and in which epoch it was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) primary: StoreId,
    pub(super) epoch: ConfigEpoch,
}

impl Chosen {
    /// The one that all know in the beginning.
    pub(super) const FIRST: Self = Self { primary: StoreId(0), epoch: 1 };
}

/// What one sentinel has heard, or will hear, and when.
#[derive(Debug, Default)]
pub(super) struct Sentinel(Vec<(Time, Chosen)>);

impl Sentinel {
    pub(super) fn hears(&mut self, at: Time, chosen: Chosen) {
        self.0.push((at, chosen));
    }

    /// The latest that it knows of.
    pub(super) fn knows(&self, now: Time) -> Chosen {
        let heard = self.0.iter().filter(|(at, _)| *at <= now).map(|(_, chosen)| *chosen);
        heard.max_by_key(|chosen| chosen.epoch).unwrap_or(Chosen::FIRST)
    }
}
