//! Sentences that readers stumble over, in the pages for users and in the help of the command.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use syn::{Expr, Item, Lit};

use crate::words;

/// The files that are read, and folders of them: pages, and the help of the command. Other pages are for contributors, generated, or a contract.
const READ: [&str; 10] = [
    "README.md",
    "SECURITY.md",
    "crates/leasehold-cli/src/args",
    "crates/leasehold-cli/src/args.rs",
    "crates/leasehold-cli/src/base.rs",
    "crates/leasehold-cli/src/redis.rs",
    "crates/leasehold-cli/src/redlock/args.rs",
    "crates/leasehold-cli/src/setup.rs",
    "docs/book/src",
    "docs/write-a-backend.md",
];

/// The most words of a sentence. Chosen: what fits two lines of the book.
const SENTENCE_MAX: usize = 30;

/// The most words of a cell. Chosen: more is a paragraph.
const CELL_MAX: usize = 40;

/// What to write instead of a relative clause.
const NOUN: &str = "name the actor: waiter, holder, caller, client, user";

/// Pairs of words to avoid: any of the first before any of the second, and what to write instead.
const PAIRS: [(&[&str], &[&str], &str); 4] = [
    (&["all", "anybody", "anyone", "everybody", "everyone", "one", "people", "somebody", "those"], &["who"], NOUN),
    (&["also"], &["after", "if", "where", "while"], "even if, or a sentence of its own"),
    (&["are", "is", "was", "were"], &["away"], "unreachable"),
    (&["are", "is", "was", "were"], &["over"], "expired, ended, or finished"),
];

/// Passages that stay: the file, a part of the text, and the reason. Remove an entry with its passage.
const EXCEPTIONS: &[(&str, &str, &str)] =
    &[("docs/book/src/SUMMARY.md", "What it promises", "the title of a part of the book, beside Locks and Stores")];

/// Refuses each passage that breaks a rule, all at once.
pub(crate) fn run(root: &Path) -> Result<()> {
    let (mut faults, mut excused) = (Vec::new(), Vec::new());
    for (file, passage) in read_all(root)? {
        let found = passage.faults();
        let exception = EXCEPTIONS.iter().find(|(place, part, _)| *place == file && passage.text.contains(part));
        match exception {
            Some(exception) if !found.is_empty() => excused.push(exception),
            _ => faults.extend(found.iter().map(|fault| format!("{file}:{}: {fault}", passage.line))),
        }
    }
    let unused = EXCEPTIONS.iter().filter(|exception| !excused.contains(exception));
    faults.extend(unused.map(|(file, part, _)| format!("{file}: {part:?} needs no exception any more")));
    ensure!(faults.is_empty(), "hard to read (the rules are in {}):\n{}", file!(), faults.join("\n"));
    Ok(())
}

/// All passages, each with its file.
fn read_all(root: &Path) -> Result<Vec<(String, Passage)>> {
    let mut all = Vec::new();
    for path in words::files(root)? {
        let below = path.strip_prefix(root).unwrap_or(&path);
        if READ.iter().any(|place| below.starts_with(place)) {
            let file = below.display().to_string();
            let text = fs::read_to_string(&path).with_context(|| file.clone())?;
            let is_code = path.extension().is_some_and(|ending| ending == "rs");
            let passages = if is_code { help(&text)? } else { passages(&text) };
            all.extend(passages.into_iter().map(|passage| (file.clone(), passage)));
        }
    }
    Ok(all)
}

/// The help in a source: the doc comments of items, on their lines, and constants.
fn help(source: &str) -> Result<Vec<Passage>> {
    let shown = |line: &str| line.trim_start().strip_prefix("/// ").unwrap_or_default().to_owned();
    let comments = source.lines().map(shown).collect::<Vec<_>>().join("\n");
    Ok([passages(&comments), constants(source)?].concat())
}

/// The constants that are text, without indented lines: those are examples and lists.
fn constants(source: &str) -> Result<Vec<Passage>> {
    let mut found = Vec::new();
    for item in syn::parse_file(source)?.items {
        let Item::Const(constant) = item else { continue };
        let Expr::Lit(literal) = *constant.expr else { continue };
        let Lit::Str(text) = literal.lit else { continue };
        let value = text.value();
        let prose: Vec<_> = value.lines().map(|line| if line.starts_with("  ") { "" } else { line }).collect();
        let line = text.span().start().line;
        found.extend(passages(&prose.join("\n")).into_iter().map(|passage| Passage { line, ..passage }));
    }
    Ok(found)
}

/// What a passage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Heading,
    Cell,
    Prose,
}

/// A heading, a cell of a table, a paragraph or a point of a list.
#[derive(Clone, Debug)]
struct Passage {
    line: usize,
    kind: Kind,
    text: String,
}

/// The passages of a page. Code in a line counts as one word, and blocks of code do not count.
#[expect(clippy::wildcard_enum_match_arm, reason = "a page has much that is neither")]
fn passages(page: &str) -> Vec<Passage> {
    let (mut found, mut open) = (Vec::new(), None::<Passage>);
    for (event, range) in Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter() {
        let line = page.get(..range.start).unwrap_or_default().matches('\n').count() + 1;
        let mut begin = |kind| found.extend(open.replace(Passage { line, kind, text: String::new() }));
        match event {
            Event::Start(Tag::Heading { .. }) => begin(Kind::Heading),
            Event::Start(Tag::TableCell) => begin(Kind::Cell),
            Event::Start(Tag::Paragraph | Tag::Item) => begin(Kind::Prose),
            Event::Start(Tag::CodeBlock(_)) => found.extend(open.take()),
            Event::End(TagEnd::Heading(_) | TagEnd::TableCell | TagEnd::Paragraph | TagEnd::Item) => {
                found.extend(open.take());
            }
            Event::Text(text) => open.iter_mut().for_each(|passage| passage.text.push_str(&text)),
            Event::Code(_) => open.iter_mut().for_each(|passage| passage.text.push_str("code")),
            Event::SoftBreak | Event::HardBreak => open.iter_mut().for_each(|passage| passage.text.push(' ')),
            _ => {}
        }
    }
    found.retain(|passage| !passage.text.is_empty());
    found
}

impl Passage {
    fn faults(&self) -> Vec<String> {
        let words = words_of(&self.text);
        let mut faults = Vec::new();
        if self.kind == Kind::Heading && words.first().is_some_and(|word| ["what", "who"].contains(&word.as_str())) {
            faults.push(format!("{:?}: begin with the noun", self.text));
        }
        if self.kind == Kind::Cell && words.len() > CELL_MAX {
            faults.push(format!("a cell of {} words, {:?}: write a paragraph", words.len(), beginning(&self.text)));
        }
        sentences(&self.text).iter().for_each(|sentence| faults.extend(faults_of(sentence)));
        faults
    }
}

fn faults_of(sentence: &str) -> Vec<String> {
    let count = words_of(sentence).len();
    let long =
        (count > SENTENCE_MAX).then(|| format!("a sentence of {count} words, {:?}: split it", beginning(sentence)));
    let mut faults: Vec<_> = long.into_iter().collect();
    let raw: Vec<_> = sentence.split_whitespace().collect();
    // A mark behind the first word separates the two.
    let pairs = raw.windows(2).map(|pair| (pair[0].trim_start_matches(is_mark).to_lowercase(), bare(pair[1])));
    for (first, second) in pairs {
        let found = PAIRS.iter().find(|pair| pair.0.contains(&&*first) && pair.1.contains(&&*second));
        faults.extend(found.map(|(.., instead)| format!("\"{first} {second}\": {instead}")));
    }
    faults
}

/// The words without the marks around them, in lower case.
fn words_of(text: &str) -> Vec<String> {
    text.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect()
}

fn bare(word: &str) -> String {
    word.trim_matches(is_mark).to_lowercase()
}

fn is_mark(letter: char) -> bool {
    !letter.is_alphanumeric()
}

/// A sentence ends with a mark and a space.
fn sentences(text: &str) -> Vec<String> {
    let (mut sentences, mut open) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        open.extend([word, " "]);
        if word.trim_end_matches([')', '"', '\'']).ends_with(['.', '?', '!']) {
            sentences.push(std::mem::take(&mut open));
        }
    }
    sentences.push(open);
    sentences
}

fn beginning(text: &str) -> String {
    text.split_whitespace().take(6).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(page: &str) -> Vec<String> {
        passages(page).iter().flat_map(Passage::faults).collect()
    }

    fn of_words(count: usize) -> String {
        vec!["word"; count].join(" ")
    }

    #[test]
    fn each_habit_is_found_with_its_line() {
        for (page, part) in [
            ("Text.\n\n## What it does", "begin with the noun"),
            ("Text.\n\n- Who comes first, and those\n  who wait.", "\"those who\": name the actor"),
            ("Text.\n\nIt works, Also if it fails.", "\"also if\": even if"),
            ("Text.\n\n> Once the ttl is **over**.", "\"is over\": expired"),
            ("Text.\n\nThe store *was* away.", "\"was away\": unreachable"),
        ] {
            let [_, passage] = &passages(page)[..] else { panic!("{page}") };
            assert_eq!(passage.line, 3, "{page}");
            let [fault] = &passage.faults()[..] else { panic!("{page}: {:?}", passage.faults()) };
            assert!(fault.contains(part), "{page}: {fault}");
        }
    }

    #[test]
    fn a_sentence_and_a_cell_have_a_limit() {
        let (longest, longer) = (of_words(SENTENCE_MAX), of_words(SENTENCE_MAX + 1));
        assert_eq!(faults(&format!("{longest}. ({longest}.) `a. b`\n")), [""; 0]);
        assert_eq!(faults(&longer).len(), 1);
        assert_eq!(faults(&format!("- {longest}\n- {longer}\n\n  {longer}")).len(), 2);
        let table = |cell: &str| format!("| a | b |\n|---|---|\n| {cell} | c |\n");
        assert_eq!(faults(&table(&format!("{}. {}", of_words(20), of_words(20)))), [""; 0]);
        assert_eq!(faults(&table(&format!("{}. {}", of_words(20), of_words(21)))).len(), 1);
    }

    #[test]
    fn code_and_other_uses_of_the_words_are_allowed() {
        for page in ["```sh\nwhat is over\n```", "`is over` `those who`", "# Locks", "Also, if it is. Over TCP, those."]
        {
            assert_eq!(faults(page), [""; 0], "{page}");
        }
    }

    #[test]
    fn the_help_is_read_from_comments_and_constants() -> Result<()> {
        let source = "/// It is away.\nfn a() {}\n\n// It is over.\nconst B: &str = \"C:\\n  x is over\\n\\nAll who \\\nwait.\";\n";
        let help = help(source)?;
        let found: Vec<_> =
            help.iter().flat_map(|passage| passage.faults().into_iter().map(|_| passage.line)).collect();
        assert_eq!(found, [1, 5]);
        Ok(())
    }

    #[test]
    fn a_page_with_a_habit_fails_the_check_and_an_exception_has_to_be_used() -> Result<()> {
        let root = tempfile::tempdir()?;
        let page = root.path().join("docs/book/src/SUMMARY.md");
        fs::create_dir_all(page.parent().context("a folder")?)?;
        fs::write(&page, "# What it promises\n")?;
        run(root.path())?;
        fs::write(&page, "# Promises\n\nIt is over.\n")?;
        let text = run(root.path()).expect_err("the page has a habit").to_string();
        assert!(text.contains("SUMMARY.md:3: \"is over\"") && text.contains("needs no exception"), "{text}");
        Ok(())
    }
}
