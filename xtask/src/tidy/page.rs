//! What a page of Markdown links to, and what can be linked to on it.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The links and headings of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// The files, anchors and addresses that it links to or shows.
    pub(super) links: Vec<String>,
    /// The names of its headings in a link.
    pub(super) anchors: BTreeSet<String>,
}

impl Page {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a page has much that is neither")]
    pub(super) fn parse(text: &str) -> Self {
        let (mut page, mut heading) = (Self::default(), None);
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.add_anchor(&heading.take().unwrap_or_default()),
                Event::Text(text) | Event::Code(text) => heading.iter_mut().for_each(|heading| heading.push_str(&text)),
                _ => {}
            }
        }
        page
    }

    /// As web sites and the book both derive it: a name that is there already gets a number.
    fn add_anchor(&mut self, heading: &str) {
        let name = anchor(heading);
        let free = (1..).map(|count| format!("{name}-{count}")).find(|name| !self.anchors.contains(name));
        let name = if self.anchors.contains(&name) { free.unwrap_or_default() } else { name };
        self.anchors.insert(name);
    }
}

fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    };
    heading.trim().to_lowercase().chars().filter_map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_headings_are_found() {
        let text = "# A `b:` c, d\n\n[a](a.md) ![b](b/c.svg)\n\n| [e](#e) |\n|---|\n| [f](f.md#g) |\n\n`x[0](y)`\n\n## E\n\n## E\n";
        let page = Page::parse(text);
        assert_eq!(page.links, ["a.md", "b/c.svg", "#e", "f.md#g"]);
        assert_eq!(page.anchors, ["a-b-c-d", "e", "e-1"].map(str::to_owned).into());
    }
}
