//! Which store to use: a URL, or a table of a configuration file.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lock_core::examine::Check;
use lock_core::{BackendError, Invalid, Reach, Ttl};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::stores::{BACKENDS, BackendConfig, SCHEMES, Table};

impl<'de> Deserialize<'de> for BackendConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UrlOrTable)
    }
}

struct UrlOrTable;

impl<'de> Visitor<'de> for UrlOrTable {
    type Value = BackendConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the URL of a store, or a table with the field `backend`")
    }

    fn visit_str<E: Error>(self, url: &str) -> Result<BackendConfig, E> {
        BackendConfig::from_url(url).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<BackendConfig, A::Error> {
        let table = Table::deserialize(MapAccessDeserializer::new(map)).map_err(without_password)?;
        table.config().ok_or_else(|| A::Error::custom(unknown_backend(BACKENDS)))
    }
}

/// The error, unless it repeats the name of an unknown field that may be a URL with a password.
fn without_password<E: Error>(error: E) -> E {
    let text = error.to_string();
    if text.starts_with("unknown field") && (text.contains("://") || text.contains('@')) {
        return E::custom("a field has a URL as its name (hidden, because it may contain a password); remove it");
    }
    error
}

fn unknown_backend(backends: &[(&str, bool)]) -> String {
    let all: Vec<_> = backends.iter().map(|(name, _)| *name).collect();
    let all = all.join(", ");
    let left_out: Vec<_> = backends.iter().filter(|(_, included)| !included).map(|(name, _)| *name).collect();
    if left_out.is_empty() {
        return format!("field `backend`: expected one of {all}");
    }
    let left_out = left_out.join(", ");
    format!("field `backend`: expected one of {all}; to use {left_out}, build with the feature of the same name")
}

/// File extensions that suggest a database.
const FILE_ENDS: [&str; 4] = [".db", ".db3", ".sqlite", ".sqlite3"];

/// The largest edit distance at which an unknown scheme is taken for a typo of a known one.
const TYPOS_MAX: usize = 3;

impl BackendConfig {
    /// Reads a URL: `sqlite:PATH`, `redis://...`, `rediss://...`, `valkey://...`, `valkeys://...`, `redis+unix://...`,
    /// `redis+sentinel://...`, `rediss+sentinel://...`, `redis+cluster://...`, `rediss+cluster://...`, `postgres://...`, `postgresql://...`, `mysql://...`, `zookeeper://...`, `zookeeper+tls://...`, `etcd://...`, `etcds://...`,
    /// `redlock://...`, `memory:NAME` (one store per name in this process) or `memory:` (a new store for each client).
    ///
    /// # Errors
    /// `Invalid` for an unknown scheme, with the nearest known one; for a scheme that this build does not include, with the
    /// feature to enable; and for what the backend refuses. No part of the URL that may be a secret is shown.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        let Some((given, rest)) = url.split_once(':') else {
            return Err(no_scheme(url));
        };
        let Some(scheme) = SCHEMES.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(given)) else {
            return Err(unknown(given, rest));
        };
        scheme.parser().ok_or_else(|| scheme.left_out(given))?(url)
    }

    /// The store for display: a URL without user and password.
    pub fn shown(&self) -> String {
        self.store().shown()
    }

    /// Which clients can share the store.
    pub fn reach(&self) -> Reach {
        self.store().reach()
    }

    /// How many clients can hold a lock, and on which conditions, as a sentence for display.
    pub fn promise(&self) -> String {
        self.store().promise()
    }

    /// How long one request may take, if the configuration says so.
    pub fn op_timeout(&self) -> Option<Duration> {
        self.store().op_timeout()
    }

    /// The longest ttl that is granted; `None` if any is.
    pub fn longest_ttl(&self) -> Option<Ttl> {
        self.store().longest_ttl()
    }

    /// Asks the store about itself, for operators, over a connection of its own.
    ///
    /// # Errors
    /// If the store cannot be reached, or breaks off.
    ///
    /// # Blocking
    /// For about a second at most for each request.
    pub fn examine(&self) -> Result<Vec<Check>, BackendError> {
        self.store().examine()
    }
}

impl FromStr for BackendConfig {
    type Err = Invalid;

    /// Reads a URL, as [`from_url`](Self::from_url) does.
    fn from_str(url: &str) -> Result<Self, Invalid> {
        Self::from_url(url)
    }
}

/// Does not repeat what may be a secret. The name of a store or a file is not a secret.
fn no_scheme(given: &str) -> Invalid {
    let (shown, remedy) = if let Some(scheme) = SCHEMES.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(given)) {
        (given, format!("write {}", scheme.form))
    } else if looks_like_a_file(given) {
        (given, format!("did you mean sqlite:{given}?"))
    } else {
        ("(hidden)", format!("write {}", forms()))
    };
    Invalid::new("store URL", shown, "it has no scheme", remedy)
}

fn looks_like_a_file(given: &str) -> bool {
    let plain = given.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b));
    let rooted = ["/", "./", "../"].iter().any(|start| given.starts_with(start)) && !given.ends_with('/');
    plain && (rooted || FILE_ENDS.iter().any(|end| given.ends_with(end)))
}

/// Repeats the rest of the URL only if it is plainly a host or a file.
fn unknown(given: &str, rest: &str) -> Invalid {
    let near = SCHEMES
        .iter()
        .map(|scheme| (strsim::levenshtein(&given.to_ascii_lowercase(), scheme.name), scheme.name, scheme.form))
        .filter(|(distance, ..)| *distance <= TYPOS_MAX)
        .min();
    let remedy = match near {
        Some((_, "sqlite", _)) if looks_like_a_file(rest) => format!("did you mean sqlite:{rest}?"),
        Some((_, name, form)) if form.ends_with("HOST") && is_hosts(rest) => format!("did you mean {name}:{rest}?"),
        Some((.., form)) => format!("did you mean {form}?"),
        None => format!("write {}", forms()),
    };
    // Without "://", what is before the colon may be anything, such as a host or a password.
    let problem = if rest.starts_with("//") || near.is_some() { "its scheme is not known" } else { "it has no scheme" };
    let is_scheme = rest.starts_with("//") && given.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let shown = if is_scheme { format!("{given}:...") } else { "(hidden)".to_owned() };
    Invalid::new("store URL", shown, problem, remedy)
}

fn is_hosts(rest: &str) -> bool {
    let hosts = rest.strip_prefix("//").unwrap_or_default();
    !hosts.is_empty() && hosts.bytes().all(|b| b.is_ascii_alphanumeric() || b".-,".contains(&b))
}

fn forms() -> &'static str {
    "sqlite:PATH, postgres://HOST/DATABASE, mysql://HOST/DATABASE, zookeeper://HOST,HOST,HOST, etcd://HOST,HOST,HOST, redis://HOST:PORT/DB, redlock://HOST,HOST,HOST or memory:"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_that_this_build_leaves_out_is_named_with_its_feature() {
        let text = serde_json::from_str::<BackendConfig>(r#"{ "backend": "x" }"#).unwrap_err().to_string();
        assert!(text.contains(&unknown_backend(BACKENDS)), "{text}");
        let text = unknown_backend(&[("memory", true), ("sqlite", false), ("redis", false)]);
        let left_out = "to use sqlite, redis, build with the feature of the same name";
        assert_eq!(text, format!("field `backend`: expected one of memory, sqlite, redis; {left_out}"));
    }

    #[test]
    fn a_url_of_a_store_that_this_build_leaves_out_is_refused_with_the_feature() {
        for scheme in SCHEMES {
            let remedy = format!("this build does not include that store; build with the feature {}", scheme.feature);
            assert!(scheme.left_out(scheme.name).to_string().ends_with(&remedy), "{}", scheme.form);
            assert!(scheme.parser().is_some() || refusal(scheme.form).ends_with(&remedy), "{}", scheme.form);
        }
        assert_eq!(SCHEMES[0].parser().is_some(), cfg!(feature = "memory"));
    }

    fn refusal(url: &str) -> String {
        BackendConfig::from_url(url).unwrap_err().to_string()
    }

    #[test]
    fn a_mistyped_scheme_gets_a_suggestion() {
        assert!(refusal("redsi://127.0.0.1").ends_with("did you mean redis://127.0.0.1?"));
        assert!(refusal("sqlight:locks.db").ends_with("did you mean sqlite:locks.db?"));
        assert!(refusal("postgers://db1/shop").ends_with("did you mean postgres://HOST/DATABASE?"));
        assert!(refusal("postgers://db1").ends_with("did you mean postgres://HOST/DATABASE?"));
        assert!(refusal("redlok://a,b,c").ends_with("did you mean redlock://a,b,c?"));
        assert!(refusal("redsi://:sesame@h").ends_with("did you mean redis://HOST?"));
        assert!(refusal("redsi:sesame").ends_with("did you mean redis://HOST?"));
        assert!(refusal("mongo://x").contains("write sqlite:PATH"));
    }

    #[test]
    fn a_file_or_a_store_without_a_scheme_gets_a_suggestion() {
        for path in ["./locks.db", "../locks", "/var/x", "locks.db", "shop/locks.sqlite3"] {
            assert!(refusal(path).contains(&format!("did you mean sqlite:{path}?")), "{path}");
        }
        for (word, form) in [
            ("redis", "redis://HOST"),
            ("redlock", "redlock://HOST,HOST,HOST"),
            ("postgres", "postgres://HOST/DATABASE"),
            ("mysql", "mysql://HOST/DATABASE"),
            ("zookeeper", "zookeeper://HOST,HOST,HOST"),
            ("etcd", "etcd://HOST,HOST,HOST"),
            ("memory", "memory:"),
            ("SQLite", "sqlite:PATH"),
        ] {
            assert!(refusal(word).ends_with(&format!("it has no scheme; write {form}")), "{word}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused_without_showing_it() {
        for secret in ["sesame", "sesame/+1==", "/sesame+1=", "sesame@host:6379", "sesame:6379"] {
            let text = refusal(secret);
            assert!(text.contains("it has no scheme") && !text.contains("sesame"), "{text}");
        }
        let text = refusal("user/sesame://host");
        assert!(text.contains("its scheme is not known") && !text.contains("sesame"), "{text}");
    }
}
