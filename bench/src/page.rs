//! The pages that a run fills in: each between two markers, and the rest of a page is left as it is.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a file, and the folder that it is in.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder).and_then(|()| fs::write(path, text)).with_context(|| path.display().to_string())
}

/// Puts a new text into each of the named parts of a page.
pub(crate) fn fill_in(path: &Path, parts: &[(&str, String)]) -> Result<()> {
    let mut page = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    for (name, text) in parts {
        page = replaced(&page, name, text).with_context(|| path.display().to_string())?;
    }
    write(path, &page)
}

fn replaced(page: &str, name: &str, text: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- bench: {name} -->"), format!("<!-- bench: end of {name} -->"));
    let (before, rest) = page.split_once(&begin).with_context(|| format!("the page has no line {begin}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("the page has no line {end}"))?;
    Ok(format!("{before}{begin}\n\n{text}\n\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = |text: &str| {
            let part =
                |name: &str, text: &str| format!("<!-- bench: {name} -->\n{text}\n<!-- bench: end of {name} -->\n");
            format!("a\n{}b\n{}c\n", part("one", text), part("two", "kept"))
        };
        let new = replaced(&page("old"), "one", "new").unwrap();
        assert_eq!(new, page("\nnew\n"));
        assert_eq!(replaced(&new, "one", "new").unwrap(), new);
        assert!(replaced("a", "one", "new").is_err() && replaced("<!-- bench: one -->", "one", "new").is_err());
    }
}
