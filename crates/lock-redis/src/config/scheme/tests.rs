use std::time::Duration;

use redis::ConnectionAddr;

use super::*;
use crate::RedisConfig;

fn sentinels(config: &RedisConfig) -> &Servers {
    assert_eq!(config.servers.deployment, Deployment::Sentinels);
    &config.servers
}

fn refusal(url: &str) -> String {
    RedisConfig::from_url(url).map(|config| config.shown_url().to_owned()).unwrap_err().to_string()
}

#[test]
fn urls_of_sentinels_are_read_in_full() {
    let config = RedisConfig::from_url(
        "redis+sentinel://app:se%23same@h1:7000,[::1],H3/orders/2?sentinel_username=s&sentinel_password=g%40&prefix=p&op_timeout=1s",
    )
    .unwrap();
    let (sentinels, server) = (sentinels(&config), config.servers.server.redis_settings());
    let addresses: Vec<_> = sentinels.guides.iter().map(|node| node.addr().clone()).collect();
    let tcp = |host: &str, port| ConnectionAddr::Tcp(host.into(), port);
    assert_eq!(addresses, [tcp("h1", 7000), tcp("::1", 26379), tcp("h3", 26379)]);
    let login = sentinels.guides[0].redis_settings();
    assert_eq!((login.username(), login.password(), login.db()), (Some("s"), Some("g@"), 0));
    assert_eq!((server.username(), server.password(), server.db()), (Some("app"), Some("se#same"), 2));
    assert_eq!((sentinels.master.as_str(), config.prefix()), ("orders", Some("p")));
    assert_eq!(config.op_timeout(), Some(Duration::from_secs(1)));
    assert_eq!(config.shown_url(), "redis+sentinel://***@h1:7000,[::1],H3/orders/2");
    assert!(!format!("{config:?}").contains("same"));
}

#[test]
fn tables_of_sentinels_are_read_like_urls() {
    let read = |text: &str| serde_json::from_str::<RedisConfig>(&format!(r#"{{"sentinel":{text}}}"#));
    let text = r#"{"nodes":["h1","h2:7000"],"master":"orders","database":2,"username":"app","password":"se@same"}"#;
    let config = read(text).unwrap();
    let server = config.servers.server.redis_settings();
    assert_eq!((server.username(), server.password(), server.db()), (Some("app"), Some("se@same"), 2));
    assert_eq!(config.shown_url(), "redis+sentinel://h1,h2:7000/orders/2");
    let text = r#"{"nodes":["h1"],"master":"orders","sentinel_username":"s","sentinel_password":"g","ssl":true}"#;
    let config = read(text);
    #[cfg(not(feature = "tls"))]
    assert!(config.unwrap_err().to_string().contains("this build has no TLS"));
    #[cfg(feature = "tls")]
    {
        let config = config.unwrap();
        let node = &sentinels(&config).guides[0];
        assert_eq!((node.redis_settings().username(), node.redis_settings().password()), (Some("s"), Some("g")));
        for reached in [node.addr(), config.servers.server.addr()] {
            assert!(matches!(reached, ConnectionAddr::TcpTls { host, .. } if host == "h1"), "{reached}");
        }
        assert_eq!(config.servers.server.redis_settings().username(), None);
    }
    let refused = read(r#"{"nodes":["app:sesame@h1"],"master":"orders"}"#).err().unwrap().to_string();
    assert!(refused.contains("fields of their own") && !refused.contains("sesame"), "{refused}");
    for (bad, given) in [
        (r#"{"prefix":"p"}"#, "(no server)"),
        (r#"{"url":"redis://h","sentinel":{"nodes":["h"],"master":"m"}}"#, "url, sentinel"),
    ] {
        let refused = serde_json::from_str::<RedisConfig>(bad).unwrap_err().to_string();
        let expected =
            format!("redis configuration \"{given}\" is not valid: exactly one of url, sentinel and cluster");
        assert!(refused.contains(&expected), "{refused}");
    }
}

#[test]
fn wrong_urls_of_sentinels_are_refused_without_the_password() {
    for (url, expected) in [
        ("redis+sentinel://h1,h2", "\"redis+sentinel://h1,h2\" is not valid: it does not name the primary; write"),
        ("redis+sentinel://u:sesame@h1", "redis+sentinel://***@h1"),
        ("redis+sentinel://u:sesame@h1/", "it does not name the primary"),
        ("redis+sentinel://h1//2", "it does not name the primary"),
        ("redis+sentinel:///m", "it names no host"),
        ("redis+sentinel://h1,,h2/m", "it names no host"),
        ("redis+sentinel://u:sesame@h1:x/m", "port"),
        ("redis+sentinel://u:sesame/@h1/m", "it has an @ after the hosts"),
        ("redis+sentinel://u:sesame?@h1/m", "port"),
        ("redis+sentinel://u:12?sesame@h1/m", "\"redis+sentinel://...\""),
        ("redis+sentinel://h1/a%20b", "characters that sentinels do not accept"),
        ("redis+sentinel://u:sesame@h1/m/x", "its database is not a number"),
        ("redis+sentinel://u:sesame@h1/m/1/2", "its database is not a number"),
        ("redis+sentinel://h1/m?sentinel_pasword=sesame", ", sentinel_username, sentinel_password"),
        ("redis+sentinel://u:sesame@h1/m#x", "fragment"),
        ("redis+sentinel://h1/m?sentinel_password=a&sesame", "write ? as %3F, and & as %26"),
        ("redis://h1?sentinel_password=sesame", "its option \"sentinel_password\" is unknown"),
    ] {
        let refusal = refusal(url);
        assert!(refusal.contains(expected), "{url}: {refusal}");
        assert!(!refusal.contains("sesame"), "{refusal}");
    }
}

#[test]
fn urls_of_clusters_are_read_in_full() {
    let url = "redis+cluster://app:se%23same@h1:7000,[::1],H3/?prefix=p&op_timeout=1s&max_ttl=6s&replicas=1";
    let config = RedisConfig::from_url(url).unwrap();
    assert_eq!(config.servers.deployment, Deployment::Cluster);
    let server = config.servers.server.redis_settings();
    let addresses: Vec<_> = config.servers.addresses().iter().map(Address::to_string).collect();
    assert_eq!(addresses, ["h1:7000", "[::1]:6379", "h3:6379"]);
    assert_eq!(config.servers.store(), "redis+cluster://[::1]:6379,h1:7000,h3:6379");
    assert_eq!((server.username(), server.password(), server.db()), (Some("app"), Some("se#same"), 0));
    assert_eq!((config.prefix(), config.op_timeout()), (Some("p"), Some(Duration::from_secs(1))));
    assert_eq!((config.on_failover(), config.max_ttl()), (OnFailover::Dwell, Some(Duration::from_secs(6))));
    assert_eq!(config.copies().unwrap().replicas(), 1);
    assert_eq!(config.shown_url(), "redis+cluster://***@h1:7000,[::1],H3/");
    assert!(!format!("{config:?}").contains("same"));
}

#[test]
fn tables_of_clusters_are_read_like_urls() {
    let read = |text: &str| serde_json::from_str::<RedisConfig>(text);
    let text = r#"{"cluster":{"nodes":["h1","h2:7000"],"username":"app","password":"se@same"},"prefix":"p"}"#;
    let config = read(text).unwrap();
    assert_eq!(config.servers.store(), "redis+cluster://h1:6379,h2:7000");
    assert_eq!(config.servers.server.redis_settings().password(), Some("se@same"));
    assert_eq!((config.prefix(), config.max_ttl()), (Some("p"), Some(Duration::from_secs(60))));
    for (bad, expected) in [
        (r#"{"cluster":{"nodes":["app:sesame@h1"]}}"#, "fields of their own"),
        (r#"{"cluster":{"nodes":[]}}"#, "it names no host"),
        (r#"{"cluster":{"nodes":["h1"],"database":1}}"#, "unknown field"),
        (r#"{"cluster":{"nodes":["h1"]},"url":"redis://h"}"#, "exactly one of url, sentinel and cluster"),
    ] {
        let refused = read(bad).unwrap_err().to_string();
        assert!(refused.contains(expected) && !refused.contains("sesame"), "{refused}");
    }
}

#[test]
fn wrong_urls_of_clusters_are_refused_without_the_password() {
    for (url, expected) in [
        ("redis+cluster://u:sesame@h1,h2/1", "redis+cluster://***@h1,h2/1\" is not valid: a cluster has no databases"),
        ("redis+cluster://", "it names no host"),
        ("redis+cluster://h1,,h2", "it names no host"),
        ("redis+cluster://u:sesame@h1:x", "the address of a server of the cluster is not valid"),
        ("redis+cluster://u:sesame/@h1", "it has an @ after the hosts"),
        ("redis+cluster://u:12?sesame@h1", "\"redis+cluster://...\""),
        ("redis+cluster://h1?sentinel_password=sesame", "its option \"sentinel_password\" is unknown"),
        ("redis+cluster://h1?replicas=0", "it is not a number from 1"),
        ("redis+cluster://u:sesame@h1#x", "fragment"),
    ] {
        let refusal = refusal(url);
        assert!(refusal.contains(expected), "{url}: {refusal}");
        assert!(!refusal.contains("sesame"), "{refusal}");
    }
}

#[test]
#[cfg(not(feature = "tls"))]
fn tls_is_refused_where_it_was_not_built_in() {
    assert!(refusal("rediss+cluster://h1").contains("this build has no TLS"));
}
