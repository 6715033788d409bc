//! The options of a URL.

use std::time::Duration;

use lock_core::{Invalid, StoreUrl, parse_duration};
use redis::ProtocolVersion;

use super::scheme::Scheme;

/// The options that every URL may have.
const OPTIONS: [&str; 8] = ["prefix", "op_timeout", "protocol", "eviction", "replicas", "fsync", "failover", "max_ttl"];

/// How to treat a server that may drop locks when its memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// Warn operators.
    Warned,
    /// Do not warn: operators know about it.
    Allowed,
}

/// Refuses options that no URL of this scheme has.
pub(super) fn check_options(url: &StoreUrl, scheme: &Scheme) -> Result<(), Invalid> {
    url.check_options(&[], &[&OPTIONS, scheme.options].concat())
}

/// An option that is a duration.
pub(super) fn duration(url: &StoreUrl, key: &'static str) -> Result<Option<Duration>, Invalid> {
    url.option(key).map(|text| parse_duration(key, text)).transpose()
}

/// Waiters are notified in RESP3 only.
pub(super) fn protocol(url: &StoreUrl) -> Result<ProtocolVersion, Invalid> {
    match url.option("protocol") {
        None | Some("resp3") => Ok(ProtocolVersion::RESP3),
        Some("resp2") => Ok(ProtocolVersion::RESP2),
        Some(other) => {
            Err(Invalid::new("protocol", other, "Redis has no such protocol", "write resp2, or omit the option"))
        }
    }
}

/// Whether operators know about eviction.
pub(super) fn eviction(url: &StoreUrl) -> Result<Eviction, Invalid> {
    match url.option("eviction") {
        None => Ok(Eviction::Warned),
        Some("allow") => Ok(Eviction::Allowed),
        Some(other) => {
            let remedy = "write allow, or omit the option to be warned";
            Err(Invalid::new("eviction", other, "the only value is allow", remedy))
        }
    }
}
