//! The code of the page about configuration.

use std::error::Error;

#[derive(serde::Deserialize)]
struct Config {
    store: leasehold::BackendConfig,
    #[serde(default)]
    lock: leasehold::LockOptions,
}

#[tokio::test]
async fn a_configuration_is_read() -> Result<(), Box<dyn Error>> {
    let config: Config = toml::from_str("store = \"memory:\"\nlock = { ttl = \"30s\" }")?;
    let locks = leasehold::connect_to(&config.store).await?;
    let guard = locks.mutex("nightly-report").options(config.lock.clone()).acquire().await?;
    guard.release().await?;
    Ok(())
}

#[test]
fn a_schema_contains_that_of_the_stores() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Config {
        locks: leasehold::BackendConfig,
        workers: u16,
    }

    let config: Config = toml::from_str("locks = \"memory:\"\nworkers = 3").unwrap();
    assert!(matches!(config, Config { locks: leasehold::BackendConfig::Memory(_), workers: 3 }));
    let schema = schemars::schema_for!(Config).to_value().to_string();
    assert!(schema.contains("workers") && schema.contains("redlock"), "{schema}");
}
