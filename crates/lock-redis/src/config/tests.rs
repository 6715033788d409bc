use redis::ConnectionAddr;

use super::*;

#[test]
fn urls_are_read_in_full() {
    let config = RedisConfig::from_url("redis://app:se%23same@127.0.0.1:7000/2?prefix=shop&op_timeout=500ms").unwrap();
    assert_eq!(config.servers.server.addr(), &ConnectionAddr::Tcp("127.0.0.1".into(), 7000));
    assert_eq!(config.servers.server.redis_settings().password(), Some("se#same"));
    assert_eq!(config.servers.server.redis_settings().db(), 2);
    assert_eq!((config.prefix(), config.op_timeout()), (Some("shop"), Some(Duration::from_millis(500))));
    let socket = RedisConfig::from_url("redis+unix:///run/redis.sock?db=3&pass=sesame&prefix=a").unwrap();
    assert_eq!(socket.servers.server.addr(), &ConnectionAddr::Unix("/run/redis.sock".into()));
    assert_eq!(socket.servers.server.redis_settings().db(), 3);
    assert_eq!(RedisConfig::from_url("redis://127.0.0.1").unwrap().prefix(), None);
}

#[test]
fn what_is_wrong_is_refused_without_the_password() {
    for (url, expected) in [
        (
            "redis://u:sesame@h:6379/?pre_fix=a",
            "its option \"pre_fix\" is unknown; allowed: prefix, op_timeout, protocol, eviction, replicas, fsync, failover, max_ttl",
        ),
        ("redis://u:sesame@h/?db=1", "its option \"db\" is unknown"),
        ("redis://sesame@h/x", "\"redis://***@h/x\" is not valid"),
        ("redis://h/x", "\"redis://h/x\" is not valid"),
        ("redis://u:sesame@h/?prefix=a&prefix=b", "given twice"),
        ("redis://u:sesame@h/?op_timeout=soon", "op_timeout"),
        ("redis://u:sesame@h/?op_timeout=0s", "op_timeout"),
        ("redis://u:sesame@h/?protocol=3", "write resp2"),
        ("redis://u:sesame@h/?eviction=no", "write allow"),
        ("redis://u:sesame@h/?replicas=0", "it is not a number from 1"),
        ("redis://u:sesame@h/?fsync=yes", "write wait"),
        ("redis://u:sesame@h/?failover=wait", "write dwell or grant"),
        ("redis://u:sesame@h/?max_ttl=soon", "max_ttl \"soon\" is not valid"),
        ("redis://u:sesame@h/?prefix=leasehold", "reserved"),
        ("redis://u:sesame@h/x", "its database is not a number; write redis://HOST/NUMBER"),
        ("redis://u:sesame@h/-1", "not a number"),
        ("unix:///run/redis.sock?pass=sesame&db=x", "write ?db=NUMBER"),
        (
            "redis://u:sesame@h1:7711,h2:7712/mymaster",
            "it names several hosts, and this is the URL of one server; write redis+s",
        ),
        ("redis://h1,h2", "redis+cluster://HOST,HOST"),
        ("unix://redis.sock", "write unix:///PATH"),
        ("redis://", "names no host; write redis://HOST, such as redis://127.0.0.1; user, password, port and database"),
        ("redis:///", "names no host"),
        ("redis://:6379", "names no host"),
        ("redis://u:sesame@/1", "names no host"),
        ("redis://:sesame/2@h", "write / in a password as %2F"),
        ("redis://u:sesame?2@h", "? as %3F and # as %23"),
        ("redis://:sesame#2@h", "a character that ends the host"),
        ("redis://u:sesame@0.0.0.0", "wildcard address"),
        ("redis://u:sesame@h:port/", "port"),
        ("redis://u:sesame@h/#insecure", "fragment"),
        ("http://u:sesame@h/", "scheme"),
        ("u:sesame@h", "scheme"),
        ("redis:u:sesame@h", "hidden"),
        ("redis://u:/sesame@h", "\"redis://...\" is not valid"),
        ("redis:/u:sesame", "\"(hidden)\" is not valid"),
        ("redis://u:12?sesame=1@h", "it has an unknown option"),
        ("redis+unix://u/x", "it names a host"),
        ("redis+unix://u/sesame@h", "it has an @ after the hosts"),
        ("unix:///run/redis.sock?pass=a&sesame=b", "write ? as %3F, and & as %26"),
        ("redis://h:1?ses@same", "unknown option"),
        ("sesame", "hidden"),
        (
            "unix:///run/redis.sock?pass=sesame&passs=sesame",
            "allowed: prefix, op_timeout, protocol, eviction, replicas, fsync, failover, max_ttl, db, user, pass",
        ),
    ] {
        let refusal = RedisConfig::from_url(url).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{url}: {refusal}");
        assert!(!refusal.contains("sesame") && !refusal.contains("Config"), "{refusal}");
    }
}

#[test]
#[cfg(not(feature = "tls"))]
fn tls_is_refused_where_it_was_not_built_in() {
    let refusal = RedisConfig::from_url("rediss://:sesame@h").unwrap_err().to_string();
    assert_eq!(
        refusal,
        "redis URL \"rediss://***@h\" is not valid: this build has no TLS; \
         build with the feature \"tls\", or use redis:// on a trusted network"
    );
}

#[test]
fn tables_are_read_like_urls() {
    let read = |text: &str| serde_json::from_str::<RedisConfig>(text);
    let config = read(r#"{"url":"redis://:sesame@h","prefix":"shop","op_timeout":"1s"}"#).unwrap();
    assert_eq!((config.prefix(), config.op_timeout()), (Some("shop"), Some(Duration::from_secs(1))));
    assert_eq!(read(r#"{"url":"redis://h","replicas":2}"#).unwrap().copies().unwrap().replicas(), 2);
    let on_disk = read(r#"{"url":"redis://h","fsync":"wait"}"#).unwrap().copies().unwrap();
    assert_eq!((on_disk.replicas(), on_disk.fsync()), (0, Some(Fsync::Wait)));
    assert!(!format!("{config:?}").contains("sesame"));
    let dwelling = read(r#"{"url":"redis://h?max_ttl=6s","failover":"dwell"}"#).unwrap();
    assert_eq!((dwelling.on_failover(), dwelling.max_ttl()), (OnFailover::Dwell, Some(Duration::from_secs(6))));
    assert_eq!((config.on_failover(), config.max_ttl()), (OnFailover::Grant, None));
    for bad in [
        r#"{"url":"redis://h?failover=dwell","failover":"dwell"}"#,
        r#"{"url":"redis://h","failover":"maybe"}"#,
        r#"{"url":"redis://h","prefx":"shop"}"#,
        r#"{"url":"redis://h?prefix=a","prefix":"b"}"#,
        r#"{"url":"redis://h?op_timeout=1s","op_timeout":"2s"}"#,
        r#"{"url":"redis://h?replicas=1","replicas":2}"#,
        r#"{"url":"redis://h","replicas":0}"#,
        r#"{"url":"redis://h?fsync=wait","fsync":"wait"}"#,
        r#"{"url":"redis://h?max_ttl=6s","max_ttl":"6s"}"#,
        r#"{"url":"redis://h","fsync":"no"}"#,
        r#"{"url":"redis://:sesame@h/x"}"#,
    ] {
        assert!(!read(bad).unwrap_err().to_string().contains("sesame"), "{bad}");
    }
}
