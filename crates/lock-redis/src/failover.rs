//! What a client does at a server that may have forgotten leases: after a fail-over, a restart or a loss of data.

use std::fmt;
use std::time::Duration;

use lock_core::{Effect, ErrorKind, Ttl};
use serde::Deserialize;

use crate::failure::Failure;
use crate::keys::{Key, Scope};

/// The longest ttl that is assumed where a client sets none.
const MAX_TTL: Duration = Duration::from_secs(60);

/// How much longer than the longest ttl no free lock is granted.
///
/// # Source
/// Measured: after a planned `SENTINEL FAILOVER`, the old primary takes writes for up to 11 s, and about one of them passed
/// before the new one was known.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// What a client does with the free locks of a server that may have forgotten leases.
///
/// A server may have forgotten leases if it was promoted, was restarted, or lost its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OnFailover {
    /// It takes them at once. A holder whose lease was forgotten may still rely on it: there are two holders until its deadline.
    Grant,
    /// It takes none until all leases that may have been forgotten have ended.
    Dwell,
}

impl fmt::Display for OnFailover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grant => "grant",
            Self::Dwell => "dwell",
        })
    }
}

/// The choice of a client, and the longest ttl that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failover {
    on: OnFailover,
    max_ttl: Option<Ttl>,
}

impl Failover {
    /// Free locks are granted whatever the server may have forgotten, for any ttl.
    pub(crate) const UNHEEDED: Self = Self::new(OnFailover::Grant, None);

    pub(crate) const fn new(on: OnFailover, max_ttl: Option<Ttl>) -> Self {
        Self { on, max_ttl }
    }

    pub(crate) fn on(self) -> OnFailover {
        self.on
    }

    /// Longer ttls are refused, if there is a limit.
    pub(crate) fn max_ttl(self) -> Option<Duration> {
        match (self.max_ttl, self.on) {
            (Some(max_ttl), _) => Some(max_ttl.get()),
            (None, OnFailover::Dwell) => Some(MAX_TTL),
            (None, OnFailover::Grant) => None,
        }
    }

    /// The longest ttl that other clients have to expect.
    pub(crate) fn longest(self) -> Duration {
        self.max_ttl().unwrap_or(MAX_TTL)
    }

    /// The key that keeps scripts from granting a free lock while it is there.
    pub(crate) fn key(self, scope: Scope) -> Key<'static> {
        match self.on {
            OnFailover::Grant => Key::NoDwell(scope),
            OnFailover::Dwell => Key::Dwell(scope),
        }
    }

    /// Refuses a ttl that a dwell would not cover.
    pub(crate) fn check(self, ttl: Ttl) -> Result<(), Failure> {
        let Some(most) = self.max_ttl().and_then(|most| Ttl::new(most).ok()).filter(|most| *most < ttl) else {
            return Ok(());
        };
        let told = format!("a ttl of {ttl} is longer than max_ttl, which is {most}");
        Err(Failure::new(ErrorKind::Config, Effect::None, told)
            .remedy("use a shorter ttl (renewal keeps a lease for longer), or set a longer max_ttl for all clients"))
    }

    /// Refuses what does not work over connections that nobody verifies.
    #[cfg(any(feature = "deadpool", feature = "r2d2"))]
    pub(crate) fn check_pooled(self) -> Result<(), Failure> {
        if self.max_ttl().is_none() {
            return Ok(());
        }
        let message =
            "the connections of a pool are not verified, so failover=dwell and max_ttl are not possible with one";
        Err(Failure::new(ErrorKind::Unsupported, Effect::None, message)
            .remedy("connect by URL without the pool, or remove these options from the URL"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RedisConfig;

    const DWELL: Failover = Failover::new(OnFailover::Dwell, None);

    #[test]
    fn a_dwell_covers_every_ttl_that_is_allowed() {
        let ttl = |seconds| Ttl::new(Duration::from_secs(seconds)).unwrap();
        assert!(DWELL.check(ttl(60)).is_ok() && DWELL.check(ttl(61)).is_err());
        assert_eq!(DWELL.longest(), Duration::from_secs(60));
        let short = Failover::new(OnFailover::Dwell, Some(ttl(6)));
        assert!(short.check(ttl(6)).is_ok() && short.check(ttl(7)).is_err());
        assert_eq!(short.longest(), Duration::from_secs(6));
        assert!(Failover::UNHEEDED.check(Ttl::MAX).is_ok());
        assert_eq!(Failover::UNHEEDED.longest(), Duration::from_secs(60));
    }

    #[test]
    fn a_choice_is_written_as_it_is_read() {
        for on in [OnFailover::Grant, OnFailover::Dwell] {
            let config = RedisConfig::from_url(&format!("redis://h?failover={on}")).unwrap();
            assert_eq!(config.on_failover(), on);
        }
        for (option, remedy) in [("failover=wait", "write dwell or grant"), ("fsync=always", "write wait")] {
            let refused = RedisConfig::from_url(&format!("redis://h?{option}")).unwrap_err();
            assert!(refused.to_string().contains(remedy), "{refused}");
        }
    }
}
