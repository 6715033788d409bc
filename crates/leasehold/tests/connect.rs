//! From URLs and configurations to clients, in both faces.
#![cfg(feature = "full")]
#![allow(clippy::unwrap_used, reason = "tests may")]

use leasehold::{BackendConfig, ConnectError};

#[tokio::test]
async fn both_faces_meet_at_one_store() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["memory:meeting".to_owned(), format!("sqlite:{}", folder.path().join("locks.db").display())] {
        let tokio = leasehold::connect(&url).await.unwrap();
        let plain = leasehold::blocking::connect(&url).unwrap();
        let guard = tokio.mutex("a").acquire().await.unwrap();
        assert!(plain.mutex("a").try_acquire().unwrap().is_none(), "{url}");
        let token = guard.fencing_token();
        guard.release().await.unwrap();
        let guard = plain.mutex("a").try_acquire().unwrap().unwrap();
        assert!(guard.fencing_token() > token);
        assert!(tokio.mutex("a").try_acquire().await.unwrap().is_none(), "{url}");
    }
}

#[test]
fn configurations_are_read_and_unknown_fields_refused() {
    let read = |text: &str| serde_json::from_str::<BackendConfig>(text);
    assert!(matches!(read(r#"{ "backend": "memory" }"#), Ok(BackendConfig::Memory(_))));
    assert!(matches!(read(r#"{ "backend": "sqlite", "path": "locks.db" }"#), Ok(BackendConfig::Sqlite(_))));
    let redis = read(r#"{ "backend": "redis", "url": "redis://:sesame@h", "op_timeout": "200ms" }"#).unwrap();
    assert_eq!(redis.op_timeout(), Some(std::time::Duration::from_millis(200)));
    assert!(!format!("{redis:?}").contains("sesame"));
    for backend in [r#""memory""#, r#""sqlite", "path": "a""#, r#""redis", "url": "redis://h""#] {
        let refusal = read(&format!(r#"{{ "backend": {backend}, "pht": "a" }}"#)).unwrap_err().to_string();
        assert!(refusal.contains("unknown field `pht`"), "{refusal}");
    }
    assert!(read(r#"{ "backend": "zookeeper" }"#).is_err());
}

/// What the crate's documentation shows.
#[test]
fn the_documented_configuration_is_read() {
    #[derive(serde::Deserialize)]
    struct Settings {
        store: BackendConfig,
        lock: leasehold::LockOptions,
    }
    let documentation = include_str!("../src/lib.rs").replace("//! ", "");
    let text = documentation.split("```toml").nth(1).unwrap().split("```").next().unwrap();
    let settings: Settings = toml::from_str(text).unwrap();
    assert!(matches!(settings.store, BackendConfig::Redis(config) if config.prefix() == Some("shop")));
    assert_eq!(settings.lock.why, "nightly report");
}

#[tokio::test]
async fn errors_of_connecting_name_no_secret() {
    for url in
        ["redis://:sesame@127.0.0.1:1", "rediss://:sesame@127.0.0.1:1", "redsi://:sesame@h", "redis://:sesame@h/?x=1"]
    {
        let error = leasehold::connect(url).await.unwrap_err();
        let plain = leasehold::blocking::connect(url).unwrap_err();
        assert_eq!(matches!(error, ConnectError::Invalid(_)), matches!(plain, ConnectError::Invalid(_)));
        for text in [error.to_string(), format!("{error:?}"), plain.to_string(), format!("{plain:?}")] {
            assert!(!text.contains("sesame"), "{text}");
        }
    }
}
