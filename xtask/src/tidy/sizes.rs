//! A file has at most 300 lines without its tests, or a reason for more.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use syn::spanned::Spanned;

use super::modules::{Modules, attributes, for_tests};
use super::sources;
use crate::step::root;

/// How many lines a file may have without a reason, not counting tests.
const LIMIT: usize = 300;

/// Longer files, each with its reason. Remove an entry when its file is short again.
const LONGER: [(&str, &str); 4] = [
    ("crates/lock-core/src/node.rs", "the contract between a quorum and its nodes, and mostly its documentation"),
    ("crates/lock-async/src/work.rs", "the loops and what they run, which name each other"),
    ("crates/leasehold/src/lib.rs", "the front page of the documentation, and nearly nothing else"),
    ("tests/support/src/redis_server.rs", "one server process and everything that a test does to it"),
];

/// Looks through every source file of the workspace.
pub(super) fn run() -> Result<()> {
    let mut long = BTreeMap::new();
    for package in sources::packages()? {
        for root in package.roots() {
            for file in Modules::read(&root)?.files {
                long.extend(too_long(&file)?);
            }
        }
    }
    for (file, _) in LONGER {
        ensure!(long.contains_key(file), "{file} is short again: remove it from LONGER in {}", file!());
        long.remove(file);
    }
    if !long.is_empty() {
        let found: String = long.iter().map(|(file, lines)| format!("\n  {file}: {lines}")).collect();
        bail!("files of more than {LIMIT} lines; split them, or give the reason in {}:{}", file!(), found);
    }
    Ok(())
}

/// The name of a file and its lines, if it is too long.
fn too_long(path: &Path) -> Result<Option<(String, usize)>> {
    let text = fs::read_to_string(path)?;
    let lines = counted(&text).with_context(|| path.display().to_string())?;
    let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    Ok((lines > LIMIT).then_some((name, lines)))
}

/// The lines of a file that do not belong to its tests.
fn counted(text: &str) -> Result<usize> {
    let source = syn::parse_file(text)?;
    let tests = source.items.iter().filter(|item| for_tests(attributes(item))).map(|item| item.span());
    let tests: usize = tests.map(|span| span.end().line - span.start().line + 1).sum();
    Ok(text.lines().count().saturating_sub(tests))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        let text = "\
//! Documented.

fn code() {}

#[cfg(test)]
mod tests {
    #[test]
    fn test() {}
}
";
        assert_eq!(counted(text).unwrap(), 4);
    }

    #[test]
    fn code_that_is_not_only_for_tests_counts() {
        assert_eq!(counted("#[cfg(not(test))]\nfn code() {}\n").unwrap(), 2);
        assert_eq!(counted("#[cfg(unix)]\nfn code() {}\n").unwrap(), 2);
    }
}
