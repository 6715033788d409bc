//! How a configuration names a PostgreSQL.

use std::time::Duration;

use leasehold::BackendConfig;
use leasehold::backend::Reach;

fn read(text: &str) -> Result<BackendConfig, String> {
    #[derive(serde::Deserialize)]
    struct Config {
        store: BackendConfig,
    }
    toml::from_str::<Config>(text).map(|config| config.store).map_err(|error| error.to_string())
}

#[test]
fn urls_and_tables_name_the_same_store() {
    let json = r#"{ "backend": "postgres", "url": "postgres://app:sesame@db1,db2:5433/shop", "op_timeout": "500ms", "schema": "locks" }"#;
    for config in [
        BackendConfig::from_url("postgres://app:sesame@db1,db2:5433/shop?op_timeout=500ms&schema=locks"),
        BackendConfig::from_url("postgresql://app:sesame@db1,db2:5433/shop?op_timeout=500ms&schema=locks"),
    ]
    .map(Result::unwrap)
    .into_iter()
    .chain([serde_json::from_str(json).unwrap()])
    .chain([read("store = 'postgres://app:sesame@db1,db2:5433/shop?op_timeout=500ms'").unwrap()])
    .chain([
        read("store = { backend = 'postgres', url = 'postgresql://db1,db2:5433/shop', op_timeout = '500ms' }").unwrap()
    ]) {
        assert!(matches!(config, BackendConfig::Postgres(_)), "{config:?}");
        assert_eq!((config.reach(), config.op_timeout()), (Reach::Network, Some(Duration::from_millis(500))));
        assert_eq!(config.shown(), "postgres://db1,db2:5433/shop");
        assert!(!format!("{config:?} {}", config.promise()).contains("sesame"), "{config:?}");
    }
}

#[test]
fn what_is_unknown_or_missing_is_refused_without_the_password() {
    for (url, expected) in [
        ("postgres://app:sesame@db1/shop?port=1", "allowed: prefix, op_timeout, schema, sslmode, sslrootcert"),
        ("postgres://app:sesame@db1/shop?schema=a&schema=b", "schema"),
        ("postgres://app:sesame@db1", "names no database"),
        ("postgresql:///shop", "names no host"),
    ] {
        let error = BackendConfig::from_url(url).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("sesame"), "{url}: {error}");
    }
    for (table, expected) in [
        ("{ backend = 'postgres', url = 'postgres://db1/shop', port = 1 }", "unknown field `port`"),
        ("{ backend = 'postgres', url = 'postgres://db1/shop?schema=a' }", "fields of the table"),
        ("{ backend = 'postgres', url = 'redis://db1' }", "neither postgres nor postgresql"),
        ("{ backend = 'postgres' }", "missing field `url`"),
    ] {
        let error = read(&format!("store = {table}")).unwrap_err();
        assert!(error.contains(expected), "{table}: {error}");
    }
}
