//! Words and phrases that the project no longer uses, and what to write instead.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Words to avoid, and what to write instead. A phrase with a capital letter is an identifier and is matched exactly;
/// any other is matched in either case. Only whole words count, also where a phrase continues on the next line.
const GONE: &[(&str, &str)] = &[
    ("Awaiting", "WakeRegistration"),
    ("Errand", "request"),
    ("Farewell", "PendingRelease"),
    ("Inquiry", "HoldCall"),
    ("LOOKING", "READING"),
    ("Noted", "Record"),
    ("Noting", "Recording"),
    ("Parting", "ReleaseRequest"),
    ("Quest", "Attempt"),
    ("Sight", "Polled, or say what was seen"),
    ("Sleeper", "waiter"),
    ("Sleepers", "WakeRegistry"),
    ("Tenure", "HeldLease"),
    ("Tidings", "Renewal"),
    ("Troubles", "errors"),
    ("UnderWay", "InFlight"),
    ("a dependency of its", "one of its dependencies"),
    ("a minute or some", "a minute or two"),
    ("amiss", "wrong"),
    ("as well as it goes", "on a best-effort basis"),
    ("be had", "available, possible"),
    ("belongs into", "belongs in"),
    ("both colours", "async and blocking"),
    ("came by", "say what happened: connected, asked, ran"),
    ("come by", "say what happens: connect, ask, run"),
    ("comes by", "say what happens: connects, asks, runs"),
    ("did not come about", "failed"),
    ("face", "facade"),
    ("faces", "facades"),
    ("find_hands", "dispatch"),
    ("for ever", "forever"),
    ("for people", "for display, for users, or for operators"),
    ("had otherwise", "say what is assumed"),
    ("harmless when dropped", "can be dropped at any point"),
    ("has_news", "has_update"),
    ("hasten", "renew_now"),
    ("hastened", "urgent"),
    ("in earnest", "in production"),
    ("inquire", "hold_call"),
    ("is let go", "is dropped, released or passed on"),
    ("is no error", "is not an error"),
    ("is no number", "is not a number"),
    ("is none of theirs", "is not one of theirs"),
    ("mended", "fixed"),
    ("nobody can be told", "waiters cannot be notified"),
    ("none the wiser", "unchanged"),
    ("of account", "counts, or matters"),
    ("of yours", "your own, or a per-user file"),
    ("spelt", "spelled, or written"),
    ("stood still", "was suspended, or was stopped"),
    ("tidings", "renewals, or answers"),
    ("turned away", "rejected, or refused"),
    ("two colours", "async and blocking"),
    ("under way", "in flight, or in progress"),
    ("under_way", "in_flight"),
    ("who polls", "waiters that poll"),
    ("whoever", "the client that, or a noun"),
    ("whomever", "the client that"),
    ("word_at", "wanted_as_of"),
];

/// Where some of them are still in use. Only remove from this list.
const STILL_USED: &[(&str, &[&str])] = &[
    // It may name what was renamed.
    ("CHANGELOG.md", &["Errand", "Farewell", "Noted", "Noting", "Parting", "Tidings"]),
];

/// This file, which has to name what it refuses.
const THIS: &str = "xtask/src/words.rs";

/// Refuses every word of the list in the Markdown and Rust files below `root`, all places at once.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut found = Vec::new();
    for path in files(root)? {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let shown = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
        let places = places(&text).into_iter().filter(|place| !still_used(&shown, place.gone));
        found.extend(places.map(|Place { line, gone, instead }| format!("{shown}:{line}: \"{gone}\": {instead}")));
    }
    ensure!(found.is_empty(), "words that we no longer use:\n{}", found.join("\n"));
    Ok(())
}

/// All Markdown and Rust files, except what cargo and git keep, and this one.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut folders, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            if entry.file_type()?.is_dir() {
                if name != "target" && !name.to_string_lossy().starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|end| end == "md" || end == "rs") && path != root.join(THIS) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn still_used(path: &str, gone: &str) -> bool {
    STILL_USED.iter().any(|(start, words)| path.starts_with(start) && words.contains(&gone))
}

/// Where a text uses a word of the list.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    line: usize,
    gone: &'static str,
    instead: &'static str,
}

/// All places of a text, in the order of its lines.
fn places(text: &str) -> Vec<Place> {
    let words = words(text);
    let mut found = Vec::new();
    for &(gone, instead) in GONE {
        let wanted: Vec<_> = gone.split(' ').collect();
        let uses = words
            .windows(wanted.len())
            .filter(|uses| uses.iter().zip(&wanted).all(|(word, wanted)| same(word.1, wanted)));
        found.extend(uses.map(|uses| Place { line: uses[0].0, gone, instead }));
    }
    found.sort_by_key(|place| place.line);
    found
}

fn same(word: &str, wanted: &str) -> bool {
    if wanted.contains(char::is_uppercase) { word == wanted } else { word.eq_ignore_ascii_case(wanted) }
}

/// The words of a text with their lines. A mark at the beginning of a line, such as `///`, is not a word. Anything else
/// between two words counts as one, so that no phrase extends across it.
fn words(text: &str) -> Vec<(usize, &str)> {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut rest = line.trim_start().trim_start_matches(['/', '!', '#', '>', '*', '-', '|']);
        while let Some(first) = rest.chars().next() {
            let length = match first {
                _ if part_of_word(first) => rest.find(|c| !part_of_word(c)).unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            let (word, after) = rest.split_at(length);
            if !first.is_whitespace() {
                words.push((number + 1, word));
            }
            rest = after;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, &'static str)> {
        places(text).into_iter().map(|place| (place.line, place.gone)).collect()
    }

    #[test]
    fn a_phrase_is_found_in_either_case_and_across_lines() {
        assert_eq!(found("one\nIn earnest, two"), [(2, "in earnest")]);
        assert_eq!(found("/// a file of\n/// yours"), [(1, "of yours")]);
        assert_eq!(
            found("//! | of yours |\n//! in earnest, of yours"),
            [(1, "of yours"), (2, "in earnest"), (2, "of yours")]
        );
        assert_eq!(found("use crate::Parting;"), [(1, "Parting")]);
    }

    #[test]
    fn parts_of_words_and_separated_words_are_allowed() {
        for text in
            ["income by_name", "come, by the way", "become by", "of_yours", "of\n\n`yours`", "parting", "surface"]
        {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn a_listed_exception_is_allowed_only_in_its_file() {
        assert!(still_used("CHANGELOG.md", "Parting") && !still_used("CHANGELOG.md", "of yours"));
        assert!(!still_used("README.md", "Parting"));
        for (_, words) in STILL_USED {
            assert!(words.iter().all(|word| GONE.iter().any(|(gone, _)| gone == word)), "{words:?}");
        }
    }

    #[test]
    fn a_file_with_such_a_word_fails_the_check_but_not_one_of_cargos() -> Result<()> {
        let root = std::env::temp_dir().join(format!("leasehold-words-{}", std::process::id()));
        fs::create_dir_all(root.join("target"))?;
        fs::create_dir_all(root.join("docs"))?;
        fs::write(root.join("target/kept.md"), "in earnest")?;
        fs::write(root.join("docs/page.txt"), "in earnest")?;
        let clean = run(&root);
        fs::write(root.join("docs/page.md"), "fine\nin earnest")?;
        let refused = run(&root);
        fs::remove_dir_all(&root)?;
        clean?;
        let text = refused.expect_err("the page has such a word").to_string();
        assert!(text.contains("docs/page.md:2: \"in earnest\""), "{text}");
        Ok(())
    }
}
