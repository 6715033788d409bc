//! The pages for users, the README and the book, and the code in them.

use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use crate::must;

/// A block of code in a page.
#[derive(Clone, Debug)]
pub struct Block {
    /// The path of the page, below the root of the repository.
    pub page: PathBuf,
    /// What follows the fence; empty if nothing does.
    pub language: String,
    /// The lines of the block.
    pub code: String,
}

/// All blocks of all pages, page by page.
pub fn blocks() -> Vec<Block> {
    let root = root();
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs/book/src")];
    while let Some(folder) = folders.pop() {
        for entry in must("read the book", fs::read_dir(&folder)) {
            let path = must("read the book", entry).path();
            let to = if path.is_dir() { &mut folders } else { &mut pages };
            to.push(path);
        }
    }
    pages.retain(|page| page.extension().is_some_and(|end| end == "md"));
    pages.sort();
    pages.iter().flat_map(|page| blocks_of(must("find the page", page.strip_prefix(&root)), &read(page))).collect()
}

/// The blocks in a language.
pub fn blocks_in(language: &str) -> Vec<Block> {
    let found: Vec<_> = blocks().into_iter().filter(|block| block.language == language).collect();
    assert!(!found.is_empty(), "no page has {language}");
    found
}

/// The names of a page's headings in a link, in their order; none if there is no such page. `cargo xtask tidy` derives them alike.
#[expect(clippy::wildcard_enum_match_arm, reason = "a page has much that is not a heading")]
pub fn anchors(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap_or_default();
    let (mut anchors, mut heading) = (Vec::new(), None);
    for event in Parser::new(&text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|heading| anchor(&heading))),
            Event::Text(text) | Event::Code(text) => heading.iter_mut().for_each(|heading| heading.push_str(&text)),
            _ => {}
        }
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    };
    heading.trim().to_lowercase().chars().filter_map(kept).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &Path) -> String {
    must("read a page", fs::read_to_string(page))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a page has much that is not code")]
fn blocks_of(page: &Path, text: &str) -> Vec<Block> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                open = Some(Block { page: page.to_owned(), language, code: String::new() });
            }
            Event::Text(text) => open.iter_mut().for_each(|block: &mut Block| block.code.push_str(&text)),
            Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
            _ => {}
        }
    }
    blocks
}
