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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
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
