//! The options of a URL.

use std::time::Duration;

use lock_core::{Invalid, StoreUrl, parse_duration};
use redis::ProtocolVersion;

use super::scheme::Scheme;
use crate::failover::OnFailover;
use crate::replicas::Fsync;

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

/// An option with a few choices.
fn choice<T: Copy>(
    url: &StoreUrl,
    key: &'static str,
    choices: &[(&str, T)],
    (problem, remedy): (&str, &str),
) -> Result<Option<T>, Invalid> {
    let chosen = |text| {
        let named = choices.iter().find(|(name, _)| *name == text);
        named.map(|(_, choice)| *choice).ok_or_else(|| Invalid::new(key, text, problem, remedy))
    };
    url.option(key).map(chosen).transpose()
}

/// Waiters are notified in RESP3 only.
pub(super) fn protocol(url: &StoreUrl) -> Result<ProtocolVersion, Invalid> {
    let choices = [("resp3", ProtocolVersion::RESP3), ("resp2", ProtocolVersion::RESP2)];
    let refusal = ("Redis has no such protocol", "write resp2, or omit the option");
    Ok(choice(url, "protocol", &choices, refusal)?.unwrap_or(ProtocolVersion::RESP3))
}

/// Whether operators know about eviction.
pub(super) fn eviction(url: &StoreUrl) -> Result<Eviction, Invalid> {
    let refusal = ("the only value is allow", "write allow, or omit the option to be warned");
    Ok(choice(url, "eviction", &[("allow", Eviction::Allowed)], refusal)?.unwrap_or(Eviction::Warned))
}

/// Whether a grant waits for the disk.
pub(super) fn fsync(url: &StoreUrl) -> Result<Option<Fsync>, Invalid> {
    choice(url, "fsync", &[("wait", Fsync::Wait)], ("there is no such choice", "write wait, or omit the option"))
}

/// What to do with free locks if the server may have forgotten leases.
pub(super) fn on_failover(url: &StoreUrl) -> Result<Option<OnFailover>, Invalid> {
    let choices = [("grant", OnFailover::Grant), ("dwell", OnFailover::Dwell)];
    choice(url, "failover", &choices, ("there is no such choice", "write dwell or grant"))
}
