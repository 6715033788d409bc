//! Pages that readers follow: their links lead somewhere, and the page about performance stays short.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::step::root;

/// Pages of which a reader sees everything, with the most lines that they may have.
const SHORT: [(&str, usize); 1] = [("docs/book/src/performance.md", 150)];

/// The pages at the root, of the examples, and below `docs`.
pub(super) fn run() -> Result<()> {
    for (page, limit) in SHORT {
        let lines = read(&root().join(page))?.lines().count();
        ensure!(lines <= limit, "{page} has {lines} lines; it may have {limit}");
    }
    let mut pages = pages(root())?;
    for folder in ["examples", "examples/drivers"] {
        pages.extend(self::pages(&root().join(folder))?);
    }
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        pages.extend(self::pages(&folder)?);
        for entry in fs::read_dir(&folder)? {
            folders.extend(Some(entry?.path()).filter(|path| path.is_dir()));
        }
    }
    ensure!(pages.len() > 10, "there are more pages than {}", pages.len());
    let mut broken = Vec::new();
    for page in pages {
        let folder = page.parent().unwrap_or(root());
        let text = read(&page)?;
        let missing = links(&text).into_iter().filter(|link| !folder.join(link).exists());
        broken.extend(missing.map(|link| format!("{}: {link}", page.display())));
    }
    ensure!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
    Ok(())
}

fn pages(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "md")).collect())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// The files that a page links to or shows.
fn links(text: &str) -> Vec<&str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0))
        .filter(|link| !link.contains("://") && !link.starts_with('#') && !link.contains(char::is_whitespace))
        .map(|link| link.split_once('#').map_or(link, |(file, _)| file))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found() {
        let text = "[a](a.md) ![b](b/c.svg), [d](https://d) [e](#e) [f](f.md#g) `x[0](y, z)`";
        assert_eq!(links(text), ["a.md", "b/c.svg", "f.md"]);
    }
}
