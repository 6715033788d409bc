//! A page that holds the tables of a run between two markers.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const BEGIN: &str = "<!-- bench: what follows is written by `cargo xtask bench --markdown` -->";
const END: &str = "<!-- bench: end -->";

/// Puts new tables between the markers of a page.
pub(crate) fn rewrite(path: &Path, tables: &str) -> Result<()> {
    let page = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let page = replaced(&page, tables).with_context(|| path.display().to_string())?;
    fs::write(path, page).with_context(|| path.display().to_string())
}

fn replaced(page: &str, tables: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("the page has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("the page has no line {END}"))?;
    Ok(format!("{before}{BEGIN}\n\n{tables}\n\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = replaced(&page, "new").unwrap();
        assert_eq!(new, format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n"));
        assert_eq!(replaced(&new, "new").unwrap(), new);
        assert!(replaced("a", "new").is_err() && replaced(BEGIN, "new").is_err());
    }
}
