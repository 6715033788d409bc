//! `cargo xtask calls`: what an uncontended acquire and release pass through, counted in a debug build over the memory store.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::step;

/// The crates between a user and the store.
const CRATES: [&str; 4] = ["lock_async::", "lock_blocking::", "lock_host::", "lock_core::"];

/// What locks the mutex of a site.
const LOCKS: [&str; 2] = ["lock_host::site::Site<D>::lock", "lock_host::site::Site<D>::look"];

/// Callgrind also counts the calls of the pair before the one that is looked at.
const PAIRS: u64 = 2;

/// Prints, for each form, how many functions are called from `acquire` to the first call of the store, and how often the site's mutex
/// is taken by an acquire and a release.
pub(crate) fn run() -> Result<()> {
    let target = step::target().join("calls");
    let folder = target.to_string_lossy();
    // Unoptimized code inlines nothing. Valgrind hides the vDSO, so rustix has to use libc.
    let not_optimized =
        ["lock-core", "lock-memory", "lock-rules"].map(|krate| format!("profile.dev.package.{krate}.opt-level=0"));
    let mut line = vec!["build", "--package", "calls", "--target-dir", &folder];
    line.extend(not_optimized.iter().flat_map(|option| ["--config", option]));
    step::cargo_with(("RUSTFLAGS", "--cfg=rustix_use_libc"), &line)?;
    let program = target.join("debug/calls");
    eprintln!("{:<10} {:>22} {:>18}", "form", "functions to the store", "takings of a mutex");
    for form in ["async", "blocking"] {
        let (claim, whole) = (Profile::of(&program, &[form, "claim"])?, Profile::of(&program, &[form, "whole"])?);
        eprintln!("{form:<10} {:>22} {:>18}", claim.functions(), whole.calls_of(&LOCKS) / PAIRS);
    }
    Ok(())
}

/// The calls that callgrind has counted.
struct Profile {
    /// The functions that ran.
    ran: HashSet<String>,
    /// How often each was called.
    calls: HashMap<String, u64>,
}

impl Profile {
    fn of(program: &Path, arguments: &[&str]) -> Result<Self> {
        let file = step::target().join("calls.callgrind");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--tool=callgrind", "--toggle-collect=calls::counted*"]);
        valgrind.arg(format!("--callgrind-out-file={}", file.display())).arg(program).args(arguments);
        let status = valgrind.status().context("cannot run valgrind: `apt-get install valgrind`")?;
        ensure!(status.success(), "valgrind failed ({status})");
        Ok(Self::read(&fs::read_to_string(&file)?))
    }

    /// Reads what callgrind wrote: names are written once and then only their numbers, `(1) name`.
    fn read(text: &str) -> Self {
        let (mut ran, mut calls, mut names) = (HashSet::new(), HashMap::new(), HashMap::new());
        let mut callee = String::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                ran.insert(named(name, &mut names));
            } else if let Some(name) = line.strip_prefix("cfn=") {
                callee = named(name, &mut names);
            } else if let Some(count) = line.strip_prefix("calls=") {
                let count: u64 = count.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
                *calls.entry(callee.clone()).or_default() += count;
            }
        }
        Self { ran, calls }
    }

    fn functions(&self) -> usize {
        let is_ours = |name: &&String| CRATES.iter().any(|krate| name.trim_start_matches('<').starts_with(krate));
        self.ran.iter().filter(is_ours).count()
    }

    fn calls_of(&self, functions: &[&str]) -> u64 {
        let these = self.calls.iter().filter(|(name, _)| functions.iter().any(|function| name.starts_with(function)));
        these.map(|(_, count)| count).sum()
    }
}

fn named(text: &str, names: &mut HashMap<String, String>) -> String {
    let (number, name) = text.split_once(' ').unwrap_or((text, ""));
    if !name.is_empty() {
        names.insert(number.to_owned(), name.to_owned());
    }
    names.get(number).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_name() {
        let profile =
            Profile::read("fn=(1) lock_host::a\n1 2\ncfn=(2) lock_core::b\ncalls=3 0\nfn=(2)\ncfn=(2)\ncalls=1 0\n");
        assert_eq!((profile.functions(), profile.calls_of(&["lock_core::b"])), (2, 4));
    }
}
