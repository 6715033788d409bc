//! `cargo xtask release`: whether all crates can be published as one version, and how they are.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::metadata::{Crate, Published};
use crate::package;
use crate::step::{self, root};

const USAGE: &str = "\
usage: cargo xtask release --dry-run|--publish

  --dry-run  check versions, the changelog and what each package contains, show the order, and upload nothing
  --publish  check the same, have cargo build every package from its files, and upload them in this order";

/// What every package contains, besides its code.
const CONTAINED: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Where the files of a package may be. Two more are written by cargo.
const FOLDERS: [&str; 4] = ["src/", "tests/", "examples/", "benches/"];
const WRITTEN_BY_CARGO: [&str; 3] = [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml.orig"];

/// Whether anything is uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    DryRun,
    Publish,
}

/// Checks everything, says each step, and publishes if that is asked for.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mode = match arguments {
        [option] if option == "--dry-run" => Mode::DryRun,
        [option] if option == "--publish" => Mode::Publish,
        _ => bail!("{USAGE}"),
    };
    package::crates()?;
    let published = Published::all()?;
    let version = one_version(&published.0)?;
    eprintln!("==> version {version}: so say all {} crates, and what they need of each other", published.0.len());
    let text = fs::read_to_string(root().join("CHANGELOG.md"))?;
    let title = changelog(&text, version, mode)?;
    eprintln!("==> CHANGELOG.md: the section \"{title}\"");
    for one in &published.0 {
        let files = step::output(&["package", "--list", "--allow-dirty", "--offline", "--package", &one.name])?;
        let count = contents(&files).with_context(|| format!("the package of {}", one.name))?;
        eprintln!("==> {}: {count} files", one.name);
    }
    upload(&published, mode)
}

/// The one version of all crates, which they also ask of each other.
fn one_version(crates: &[Crate]) -> Result<&str> {
    let version = &crates.first().context("there is nothing to publish")?.version;
    for one in crates {
        ensure!(one.version == *version, "{} has version {}, and others have {version}", one.name, one.version);
        for need in &one.needs {
            let (name, needed) = (&need.name, &need.version);
            ensure!(
                *needed == format!("^{version}"),
                "{} needs {name} {needed}, and not {version}: correct [workspace.dependencies] in Cargo.toml",
                one.name
            );
        }
    }
    Ok(version)
}

/// The title of the section for this version. Before a release it may still be another one.
fn changelog<'a>(text: &'a str, version: &str, mode: Mode) -> Result<&'a str> {
    let sections: Vec<_> =
        text.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap_or((section, ""))).collect();
    let titled = |wanted: &str| sections.iter().find(|(title, _)| title.split(' ').next() == Some(wanted));
    let unreleased = titled("Unreleased").filter(|_| mode == Mode::DryRun);
    let (title, text) = titled(version)
        .or(unreleased)
        .with_context(|| format!("CHANGELOG.md has no section \"## {version}\": rename the section \"Unreleased\""))?;
    ensure!(!text.trim().is_empty(), "CHANGELOG.md says nothing in its section \"{title}\"");
    Ok(title)
}

/// How many files a package has, if they are what it should contain.
fn contents(list: &str) -> Result<usize> {
    let files: BTreeSet<_> = list.lines().collect();
    let missing: Vec<_> = CONTAINED.into_iter().filter(|file| !files.contains(file)).collect();
    ensure!(missing.is_empty(), "it lacks {}", missing.join(", "));
    let expected = |file: &str| {
        CONTAINED.contains(&file)
            || WRITTEN_BY_CARGO.contains(&file)
            || FOLDERS.iter().any(|folder| file.starts_with(folder) && !file.contains("/."))
    };
    let others: Vec<_> = files.iter().copied().filter(|file| !expected(file)).collect();
    ensure!(others.is_empty(), "it should not contain {}", others.join(", "));
    Ok(files.len())
}

/// Cargo uploads them in this order, each when those before it can be downloaded.
fn upload(published: &Published, mode: Mode) -> Result<()> {
    let names: Vec<_> = published.0.iter().map(|one| one.name.as_str()).collect();
    eprintln!("==> the order: {}", names.join(", "));
    let mut line = vec!["publish", "--locked"];
    if mode == Mode::DryRun {
        line.extend(["--dry-run", "--no-verify", "--allow-dirty"]);
    }
    line.extend(names.iter().flat_map(|name| ["--package", name]));
    step::cargo(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Need;

    fn of(name: &str, version: &str, needs: &[(&str, &str)]) -> Crate {
        let need = |(name, version): &(&str, &str)| Need { name: (*name).to_owned(), version: (*version).to_owned() };
        let needs = needs.iter().map(need).collect();
        Crate { name: name.to_owned(), version: version.to_owned(), is_library: true, needs }
    }

    #[test]
    fn one_crate_with_another_version_is_named() {
        let core = of("core", "0.2.0", &[]);
        assert_eq!(one_version(&[core.clone(), of("top", "0.2.0", &[("core", "^0.2.0")])]).unwrap(), "0.2.0");
        let other = one_version(&[core.clone(), of("top", "0.1.0", &[])]).unwrap_err().to_string();
        assert_eq!(other, "top has version 0.1.0, and others have 0.2.0");
        let behind = one_version(&[core, of("top", "0.2.0", &[("core", "^0.1.0")])]).unwrap_err().to_string();
        assert!(behind.starts_with("top needs core ^0.1.0, and not 0.2.0: "), "{behind}");
    }

    #[test]
    fn a_version_needs_its_section() {
        let text = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2026-12-01)\n\n- First.\n";
        assert_eq!(changelog(text, "0.1.0", Mode::Publish).unwrap(), "0.1.0 (2026-12-01)");
        assert_eq!(changelog(text, "0.2.0", Mode::DryRun).unwrap(), "Unreleased");
        let refused = changelog(text, "0.2.0", Mode::Publish).unwrap_err().to_string();
        assert_eq!(refused, "CHANGELOG.md has no section \"## 0.2.0\": rename the section \"Unreleased\"");
        assert!(changelog("# Changelog\n\n## 0.1.0\n\n", "0.1.0", Mode::Publish).is_err());
    }

    #[test]
    fn a_package_with_other_files_or_without_a_licence_is_refused() {
        let whole = "Cargo.lock\nCargo.toml\nLICENSE-APACHE\nLICENSE-MIT\nREADME.md\nsrc/lib.rs";
        assert_eq!(contents(whole).unwrap(), 6);
        for (list, said) in [
            (whole.replace("LICENSE-MIT\n", ""), "it lacks LICENSE-MIT"),
            (format!("{whole}\n.env"), "it should not contain .env"),
            (format!("{whole}\nsrc/.main.rs.swp"), "it should not contain src/.main.rs.swp"),
        ] {
            assert_eq!(contents(&list).unwrap_err().to_string(), said);
        }
    }
}
