//! The documentation of an item in one form, line by line.

use crate::form::Form;

/// What the blocking form of a line replaces, in text and in examples.
const REPLACED: [(&str, &str); 6] = [
    ("AsyncBackend", "BlockingBackend"),
    ("lock_async", "lock_blocking"),
    ("nonblocking", "blocking"),
    ("leasehold::Kit", "leasehold::blocking::Kit"),
    ("leasehold::{Cache", "leasehold::blocking::{Cache"),
    ("leasehold::all", "leasehold::blocking::all"),
];

/// What the blocking form of an example leaves out.
const REMOVED: [&str; 2] = [".await", "async "];

/// Follows the documentation of one item.
pub(crate) struct Docs {
    form: Form,
    is_example: bool,
    is_foreign: bool,
}

impl Docs {
    pub(crate) fn new(form: Form) -> Self {
        Self { form, is_example: false, is_foreign: false }
    }

    /// The next line, a literal, as it is in this form; `None` if it is not there.
    pub(crate) fn line(&mut self, literal: &str) -> Option<String> {
        let text = literal.trim_matches('"').trim();
        if text.starts_with("```") {
            self.is_example = !self.is_example;
        } else if !self.is_example && text.starts_with("# ") {
            self.is_foreign = text == self.form.foreign_section();
        }
        if self.is_foreign {
            return None;
        }
        if self.form == Form::Nonblocking {
            return Some(literal.to_owned());
        }
        let replaced = |line: String, (from, to): &(&str, &str)| line.replace(from, to);
        let line = REPLACED.iter().fold(literal.to_owned(), replaced);
        if !self.is_example {
            return Some(line);
        }
        let removed = |line: String, word: &&str| line.replace(word, "");
        (!text.contains("#[tokio::main")).then(|| REMOVED.iter().fold(line, removed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: [&str; 14] = [
        "Waits for the [lock](lock_async::Guard), in async code, too.",
        "",
        "# Cancel safety",
        "Nothing happens.",
        "",
        "# Blocking",
        "Forever.",
        "",
        "# Examples",
        "```",
        "# #[tokio::main(flavor = \\\"current_thread\\\")]",
        "# async fn main() {",
        "lock().await;",
        "```",
    ];

    fn page(form: Form) -> Vec<String> {
        let mut docs = Docs::new(form);
        PAGE.iter().filter_map(|line| docs.line(&format!("\" {line}\""))).collect()
    }

    #[test]
    fn each_form_has_its_sections() {
        assert!(page(Form::Nonblocking).iter().map(|line| line[2..line.len() - 1].to_owned()).eq(
            PAGE.iter().enumerate().filter(|(number, _)| !(5..8).contains(number)).map(|(_, line)| (*line).to_owned())
        ));
        let blocking = page(Form::Blocking).concat();
        assert!(blocking.contains("# Blocking") && !blocking.contains("# Cancel safety"), "{blocking}");
    }

    #[test]
    fn examples_and_names_are_those_of_the_form() {
        let blocking = page(Form::Blocking);
        assert_eq!(blocking[0], "\" Waits for the [lock](lock_blocking::Guard), in async code, too.\"");
        assert_eq!(blocking[blocking.len() - 3..], ["\" # fn main() {\"", "\" lock();\"", "\" ```\""]);
    }
}
