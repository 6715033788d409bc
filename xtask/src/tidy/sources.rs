//! The packages of the workspace and their sources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::step::root;

/// One package of the workspace.
pub(super) struct Package {
    /// Its name, which is also its folder's.
    pub(super) name: String,
    source: PathBuf,
}

impl Package {
    /// The root files of its library and its programs.
    pub(super) fn roots(&self) -> Vec<PathBuf> {
        ["lib.rs", "main.rs"].into_iter().map(|file| self.source.join(file)).filter(|path| path.exists()).collect()
    }
}

/// The packages of the workspace, and the tests that are packages outside it.
pub(super) fn packages() -> Result<Vec<Package>> {
    let mut folders =
        vec![root().join("bench"), root().join("bench/measure"), root().join("lab"), root().join("xtask")];
    folders.extend(entries(&root().join("crates"))?);
    folders.extend(entries(&root().join("examples"))?);
    folders.extend(entries(&root().join("tests"))?);
    let mut packages = Vec::new();
    for folder in folders.into_iter().filter(|folder| folder.join("Cargo.toml").exists()) {
        let name = folder.file_name().context("a package has a folder")?.to_string_lossy().into_owned();
        packages.push(Package { name, source: folder.join("src") });
    }
    ensure!(packages.len() > 15, "the workspace has more packages than {}", packages.len());
    Ok(packages)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    read.map(|entry| Ok(entry?.path())).collect()
}
