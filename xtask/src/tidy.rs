//! The house rules that a program can check.

mod circles;
mod examples;
mod modules;
mod page;
mod pages;
mod sizes;
mod sources;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::step::{self, root};
use crate::{english, words};

/// Which packages, by their folders, may depend on which, except in tests. Arrows point one way: towards the core.
const EDGES: [(&str, &[&str]); 23] = [
    ("lock-core", &["lock-forms"]),
    ("lock-host", &["lock-core"]),
    ("lock-forms", &[]),
    ("lock-async", &["lock-core", "lock-host", "lock-forms"]),
    ("lock-blocking", &["lock-core", "lock-host", "lock-forms"]),
    ("lock-fence", &["lock-core"]),
    ("lock-rules", &["lock-core"]),
    ("lock-memory", &["lock-core", "lock-rules", "lock-host"]),
    ("lock-sqlite", &["lock-core", "lock-rules", "lock-host"]),
    ("lock-sql", &["lock-core", "lock-rules", "lock-host"]),
    ("lock-postgres", &["lock-core", "lock-sql", "lock-host"]),
    ("lock-mysql", &["lock-core", "lock-sql", "lock-host"]),
    ("lock-zookeeper", &["lock-core", "lock-rules", "lock-host"]),
    ("lock-etcd", &["lock-core", "lock-rules", "lock-host"]),
    ("lock-redis", &["lock-core", "lock-forms", "lock-host"]),
    ("lock-redlock", &["lock-core", "lock-forms", "lock-host"]),
    ("lock-kit", &["lock-core", "lock-host", "lock-forms", "lock-async", "lock-blocking"]),
    ("leasehold-macros", &["lock-core"]),
    ("lock-conformance", &["lock-core", "lock-host", "lock-async", "lock-blocking", "lock-memory"]),
    (
        "leasehold",
        &[
            "leasehold-macros",
            "lock-core",
            "lock-host",
            "lock-async",
            "lock-blocking",
            "lock-fence",
            "lock-forms",
            "lock-kit",
            "lock-memory",
            "lock-sqlite",
            "lock-mysql",
            "lock-postgres",
            "lock-redis",
            "lock-redlock",
            "lock-zookeeper",
            "lock-etcd",
        ],
    ),
    ("leasehold-dashboard", &["leasehold"]),
    ("leasehold-cli", &["leasehold", "leasehold-dashboard"]),
    ("lab", &["leasehold"]),
];

/// What the core and the rules must not know.
const NOT_IN_CORE: [&str; 4] = ["Instant::now", "SystemTime", "thread::", ".await"];

/// Client libraries of which there must be one version, because types of two versions do not fit together.
const ONE_VERSION: [&str; 10] =
    ["redis", "r2d2", "deadpool", "tokio", "rusqlite", "serde", "schemars", "rustls", "tracing", "http"];

/// Checks the rules.
pub(crate) fn run() -> Result<()> {
    for (package, allowed) in EDGES {
        dependencies(package, allowed)?;
    }
    words::run(root())?;
    english::run(root())?;
    core_is_pure()?;
    no_runtime_in_blocking_builds()?;
    one_version()?;
    examples::run()?;
    circles::run()?;
    links()?;
    sizes::run()
}

/// Links lead somewhere, and the book holds together.
pub(crate) fn links() -> Result<()> {
    pages::run()
}

/// Plain threads need no runtime: a build for them alone does not contain one.
fn no_runtime_in_blocking_builds() -> Result<()> {
    let tree = ["tree", "--package", "leasehold", "--edges", "normal", "--prefix", "none", "--no-default-features"];
    let output = Command::new("cargo")
        .args(tree)
        .args(["--features", "blocking,memory,redis,redlock,sqlite"])
        .current_dir(root())
        .output()?;
    ensure!(output.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    let crates = String::from_utf8(output.stdout)?;
    ensure!(crates.contains("rusqlite"), "cargo tree listed nothing to look at");
    ensure!(!crates.lines().any(|line| line.starts_with("tokio ")), "a blocking build depends on tokio");
    Ok(())
}

fn dependencies(package: &str, allowed: &[&str]) -> Result<()> {
    let folder = if root().join(package).exists() { root().join(package) } else { root().join("crates").join(package) };
    let path = folder.join("Cargo.toml");
    let manifest: toml::Table = fs::read_to_string(&path)?.parse().with_context(|| path.display().to_string())?;
    let Some(dependencies) = manifest.get("dependencies").and_then(toml::Value::as_table) else { return Ok(()) };
    for name in dependencies.keys().filter(|name| name.starts_with("lock-") || name.starts_with("leasehold")) {
        ensure!(allowed.contains(&name.as_str()), "{package} must not depend on {name}");
    }
    ensure!(package != "lock-core" || !dependencies.contains_key("tokio"), "lock-core must not know a runtime");
    Ok(())
}

fn core_is_pure() -> Result<()> {
    let mut folders = vec![root().join("crates/lock-core/src"), root().join("crates/lock-rules/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path)?;
            if let Some(found) = NOT_IN_CORE.iter().find(|word| text.contains(**word)) {
                bail!("{} holds \"{found}\", which core and rules must not know", path.display());
            }
        }
    }
    Ok(())
}

fn one_version() -> Result<()> {
    let lock: toml::Table = fs::read_to_string(root().join("Cargo.lock"))?.parse()?;
    let mut versions: BTreeMap<&str, u32> = BTreeMap::new();
    for package in lock.get("package").and_then(toml::Value::as_array).into_iter().flatten() {
        if let Some(name) = package.get("name").and_then(toml::Value::as_str) {
            *versions.entry(name).or_default() += 1;
        }
    }
    for name in ONE_VERSION {
        ensure!(versions.get(name).is_none_or(|count| *count == 1), "there are two versions of {name} in Cargo.lock");
    }
    Ok(())
}

/// Runs the README's first command, word for word, with an empty home directory.
pub(crate) fn readme() -> Result<()> {
    let readme = fs::read_to_string(root().join("README.md"))?;
    let line = readme.lines().find(|line| line.starts_with("cargo run")).context("the README has no first command")?;
    let home = root().join("target/readme-home");
    fs::create_dir_all(&home)?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(root()).env("XDG_STATE_HOME", &home).env_remove("LEASEHOLD_URL");
    step::run(command)
}
