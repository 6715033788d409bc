//! Tools that are built into the target directory when they are first needed.

use std::path::PathBuf;

use anyhow::Result;

use crate::step;

/// A tool that cargo installs from source.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// How it is built.
    pub(crate) options: &'static [&'static str],
}

impl Tool {
    /// Its program, which is installed if it is missing.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        let Self { name, version, options } = self;
        let place = step::target().join("tools").join(format!("{name}-{version}"));
        let program = place.join("bin").join(name);
        if !program.exists() {
            let install = ["install", "--locked", name, "--version", version, "--root", &place.to_string_lossy()];
            step::cargo(&[&install[..], options].concat())?;
        }
        Ok(program)
    }
}
