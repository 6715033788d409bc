use super::*;

#[test]
fn urls_are_read_in_full() {
    let config =
        ZookeeperConfig::from_url("zookeeper://app:s%40@zk1,[::1]:2182/shop/locks/?prefix=a&session=10s&tick=500ms")
            .unwrap();
    assert_eq!((config.servers().join(","), config.chroot()), ("zk1:2181,[::1]:2182".to_owned(), "/shop/locks"));
    assert!(matches!(config.login(), Some(Login::Digest(login)) if login == b"app:s@"));
    assert_eq!((config.session().get(), config.tick()), (Duration::from_secs(10), Duration::from_millis(500)));
    assert_eq!(config.place(), "zookeeper://zk1,[::1]:2182/shop/locks");
    let shown = format!("{config:?}");
    assert!(!shown.contains("s@") && !shown.contains("app"), "{shown}");
}

#[test]
fn what_is_wrong_is_refused_with_a_remedy() {
    for (url, expected) in [
        ("redis://zk", "its scheme is neither zookeeper nor zookeeper+tls"),
        ("zookeeper:///shop", "it names no host"),
        ("zookeeper://zk/a//b", "its chroot is not a path"),
        ("zookeeper://zk/a/../b", "its chroot is not a path"),
        ("zookeeper://:secret@zk", "a password but no user"),
        ("zookeeper://zk?session=0s", "ttl \"0s\" is not valid"),
        ("zookeeper://zk?timeout=1s", "allowed: prefix, op_timeout, session, tick, acl, auth"),
        ("zookeeper://zk?acl=creator", "acl=creator needs a login"),
        ("zookeeper://zk?acl=all", "neither creator nor open"),
        ("zookeeper://zk?tick=0s", "its tick is zero or far too long"),
        ("zookeeper://zk?tick=300000000000y", "its tick is zero or far too long"),
        ("zookeeper://zk?session=25d", "its session is too long"),
        ("zookeeper://app:@zk", "a user but no password"),
        ("zookeeper://app@zk", "a user but no password"),
        ("zookeeper://app:p%C3%A4ss@zk?auth=sasl", "SASL cannot send"),
        ("zookeeper://a%22b:secret@zk?auth=sasl", "SASL cannot send"),
        ("zookeeper://zk?auth=sasl", "auth needs a user and a password"),
        ("zookeeper://app:secret@zk?auth=kerberos", "neither digest nor sasl"),
        ("zookeeper://zk?sslrootcert=ca.pem", "it has options for TLS, and asks for none"),
    ] {
        let error = ZookeeperConfig::from_url(url).unwrap_err().to_string();
        assert!(error.contains(expected), "{url}: {error}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_build_without_tls_says_so() {
    let error = ZookeeperConfig::from_url("zookeeper+tls://zk").unwrap_err().to_string();
    assert!(error.contains("this build does not include TLS") && error.contains("the feature tls"), "{error}");
}

#[cfg(feature = "tls")]
#[test]
fn urls_with_tls_name_files_and_have_another_port() {
    let read = ZookeeperConfig::from_url;
    let config = read("zookeeper+tls://zk1,zk2:2182/shop?sslrootcert=ca.pem&sslcert=c.pem&sslkey=k.pem").unwrap();
    assert_eq!(config.servers(), ["zk1:2281", "zk2:2182"]);
    assert_eq!(config.place(), "zookeeper+tls://zk1,zk2:2182/shop");
    let TlsFiles { authority, identity } = config.tls().unwrap();
    assert_eq!((authority, identity.as_ref()), (&"ca.pem".into(), Some(&["c.pem".into(), "k.pem".into()])));
    for (options, expected) in [
        ("sslrootcert=ca.pem&sslcert=c.pem", "one of sslcert and sslkey is missing"),
        ("tick=1s", "does not say whom to trust"),
    ] {
        let error = read(&format!("zookeeper+tls://zk?{options}")).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for host in ["127.1", "zk.1"] {
        let error = read(&format!("zookeeper+tls://{host}?sslrootcert=ca.pem")).unwrap_err().to_string();
        assert!(error.contains("a certificate cannot name one of its hosts"), "{error}");
    }
}

#[test]
fn a_table_is_the_same_as_a_url() {
    let read = |text: &str| serde_json::from_str::<ZookeeperConfig>(text);
    let config = read(r#"{ "url": "zookeeper://app:sesame@zk/shop", "prefix": "a", "session": "10s", "tick": "500ms", "auth": "sasl" }"#).unwrap();
    assert!(matches!(config.login(), Some(Login::Sasl(user, _)) if user == "app"));
    assert_eq!((config.session().get(), config.tick()), (Duration::from_secs(10), Duration::from_millis(500)));
    assert_eq!(config.prefix().as_deref(), Some("a"));
    for (text, expected) in [
        (r#"{ "url": "zookeeper://zk?session=1s" }"#, "give them as fields of the table"),
        (r#"{ "url": "zookeeper://zk", "ttl": "1s" }"#, "unknown field"),
        (r#"{ "url": "zookeeper://zk", "acl": "creator" }"#, "acl=creator needs a login"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
