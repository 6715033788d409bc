//! The terminal behind a stream: how wide it is, and whether lines can be written over.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;
use textwrap::{Options, WordSplitter};

/// The narrowest column of text whose lines are broken. Chosen: below this, a terminal does it as well.
const TEXT_MIN: usize = 20;

/// `COLUMNS`, or the width of the terminal; `None` if neither is known (a pipe, a serial line).
pub(crate) fn width(stream: impl AsFd) -> Option<u16> {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let known = |width: &u16| *width > 0;
    told.filter(known).or_else(|| tcgetwinsize(stream).ok().map(|size| size.ws_col).filter(known))
}

/// Whether the terminal understands control sequences.
pub(crate) fn has_controls(stream: &impl IsTerminal) -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    stream.is_terminal() && !dumb
}

/// Breaks lines between words to fit the terminal, beside a margin on the left: all lines but the first begin with it. On anything
/// else, text stays as it is.
pub(crate) fn beside(margin: usize, text: &str, stream: &(impl AsFd + IsTerminal)) -> String {
    let width = if stream.is_terminal() { width(stream) } else { None };
    fill(margin, text, width)
}

/// Wraps a text that follows `beginning` to the width. Later lines are indented as far, and words that are too long are broken.
pub(crate) fn wrapped(beginning: &str, text: &str, width: Option<u16>) -> String {
    let Some(width) = width else { return format!("{beginning}{text}") };
    let margin = " ".repeat(beginning.len());
    let options = Options::new(width.into()).initial_indent(beginning).subsequent_indent(&margin);
    textwrap::fill(text, options.word_splitter(WordSplitter::NoHyphenation))
}

fn fill(margin: usize, text: &str, width: Option<u16>) -> String {
    let Some(width) = width.map(|width| usize::from(width).saturating_sub(margin)).filter(|width| *width >= TEXT_MIN)
    else {
        return text.to_owned();
    };
    let options = Options::new(width).break_words(false).word_splitter(WordSplitter::NoHyphenation);
    // A question ends with a space, and an error of the parser with a line break.
    let (text, end) = text.split_at(text.trim_end().len());
    textwrap::wrap(text, options).join(&format!("\n{}", " ".repeat(margin))) + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_only() {
        let text = "fail-over of redis://a-host-with-a-long-name/0; look";
        assert_eq!(fill(2, text, Some(30)), "fail-over of\n  redis://a-host-with-a-long-name/0;\n  look");
        assert_eq!(fill(2, "one\ntwo? ", Some(30)), "one\n  two? ");
        assert_eq!(fill(0, "  one\n\ntwo\n", Some(30)), "  one\n\ntwo\n");
        for wide_or_unknown in [Some(80), Some(10), None] {
            assert_eq!(fill(2, text, wide_or_unknown), text);
        }
    }
}
