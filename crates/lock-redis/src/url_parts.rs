//! The parts of a Redis URL: what is wrong with them, in our own words, and what may be shown of them.

use std::borrow::Cow;

use lock_core::Invalid;
use redis::ProtocolVersion;
use url::{ParseError, Url};

/// How to treat a server that may drop locks when its memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eviction {
    /// Warn operators.
    Warned,
    /// Do not warn: operators know about it.
    Allowed,
}

const SCHEMES: &str = "use redis://, rediss://, redis+unix://, unix://, redis+sentinel://, rediss+sentinel://, \
                       redis+cluster:// or rediss+cluster://";

/// Refuses what this build cannot connect to.
pub(crate) fn check_scheme(url: &Url, shown: &str) -> Result<(), Invalid> {
    match url.scheme() {
        "redis" | "unix" | "redis+unix" => {}
        "rediss" if cfg!(feature = "tls") => {}
        "rediss" => {
            let remedy = "build with the feature \"tls\", or use redis:// on a trusted network";
            return Err(refuse(shown, "this build has no TLS", remedy));
        }
        _ => return Err(refuse(shown, "its scheme is unknown", SCHEMES)),
    }
    match url.fragment() {
        None => Ok(()),
        Some(_) => Err(refuse(shown, "it has a fragment (#...)", "remove it; write # in a password as %23")),
    }
}

/// Refuses, in our own words, what the library would refuse.
pub(crate) fn check_parts(url: &Url, shown: &str) -> Result<(), Invalid> {
    let asked = url.query_pairs().find(|(key, _)| key == "db").map(|(_, db)| db.into_owned());
    let (database, remedy) = if is_socket(url) {
        if url.to_file_path().is_err() {
            return Err(refuse(shown, "it names a host", "write unix:///PATH, with three slashes"));
        }
        (asked.unwrap_or_default(), "write ?db=NUMBER, such as ?db=1")
    } else {
        if url.host().is_none() {
            return Err(no_host(shown));
        }
        (url.path().trim_matches('/').to_owned(), "write redis://HOST/NUMBER, such as redis://127.0.0.1/1")
    };
    match database.parse::<u32>() {
        Err(_) if !database.is_empty() => Err(refuse(shown, "its database is not a number", remedy)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Takes the URL of one server apart.
///
/// # Errors
/// `Invalid` for what is no URL, and for one with several hosts.
pub(crate) fn one_server(url: &str) -> Result<Url, Invalid> {
    check_hosts(url)?;
    Url::parse(url).map_err(|error| unreadable(url, error))
}

fn check_hosts(url: &str) -> Result<(), Invalid> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let hosts = authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts);
    if !hosts.contains(',') {
        return Ok(());
    }
    let remedy = "write redis+sentinel://HOST,HOST,HOST/NAME for sentinels, redis+cluster://HOST,HOST for a cluster, or \
                  redlock://HOST,HOST,HOST for independent servers";
    Err(refuse(&hidden(url), "it names several hosts, and this is the URL of one server", remedy))
}

/// The URL of a Valkey, with or without sentinels or a cluster, as that of a Redis.
pub(crate) fn named_redis(url: &str) -> Cow<'_, str> {
    let name = "valkey";
    match url.split_at_checked(name.len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case(name) => format!("redis{rest}").into(),
        Some(_) | None => url.into(),
    }
}

fn unreadable(url: &str, error: ParseError) -> Invalid {
    if is_user_cut(url) {
        let remedy = "write / in a password as %2F, ? as %3F and # as %23";
        return refuse(&hidden(url), "its user or password has a character that ends the host", remedy);
    }
    if error == ParseError::EmptyHost {
        return no_host(&hidden(url));
    }
    refuse(&hidden(url), error.to_string(), "write redis://HOST:PORT/DB, or unix:///PATH")
}

/// Whether the @ after user and password comes later than the end of the host.
fn is_user_cut(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split_once(['/', '?', '#']).is_some_and(|(authority, rest)| !authority.contains('@') && rest.contains('@'))
}

fn no_host(shown: &str) -> Invalid {
    let remedy = "write redis://HOST, such as redis://127.0.0.1; user, password, port and database are optional";
    refuse(shown, "it names no host", remedy)
}

pub(crate) fn is_socket(url: &Url) -> bool {
    url.scheme().ends_with("unix")
}

/// Waiters are notified in RESP3 only.
pub(crate) fn protocol(wanted: Option<&str>) -> Result<ProtocolVersion, Invalid> {
    match wanted {
        None | Some("resp3") => Ok(ProtocolVersion::RESP3),
        Some("resp2") => Ok(ProtocolVersion::RESP2),
        Some(other) => {
            Err(Invalid::new("protocol", other, "Redis has no such protocol", "write resp2, or omit the option"))
        }
    }
}

/// What an option of the URL says about eviction.
pub(crate) fn eviction(wanted: Option<&str>) -> Result<Eviction, Invalid> {
    match wanted {
        None => Ok(Eviction::Warned),
        Some("allow") => Ok(Eviction::Allowed),
        Some(other) => Err(Invalid::new(
            "eviction",
            other,
            "the only value is allow",
            "write allow, or omit the option to be warned",
        )),
    }
}

pub(crate) fn refuse(shown: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Invalid {
    Invalid::new("redis URL", shown, problem, remedy)
}

/// The URL without what may be secret.
pub(crate) fn redacted(url: &Url) -> String {
    let behind = [Some(url.path()), url.query(), url.fragment()];
    // Behind a host, an @ may be the end of a password.
    let is_clear =
        if url.has_host() { !behind.into_iter().flatten().any(|part| part.contains('@')) } else { is_socket(url) };
    if !is_clear || url.cannot_be_a_base() {
        return hidden(url.as_str());
    }
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    let has_user = !shown.username().is_empty() || shown.password().is_some();
    if has_user && (shown.set_username("***").is_err() || shown.set_password(None).is_err()) {
        return hidden(url.as_str());
    }
    shown.into()
}

/// Only the scheme, for a URL that cannot be split into its parts.
fn hidden(url: &str) -> String {
    url.split_once("://").map_or_else(|| "(hidden)".to_owned(), |(scheme, _)| format!("{scheme}://..."))
}
