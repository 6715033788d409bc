use super::*;

#[test]
fn urls_are_read_in_full() {
    let config = EtcdConfig::from_url("etcd://app:s%40@e1,[::1]:2380/shop/locks/?prefix=a&op_timeout=500ms").unwrap();
    assert_eq!(config.servers().collect::<Vec<_>>(), ["e1:2379", "[::1]:2380"]);
    assert_eq!((config.root(), config.prefix().as_deref()), ("shop/locks/".to_owned(), Some("a")));
    assert_eq!(config.op_timeout, Some(Duration::from_millis(500)));
    let Some(Login { user, password }) = config.login() else { panic!("no login") };
    assert_eq!((user.as_str(), password.as_str()), ("app", "s@"));
    assert_eq!(config.place(), "etcd://e1:2379,[::1]:2380/shop/locks/");
    let shown = format!("{config:?}");
    assert!(!shown.contains("s@") && !shown.contains("app"), "{shown}");
    assert_eq!(EtcdConfig::from_url("ETCD://e1").unwrap().root(), "leasehold/");
}

#[test]
fn what_is_wrong_is_refused_with_a_remedy() {
    for (url, expected) in [
        ("redis://e1", "its scheme is neither etcd nor etcds"),
        ("etcd:///shop", "it names no host"),
        ("etcd://e1,\u{e9}2", "one of its hosts is neither a name nor an address"),
        ("etcd://:secret@e1", "a password but no user"),
        ("etcd://app@e1", "a user but no password"),
        ("etcd://app:@e1", "a user but no password"),
        ("etcd://e1?timeout=1s", "allowed: prefix, op_timeout"),
        ("etcd://e1?prefix=a&prefix=b", "given twice"),
        ("etcd://e1?op_timeout=0s", "op_timeout"),
        ("etcd://e1?op_timeout=soon", "op_timeout"),
        ("etcd://e1?sslrootcert=ca.pem", "it has options for TLS, and asks for none"),
    ] {
        let error = EtcdConfig::from_url(url).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{url}: {error}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_build_without_tls_says_so() {
    let error = EtcdConfig::from_url("etcds://e1").unwrap_err().to_string();
    assert!(error.contains("this build does not include TLS") && error.contains("the feature tls"), "{error}");
}

#[cfg(feature = "tls")]
#[test]
fn urls_with_tls_name_files() {
    let read = EtcdConfig::from_url;
    let config = read("etcds://e1,e2:2380/shop?sslrootcert=ca.pem&sslcert=c.pem&sslkey=k.pem").unwrap();
    assert_eq!(config.place(), "etcds://e1:2379,e2:2380/shop/");
    let TlsFiles { authority, identity } = config.tls().unwrap();
    assert_eq!((authority, identity), (&Some("ca.pem".into()), &Some(["c.pem".into(), "k.pem".into()])));
    assert!(read("etcds://e1").unwrap().tls().unwrap().authority.is_none(), "those of the system");
    for (url, expected) in [
        ("etcds://e1?sslcert=c.pem", "one of sslcert and sslkey is missing"),
        ("etcds://e.1", "a certificate cannot name one of its hosts"),
        ("etcds://e1?cert=c.pem", "allowed: prefix, op_timeout, sslrootcert, sslcert, sslkey"),
    ] {
        let error = read(url).unwrap_err().to_string();
        assert!(error.contains(expected), "{url}: {error}");
    }
}

#[test]
fn a_table_is_the_same_as_a_url() {
    let read = |text: &str| serde_json::from_str::<EtcdConfig>(text);
    let config = read(r#"{ "url": "etcd://app:sesame@e1/shop", "prefix": "a", "op_timeout": "500ms" }"#).unwrap();
    assert!(config.login().is_some_and(|login| login.password == "sesame"));
    assert_eq!((config.prefix().as_deref(), config.op_timeout), (Some("a"), Some(Duration::from_millis(500))));
    for (text, expected) in [
        (r#"{ "url": "etcd://e1?op_timeout=1s" }"#, "give them as fields of the table"),
        (r#"{ "url": "etcd://e1", "ttl": "1s" }"#, "unknown field"),
        (r#"{ "url": "etcd://e1", "sslcert": "c.pem" }"#, "it has options for TLS, and asks for none"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
