//! The dependencies that the pages name: manifests, with features that there are.

use std::error::Error;

use test_support::pages::blocks_in;

const TABLES: [&str; 2] = ["dependencies", "dev-dependencies"];

#[test]
fn the_features_of_the_pages_exist() -> Result<(), Box<dyn Error>> {
    let ours: toml::Table = include_str!("../../../Cargo.toml").parse()?;
    let features = ours["features"].as_table().ok_or("no features")?;
    for table in TABLES {
        check(table, features)?;
    }
    Ok(())
}

fn check(table: &str, features: &toml::Table) -> Result<(), Box<dyn Error>> {
    let begin = format!("[{table}]");
    let manifests: Vec<_> = blocks_in("toml").into_iter().filter(|block| block.code.starts_with(&begin)).collect();
    assert!(!manifests.is_empty(), "{table}");
    for block in manifests {
        let manifest: toml::Table = block.code.parse()?;
        let used = manifest[table]["leasehold"]["features"].as_array().ok_or("no features")?;
        for feature in used.iter().filter_map(toml::Value::as_str) {
            assert!(features.contains_key(feature), "{}: {feature}", block.page.display());
        }
    }
    Ok(())
}
