//! The options in the query of a Redis URL.

use lock_core::{Invalid, Ttl, parse_duration};
use url::Url;

use crate::failover::OnFailover;
use crate::url_parts::{is_socket, refuse};

/// What depends on how the servers are found.
pub(crate) struct Kind {
    /// Further options.
    pub(crate) options: &'static str,
    pub(crate) on_failover: OnFailover,
}

pub(crate) const ONE_SERVER: Kind = Kind { options: "", on_failover: OnFailover::Grant };
pub(crate) const SENTINELS: Kind =
    Kind { options: ", sentinel_username, sentinel_password", on_failover: OnFailover::Dwell };
pub(crate) const CLUSTER: Kind = Kind { options: "", on_failover: OnFailover::Dwell };

/// Our own part of a query.
#[derive(Default)]
pub(crate) struct Own {
    pub(crate) prefix: Option<String>,
    pub(crate) op_timeout: Option<String>,
    pub(crate) protocol: Option<String>,
    pub(crate) eviction: Option<String>,
    pub(crate) replicas: Option<String>,
    pub(crate) fsync: Option<String>,
    pub(crate) failover: Option<String>,
    pub(crate) max_ttl: Option<String>,
    pub(crate) sentinel_username: Option<String>,
    pub(crate) sentinel_password: Option<String>,
}

/// Takes our own options out of a URL. `further` are those that it may have beside the usual ones: each with a comma in front.
///
/// # Errors
/// `Invalid` for an option that is unknown or given twice.
pub(crate) fn split_query(url: &Url, shown: &str, further: &str) -> Result<(Own, Url), Invalid> {
    let socket = is_socket(url);
    let allowed = if socket {
        "prefix, op_timeout, protocol, eviction, replicas, fsync, failover, max_ttl, db, user, pass"
    } else {
        "prefix, op_timeout, protocol, eviction, replicas, fsync, failover, max_ttl"
    };
    let allowed = [allowed, further].concat();
    let mut own = Own::default();
    let mut rest = url.clone();
    rest.set_query(None);
    let mut may_be_secret = url.query().is_some_and(|query| query.contains('@'));
    for (key, value) in url.query_pairs() {
        let slot = match &*key {
            "prefix" => &mut own.prefix,
            "op_timeout" => &mut own.op_timeout,
            "protocol" => &mut own.protocol,
            "eviction" => &mut own.eviction,
            "replicas" => &mut own.replicas,
            "fsync" => &mut own.fsync,
            "failover" => &mut own.failover,
            "max_ttl" => &mut own.max_ttl,
            "sentinel_username" if !further.is_empty() => &mut own.sentinel_username,
            "sentinel_password" if !further.is_empty() => &mut own.sentinel_password,
            "db" | "user" | "pass" if socket => {
                may_be_secret |= key == "pass";
                rest.query_pairs_mut().append_pair(&key, &value);
                continue;
            }
            // It may be the rest of a password that contains an unescaped "?" or "&".
            unknown if !may_be_secret && unknown.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                return Err(refuse(shown, format!("its option \"{key}\" is unknown"), format!("allowed: {allowed}")));
            }
            _ => {
                return Err(refuse(
                    shown,
                    "it has an unknown option",
                    format!("allowed: {allowed}; write ? as %3F, and & as %26"),
                ));
            }
        };
        may_be_secret |= key == "sentinel_password";
        if slot.replace(value.into_owned()).is_some() {
            return Err(refuse(shown, format!("its option \"{key}\" is given twice"), "give it once"));
        }
    }
    Ok((own, rest))
}

/// Reads the longest ttl.
pub(crate) fn max_ttl(text: &str) -> Result<Ttl, Invalid> {
    Ttl::new(parse_duration("max_ttl", text)?)
}
