//! What the examples of the documentation import from `leasehold` is there: hidden lines can give another library that name.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};
use syn::UseTree;

use super::modules::Modules;
use super::sources;
use crate::step::root;

/// Looks through the doc comments of all packages.
pub(super) fn run() -> Result<()> {
    let api = fs::read_to_string(root().join("docs/api/leasehold.txt"))?;
    let items: BTreeSet<&str> = api.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).collect();
    let reexports: BTreeSet<&str> = api.lines().filter_map(|line| line.strip_prefix("pub use ")).collect();
    for package in sources::packages()? {
        for root in package.roots() {
            for file in Modules::read(&root)?.files {
                let text = fs::read_to_string(&file)?;
                for import in text.lines().filter_map(imported) {
                    let tree = syn::parse_str(import).with_context(|| format!("{}: {import}", file.display()))?;
                    for path in paths(&tree) {
                        // What is in a module of another library is in the list of that library.
                        let mut modules = path.match_indices("::").map(|(end, _)| &path[..end]);
                        let is_there =
                            items.contains(path.as_str()) || modules.any(|module| reexports.contains(module));
                        ensure!(is_there, "{}: an example imports {path}, which is not there", file.display());
                    }
                }
            }
        }
    }
    Ok(())
}

/// What a line of a doc comment imports from `leasehold`, if it is shown.
fn imported(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let code = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?.trim_start();
    code.strip_prefix("use ")?.strip_suffix(';').filter(|path| path.starts_with("leasehold::"))
}

/// The paths that a tree stands for.
fn paths(tree: &UseTree) -> Vec<String> {
    match tree {
        UseTree::Path(path) => paths(&path.tree).iter().map(|rest| format!("{}::{rest}", path.ident)).collect(),
        UseTree::Name(name) => vec![name.ident.to_string()],
        UseTree::Rename(renamed) => vec![renamed.ident.to_string()],
        UseTree::Group(group) => group.items.iter().flat_map(paths).collect(),
        UseTree::Glob(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_imports_that_are_shown_are_found() {
        let import = imported("    /// use leasehold::{Kit, kit::Slot};").unwrap();
        let tree = syn::parse_str(import).unwrap();
        assert_eq!(paths(&tree), ["leasehold::Kit", "leasehold::kit::Slot"]);
        assert_eq!(imported("/// # use leasehold::Kit;"), None);
        assert_eq!(imported("use leasehold::Kit;"), None);
    }
}
