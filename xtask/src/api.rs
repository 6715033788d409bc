//! `cargo xtask api`: the public API of each published library that users name, compared with the one that was reviewed, in `docs/api`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::metadata::Published;
use crate::step::{self, root};

const USAGE: &str = "usage: cargo xtask api [--bless]";

/// Libraries that users do not name: parts of others, and what tests of backends use.
const INTERNAL: [&str; 5] = ["lock-forms", "lock-host", "lock-rules", "lock-memory", "lock-conformance"];

/// How many lines of a difference are shown.
const SHOWN_MAX: usize = 40;

/// Compares; with `--bless`, writes what is so now.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let settle: fn(&Path, &str) -> Result<()> = match arguments {
        [] => compare,
        [option] if option == "--bless" => write,
        _ => bail!("{USAGE}"),
    };
    document(&["--workspace", "--all-features"])?;
    let target = step::target();
    let failed: Vec<_> = Published::all()?
        .libraries()
        .filter(|library| !INTERNAL.contains(library))
        .filter_map(|library| {
            let snapshot = root().join("docs/api").join(library).with_extension("txt");
            api(&json(&target, library)).and_then(|api| settle(&snapshot, &api)).err()
        })
        .map(|error| format!("{error:#}"))
        .collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Has rustdoc describe libraries in JSON.
fn document(arguments: &[&str]) -> Result<()> {
    let mut command = step::command(&[&["doc", "--lib", "--no-deps"], arguments].concat());
    command.env("RUSTDOC", root().join("xtask/rustdoc-json"));
    command.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    step::run(command)
}

/// Where the description of a library is.
fn json(target: &Path, library: &str) -> PathBuf {
    target.join("doc").join(library.replace('-', "_")).with_extension("json")
}

/// The public items of a library, one on each line. Of the traits that the compiler derives by itself, only `Send` and `Sync`.
fn api(json: &Path) -> Result<String> {
    let built = public_api::Builder::from_rustdoc_json(json).omit_blanket_impls(true).build();
    let api = built.with_context(|| {
        format!("cannot read {}; this version of the crate public-api reads what Rust 1.95 writes", json.display())
    })?;
    let lines = api.items().map(|item| format!("{item}\n"));
    Ok(lines.filter(|line| !is_unwanted(line)).collect())
}

fn is_unwanted(line: &str) -> bool {
    const UNWANTED: [&str; 5] = ["::Freeze", "::RefUnwindSafe", "::Unpin", "::UnsafeUnpin", "::UnwindSafe"];
    let implemented = line.split_once(" for ").map(|(of, _)| of).filter(|of| of.starts_with("impl"));
    implemented.is_some_and(|of| UNWANTED.iter().any(|name| of.ends_with(name)))
}

fn write(snapshot: &Path, api: &str) -> Result<()> {
    fs::write(snapshot, api).with_context(|| snapshot.display().to_string())
}

fn compare(snapshot: &Path, api: &str) -> Result<()> {
    let reviewed = fs::read_to_string(snapshot).unwrap_or_default();
    if reviewed == api {
        return Ok(());
    }
    let gone = missing(&reviewed, api).map(|line| format!("- {line}"));
    let new = missing(api, &reviewed).map(|line| format!("+ {line}"));
    let lines: Vec<_> = gone.chain(new).collect();
    let shown = lines.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n");
    let (file, count) = (snapshot.strip_prefix(root()).unwrap_or(snapshot).display(), lines.len());
    bail!(
        "the public API is not the one in {file}. Lines that differ: {count}\n{shown}\nIf that is intended, see docs/book/src/versioning.md, and \
         write it with: cargo xtask api --bless"
    )
}

/// The lines of one text that are not in the other.
fn missing<'a>(of: &'a str, from: &'a str) -> impl Iterator<Item = &'a str> {
    let there: std::collections::HashSet<_> = from.lines().collect();
    of.lines().filter(move |line| !there.contains(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The API of a library with this code.
    fn api_of(folder: &Path, code: &str) -> String {
        let manifest =
            "[package]\nname = \"some-library\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[workspace]\n";
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        fs::write(folder.join("lib.rs"), code).unwrap();
        let (target, manifest) = (folder.join("target"), folder.join("Cargo.toml"));
        document(&["--target-dir", &target.to_string_lossy(), "--manifest-path", &manifest.to_string_lossy()]).unwrap();
        api(&json(&target, "some-library")).unwrap()
    }

    const KEPT: &str = "/// Kept.\npub struct Kept(pub u32);\n";
    const REMOVED: &str = "/// Removed.\npub fn removed(count: u32) -> Kept { Kept(count) }\n";

    #[test]
    fn an_item_that_is_removed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let snapshot = folder.path().join("some-library.txt");
        let before = api_of(folder.path(), &[KEPT, REMOVED].concat());
        write(&snapshot, &before).unwrap();
        compare(&snapshot, &before).unwrap();
        let after = api_of(folder.path(), KEPT);
        let refused = compare(&snapshot, &after).unwrap_err().to_string();
        assert!(refused.contains("- pub fn some_library::removed(u32) -> some_library::Kept"), "{refused}");
        assert!(refused.contains("differ: 1\n") && refused.contains("--bless"), "{refused}");
    }
}
