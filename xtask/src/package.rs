//! `cargo xtask package`: checks that every crate that users may depend on builds from its packaged files.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::step::{self, root};

/// The fields that a crate's manifest needs. A value from the workspace counts.
const FIELDS: [&str; 7] = ["description", "license", "readme", "keywords", "categories", "version", "rust-version"];

/// Packages every crate below `crates`, together, so that each finds the others without a registry. Further arguments are
/// cargo's: with `--no-verify` the packages are not built.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let crates = crates()?;
    let mut command = vec!["package", "--offline", "--allow-dirty"];
    for package in &crates {
        command.extend(["--package", package]);
    }
    command.extend(arguments.iter().map(String::as_str));
    step::cargo(&command)
}

/// The crates that can be published, whose manifests are complete.
pub(crate) fn crates() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for folder in fs::read_dir(root().join("crates"))? {
        let path = folder?.path().join("Cargo.toml");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        names.push(checked(&text.parse()?).with_context(|| path.display().to_string())?);
    }
    names.sort();
    ensure!(names.len() > 5, "there are more crates than {names:?}");
    Ok(names)
}

/// The name in a manifest, if the manifest is complete.
fn checked(manifest: &toml::Table) -> Result<String> {
    let package = manifest.get("package").and_then(toml::Value::as_table).context("it describes no package")?;
    let missing: Vec<_> = FIELDS.into_iter().filter(|field| !package.contains_key(*field)).collect();
    ensure!(missing.is_empty(), "it says nothing of {}", missing.join(", "));
    ensure!(
        !package.contains_key("publish"),
        "what is in crates/ can be published; move it elsewhere, or drop `publish`"
    );
    let has_features = manifest.contains_key("features");
    let documented = package.get("metadata").and_then(|metadata| metadata.get("docs")?.get("rs")?.get("all-features"));
    ensure!(
        !has_features || documented == Some(&toml::Value::Boolean(true)),
        "it has features, and docs.rs is not told to document all of them: [package.metadata.docs.rs]"
    );
    let name = package.get("name").and_then(toml::Value::as_str).context("it has no name")?;
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: &str = r#"
        [package]
        name = "lock-x"
        description = "x"
        license.workspace = true
        readme.workspace = true
        keywords.workspace = true
        categories.workspace = true
        version.workspace = true
        rust-version.workspace = true
    "#;

    fn said(manifest: &str) -> String {
        checked(&manifest.parse().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn a_manifest_that_lacks_something_is_refused() {
        assert_eq!(checked(&COMPLETE.parse().unwrap()).unwrap(), "lock-x");
        assert!(said(&COMPLETE.replace("keywords.workspace = true", "")).contains("keywords"));
        assert!(said(&format!("{COMPLETE}\npublish = false")).contains("publish"));
        let features = format!("{COMPLETE}\n[features]\nasync = []");
        assert!(said(&features).contains("docs.rs"));
        assert!(
            checked(&format!("{features}\n[package.metadata.docs.rs]\nall-features = true").parse().unwrap()).is_ok()
        );
    }
}
