//! URLs of stores, and configurations.

use fuzz::inputs::{like, text};
use fuzz::{fuzz, is_presentable};
use leasehold::{BackendConfig, LockOptions, Ttl};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;

const SCHEMES: &[&str] = &[
    "redis",
    "rediss",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
    "valkey",
    "valkeys",
    "valkey+sentinel",
    "valkey+cluster",
    "redlock",
    "REDIS",
    "redsi",
    "http",
];

/// What comes after the login. A socket has none: its password is an option.
const PLACES: &[&str] = &[
    "h",
    "h:6379/2",
    "[::1]:7000",
    "h1:1,h2:2,h3",
    "h1,h2,h3/orders/2",
    "h1:7001,h2:7002,h3:7003/1?max_ttl=2m",
    "h?prefix=shop&op_timeout=1s&failover=dwell&max_ttl=60s&replicas=1&fsync=wait&eviction=allow",
    "h/m?sentinel_username=s&prefix=p",
    "?node=h1&node=h2&node=h3",
    "/run/redis.sock?db=1",
];

/// The word that no message may contain. It is not one that occurs anywhere by chance.
const SECRET: &str = "sesame";

/// A password with the secret in it, and with what should have been escaped.
fn password() -> impl Strategy<Value = String> {
    ("[a-z0-9%/?#@:&=+,\\[\\]]{0,4}", "[a-z0-9%/?#@:&=+,\\[\\]]{0,4}").prop_map(|(a, b)| [&a, SECRET, &b].concat())
}

fn shows_no_secret<E: ToString>(read: Result<BackendConfig, E>) -> TestCaseResult {
    let said =
        read.map_or_else(|refused| refused.to_string(), |config| format!("{config:?} {:?}", config.op_timeout()));
    prop_assert!(!said.contains(SECRET), "{said}");
    Ok(())
}

fn of_url(url: &str) -> TestCaseResult {
    let read = BackendConfig::from_url(url);
    read.as_ref().map_or_else(|refused| is_presentable(&refused.to_string()), |_| Ok(()))?;
    shows_no_secret(read)
}

#[test]
fn urls_with_passwords() {
    let user = select(&["", "app", "a%40b", "12"][..]);
    fuzz((select(SCHEMES), user, password(), like(PLACES)), |(scheme, user, password, place)| {
        of_url(&format!("{scheme}://{user}:{password}@{place}"))
    });
}

#[test]
fn urls_of_any_form() {
    const URLS: &[&str] = &[
        "redis://h",
        "sqlite:locks.db",
        "sqlite:/var/lib/locks.db?op_timeout=5s",
        "memory:",
        "memory:a",
        "redlock://a,b,c?max_ttl=2m",
        "redlock://?node=redis://a&node=b&node=c",
        "./locks.db",
        "redis+cluster://h1,h2",
    ];
    fuzz(prop_oneof![like(URLS), text()], |url| of_url(&url));
}

#[test]
fn passwords_of_sentinels() {
    fuzz((like(&["h1,h2/m?prefix=p", "h1/m/2"]), password()), |(place, password)| {
        let joined = if place.contains('?') { '&' } else { '?' };
        of_url(&format!("redis+sentinel://{place}{joined}sentinel_password={password}"))
    });
}

#[test]
fn configurations() {
    const TABLES: &[&str] = &[
        r#"{"backend":"memory","name":"a","prefix":"p"}"#,
        r#"{"backend":"sqlite","path":"/var/lib/locks.db","op_timeout":"5s","prefix":"p"}"#,
        r#"{"backend":"redis","url":"redis://:sesame@h","prefix":"p","op_timeout":"1s","replicas":1,"fsync":"wait"}"#,
        r#"{"backend":"redis","sentinel":{"nodes":["h1","h2:7000"],"master":"m","database":2,"password":"sesame"}}"#,
        r#"{"backend":"redis","cluster":{"nodes":["h1"],"username":"a","password":"sesame","ssl":true}}"#,
        r#"{"backend":"redlock","nodes":["redis://:sesame@a","b","c"],"max_ttl":"2m"}"#,
        r#""redis://:sesame@h/2?failover=dwell""#,
    ];
    fuzz(like(TABLES), |text| {
        let read = serde_json::from_str::<BackendConfig>(&text);
        // Elsewhere, the word is no password.
        let is_password = text.contains(":sesame@") || text.contains("\"password\":\"sesame\"");
        if is_password && text.matches(SECRET).count() == 1 { shows_no_secret(read) } else { Ok(()) }
    });
}

#[test]
fn options_of_locks() {
    const OPTIONS: &[&str] = &[
        r#"{"ttl":"30s","wait":"5s","max_requests":3,"unavailable":"wait","why":"report"}"#,
        r#"{"ttl":"100ms","fairness":"barging","max_hold":"1h","wait":null}"#,
    ];
    const TOML: &[&str] = &["ttl = \"30s\"\nwait = \"5s\"\nattempts = 3\n", "why = \"report\"\nmax_hold = \"1h\"\n"];
    fuzz((like(OPTIONS), like(TOML)), |(json, file)| {
        // Each parser quotes what it refuses.
        let json = serde_json::from_str::<LockOptions>(&json).map_err(|refused| refused.to_string());
        let file = toml::from_str::<LockOptions>(&file).map_err(|refused| refused.to_string());
        for options in [json, file] {
            match options {
                Ok(options) => prop_assert!(options.ttl >= Ttl::MIN),
                Err(refused) => prop_assert!(!refused.is_empty()),
            }
        }
        Ok(())
    });
}
