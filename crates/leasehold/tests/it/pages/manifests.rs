//! The dependencies that the pages name: a manifest, with features that there are.

use std::error::Error;

use test_support::pages::blocks_in;

#[test]
fn the_features_of_the_pages_exist() -> Result<(), Box<dyn Error>> {
    let ours: toml::Table = include_str!("../../../Cargo.toml").parse()?;
    let features = ours["features"].as_table().ok_or("no features")?;
    let manifests: Vec<_> =
        blocks_in("toml").into_iter().filter(|block| block.code.starts_with("[dependencies]")).collect();
    assert!(!manifests.is_empty());
    for block in manifests {
        let manifest: toml::Table = block.code.parse()?;
        let used = manifest["dependencies"]["leasehold"]["features"].as_array().ok_or("no features")?;
        for feature in used.iter().filter_map(toml::Value::as_str) {
            assert!(features.contains_key(feature), "{}: {feature}", block.page.display());
        }
    }
    Ok(())
}
