//! Pages that readers follow: their links lead somewhere, the book holds together, and the page about performance stays short.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::page::Page;
use crate::step::root;

/// Pages of which a reader sees everything, with the most lines that they may have.
const SHORT: [(&str, usize); 1] = [("docs/book/src/performance.md", 150)];

/// The pages of the book.
const BOOK: &str = "docs/book/src";

/// The pages at the root, of the examples, and below `docs`. Nothing is requested over the network.
pub(super) fn run() -> Result<()> {
    for (page, limit) in SHORT {
        let lines = fs::read_to_string(root().join(page))?.lines().count();
        ensure!(lines <= limit, "{page} has {lines} lines; it may have {limit}");
    }
    let pages = read_all()?;
    ensure!(pages.len() > 10, "there are more pages than {}", pages.len());
    let mut faults: Vec<String> = Vec::new();
    for (path, page) in &pages {
        let fault = |link: &String| Some(format!("{}: {link}: {}", path.display(), fault(path, link, &pages)?));
        faults.extend(page.links.iter().filter_map(fault));
    }
    faults.extend(not_in_the_summary(&pages));
    ensure!(faults.is_empty(), "links that lead nowhere:\n{}", faults.join("\n"));
    Ok(())
}

/// What is wrong with a link of the page at this path.
fn fault(path: &Path, link: &str, pages: &BTreeMap<PathBuf, Page>) -> Option<&'static str> {
    if link.contains("://") {
        return (!is_address(link)).then_some("write https://HOST and a path without spaces");
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = path.parent().unwrap_or(Path::new(""));
    let target = if file.is_empty() { path.to_owned() } else { lexical(&folder.join(file)) };
    if path.starts_with(BOOK) && !target.starts_with(BOOK) {
        return Some("the book is published without the repository: name the file, without a link");
    }
    if !root().join(&target).exists() {
        return Some("there is no such file");
    }
    let known = anchor.is_empty() || pages.get(&target).is_some_and(|page| page.anchors.contains(anchor));
    (!known).then_some("that page has no such heading")
}

/// Whether this has the form of an address on the web.
fn is_address(link: &str) -> bool {
    let host = link.strip_prefix("https://").and_then(|rest| rest.split('/').next());
    host.is_some_and(|host| host.contains('.')) && !link.contains(char::is_whitespace)
}

/// The path without `..`, which need not exist.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

/// Pages of the book that nobody would find: the book contains only what its summary lists.
fn not_in_the_summary(pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let summary = Path::new(BOOK).join("SUMMARY.md");
    let listed: Vec<_> =
        pages.get(&summary).iter().flat_map(|page| &page.links).map(|link| Path::new(BOOK).join(link)).collect();
    let book = pages.keys().filter(|path| path.starts_with(BOOK) && **path != summary);
    let missing = book.filter(|path| !listed.contains(path));
    missing.map(|path| format!("{}: SUMMARY.md does not list it", path.display())).collect()
}

/// All pages, by their paths below the root.
fn read_all() -> Result<BTreeMap<PathBuf, Page>> {
    let mut folders = vec![root().join("docs")];
    let mut files = ["", "examples", "examples/drivers"]
        .map(|folder| files(&root().join(folder)))
        .into_iter()
        .collect::<Result<Vec<_>>>()?
        .concat();
    while let Some(folder) = folders.pop() {
        let (below, here): (Vec<_>, Vec<_>) = self::files(&folder)?.into_iter().partition(|path| path.is_dir());
        folders.extend(below);
        files.extend(here);
    }
    files.retain(|path| path.extension().is_some_and(|end| end == "md"));
    files.into_iter().map(|path| Ok((path.strip_prefix(root())?.to_owned(), read(&path)?))).collect()
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

fn read(path: &Path) -> Result<Page> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(Page::parse(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_a_file_or_a_heading_within_the_book_or_has_the_form_of_an_address() {
        let page = |text: &str| Page::parse(text);
        let book = Path::new(BOOK);
        let pages = [(book.join("kinds.md"), page("# Kinds")), (book.join("kinds/mutex.md"), page("# Mutex"))].into();
        let fault = |link: &str| fault(&book.join("kinds/mutex.md"), link, &pages);
        for good in ["../kinds.md#kinds", "#mutex", "job.md", "https://etcd.io/docs"] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in ["../kinds.md#mutex", "#kinds", "nothing.md", "../../../wire.md", "http://a.b", "https://localhost/"]
        {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_page_of_the_book_is_in_its_summary() {
        let book = Path::new(BOOK);
        let pages = [("SUMMARY.md", "[A](a.md)"), ("a.md", ""), ("b.md", "")];
        let missing = not_in_the_summary(&pages.map(|(name, text)| (book.join(name), Page::parse(text))).into());
        assert_eq!(missing, [format!("{BOOK}/b.md: SUMMARY.md does not list it")]);
    }
}
