//! What a configuration of Redis has in common with those of other stores.

use std::time::Duration;

use lock_core::examine::Check;
use lock_core::{BackendError, Invalid, Reach, StoreConfig, Ttl};

use crate::RedisConfig;
use crate::examine;
use crate::failover::OnFailover;

impl StoreConfig for RedisConfig {
    fn from_url(url: &str) -> Result<Self, Invalid> {
        Self::from_url(url)
    }

    fn shown(&self) -> String {
        self.shown_url().to_owned()
    }

    fn reach(&self) -> Reach {
        Reach::Network
    }

    fn promise(&self) -> String {
        match (self.on_failover(), self.longest_ttl()) {
            (OnFailover::Dwell, longest) => {
                let limit = longest.map_or_else(String::new, |longest| format!("; the longest ttl is {longest}"));
                format!(
                    "at most one holder, even after a restart or a fail-over: no free lock is granted until old leases have ended{limit}"
                )
            }
            (OnFailover::Grant, _) => {
                "at most one holder, unless the server forgets: after a restart without its data, or a fail-over to a \
                                       replica, a held lock may be granted again"
                    .to_owned()
            }
        }
    }

    fn op_timeout(&self) -> Option<Duration> {
        Self::op_timeout(self)
    }

    fn longest_ttl(&self) -> Option<Ttl> {
        self.max_ttl().and_then(|longest| Ttl::new(longest).ok())
    }

    fn examine(&self) -> Result<Vec<Check>, BackendError> {
        examine::examine(self)
    }
}
