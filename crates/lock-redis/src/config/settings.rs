//! What may be configured in a URL, or beside it in a configuration file.

use std::time::Duration;

use lock_core::{Invalid, Prefix, StoreUrl, Ttl, parse_duration};
use redis::ProtocolVersion;

use super::scheme::Scheme;
use crate::failover::OnFailover;
use crate::replicas::{Fsync, Replicas};

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

/// The options of a URL that can be fields of a configuration file as well.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) prefix: Option<Prefix>,
    pub(super) op_timeout: Option<Duration>,
    pub(super) replicas: Option<Replicas>,
    pub(super) fsync: Option<Fsync>,
    pub(super) failover: Option<OnFailover>,
    pub(super) max_ttl: Option<Ttl>,
}

impl Settings {
    /// Those of a URL.
    pub(super) fn of_url(url: &StoreUrl, scheme: &Scheme) -> Result<Self, Invalid> {
        url.check_options(&[], &[&OPTIONS, scheme.options].concat())?;
        let duration = |key| url.option(key).map(|text| parse_duration(key, text)).transpose();
        Ok(Self {
            prefix: url.option("prefix").map(str::parse).transpose()?,
            op_timeout: duration("op_timeout")?,
            replicas: url.option("replicas").map(Replicas::parse).transpose()?,
            fsync: url.option("fsync").map(Fsync::parse).transpose()?,
            failover: url.option("failover").map(OnFailover::read).transpose()?,
            max_ttl: duration("max_ttl")?.map(Ttl::new).transpose()?,
        })
    }

    /// Both together.
    ///
    /// # Errors
    /// `Invalid` for what both say.
    pub(super) fn and(self, beside: Self, url: &StoreUrl) -> Result<Self, Invalid> {
        Ok(Self {
            prefix: once("prefix", self.prefix, beside.prefix, url)?,
            op_timeout: once("op_timeout", self.op_timeout, beside.op_timeout, url)?,
            replicas: once("replicas", self.replicas, beside.replicas, url)?,
            fsync: once("fsync", self.fsync, beside.fsync, url)?,
            failover: once("failover", self.failover, beside.failover, url)?,
            max_ttl: once("max_ttl", self.max_ttl, beside.max_ttl, url)?,
        })
    }
}

fn once<T>(what: &str, there: Option<T>, beside: Option<T>, url: &StoreUrl) -> Result<Option<T>, Invalid> {
    match (there, beside) {
        (Some(_), Some(_)) => Err(url.refuse(format!("{what} is given in the URL and beside it"), "give it once")),
        (there, beside) => Ok(there.or(beside)),
    }
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
