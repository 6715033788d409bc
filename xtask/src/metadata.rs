//! What cargo knows of the crates that are published.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::step;

/// A crate that is published.
#[derive(Clone, Debug)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) is_library: bool,
    pub(crate) needs: Vec<Need>,
}

/// What a crate needs of another one in the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub(crate) name: String,
    /// The versions that will do, such as `^0.1.0`.
    pub(crate) version: String,
}

/// All of them, each after those that it needs.
#[derive(Debug)]
pub(crate) struct Published(pub(crate) Vec<Crate>);

impl Published {
    /// Asks cargo.
    pub(crate) fn all() -> Result<Self> {
        let output = step::output(&["metadata", "--no-deps", "--format-version", "1", "--locked"])?;
        let metadata: Value = serde_json::from_str(&output)?;
        let packages = metadata["packages"].as_array().context("cargo lists no packages")?;
        let crates: Vec<_> = packages.iter().filter(|package| package["publish"].is_null()).map(read).collect();
        ensure!(crates.len() > 5, "there are more crates than {crates:?}");
        in_order(crates).map(Self)
    }

    /// The names of those that are libraries.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|one| one.is_library).map(|one| one.name.as_str())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn read(package: &Value) -> Crate {
    let listed = |field: &str| package[field].as_array().into_iter().flatten();
    let is_library = listed("targets")
        .any(|target| target["kind"].to_string().contains("lib") || target["kind"].to_string().contains("proc-macro"));
    // A test that needs another crate of any version: cargo leaves that out when it publishes.
    let needs = listed("dependencies")
        .filter(|need| need["path"].is_string() && need["req"] != "*")
        .map(|need| Need { name: text(&need["name"]), version: text(&need["req"]) })
        .collect();
    Crate { name: text(&package["name"]), version: text(&package["version"]), is_library, needs }
}

/// Dependencies first.
fn in_order(mut left: Vec<Crate>) -> Result<Vec<Crate>> {
    let mut done = BTreeSet::new();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let ready = left.iter().position(|one| one.needs.iter().all(|need| done.contains(&need.name)));
        let names = || left.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        let next = left.remove(
            ready.with_context(|| format!("these need each other, or a crate that is not published: {}", names()))?,
        );
        done.insert(next.name.clone());
        ordered.push(next);
    }
    Ok(ordered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needing(name: &str, needs: &[&str]) -> Crate {
        let needs = needs.iter().map(|name| Need { name: (*name).to_owned(), version: "^1".to_owned() }).collect();
        Crate { name: name.to_owned(), version: "1.0.0".to_owned(), is_library: true, needs }
    }

    #[test]
    fn each_crate_comes_after_those_that_it_needs() {
        let crates = vec![needing("top", &["middle", "core"]), needing("middle", &["core"]), needing("core", &[])];
        let names: Vec<_> = in_order(crates).unwrap().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["core", "middle", "top"]);
    }

    #[test]
    fn a_circle_or_an_unpublished_dependency_is_named() {
        let circle = vec![needing("a", &["b"]), needing("b", &["a"]), needing("c", &[])];
        let refused = in_order(circle).unwrap_err().to_string();
        assert!(refused.ends_with(": a, b"), "{refused}");
        assert!(in_order(vec![needing("a", &["elsewhere"])]).is_err());
    }
}
