//! Characters that cannot be seen: with them, the name or the reason of one lock can be made to look like those of another.

use std::borrow::Cow;
use std::iter::repeat_n;

use serde::Serialize;

/// Whether a character is invisible, or changes the direction or order of its neighbours. The live page has the same list in `dom.js`.
///
/// # Source
/// Unicode 15: the bidirectional controls, the characters that are ignored by default, the line separators, and those of the category
/// Cf that have no width.
fn is_hidden(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Text from others for display: an invisible character is written as `\u{202e}`, and a backslash before text of that form is doubled,
/// so that no two texts look the same.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) && !text.contains("\\u{") {
        return text.into();
    }
    let (mut shown, mut backslashes) = (String::new(), 0);
    for (at, letter) in text.char_indices() {
        if is_hidden(letter) || text[at..].starts_with("u{") {
            shown.extend(repeat_n('\\', backslashes));
        }
        backslashes = if letter == '\\' { backslashes + 1 } else { 0 };
        push(letter, &mut shown);
    }
    shown.into()
}

/// Lines for printing, without invisible characters. [`visible`] text stays as it is.
pub(crate) fn unhidden(lines: &str) -> Cow<'_, str> {
    if !lines.contains(is_hidden) {
        return lines.into();
    }
    let mut shown = String::new();
    lines.chars().for_each(|letter| push(letter, &mut shown));
    shown.into()
}

fn push(letter: char, into: &mut String) {
    if is_hidden(letter) { into.extend(letter.escape_unicode()) } else { into.push(letter) }
}

/// The JSON of a value, with invisible characters as escapes such as `\u202e`.
pub(crate) fn line_of_json(value: &impl Serialize) -> serde_json::Result<String> {
    let mut line = String::new();
    for letter in serde_json::to_string(value)?.chars() {
        if is_hidden(letter) {
            letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| line.push_str(&format!("\\u{unit:04x}")));
        } else {
            line.push(letter);
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_named_and_all_else_stays() {
        for plain in [
            "invoice:42",
            "sp\u{e4}t \u{645}\u{631}\u{62d}\u{628}\u{627} \u{1f512}",
            "\u{1b}[1mbold\u{1b}[0m\n",
            "C:\\u u{1}",
        ] {
            assert!(matches!(visible(plain), Cow::Borrowed(same) if same == plain));
            assert!(matches!(unhidden(plain), Cow::Borrowed(same) if same == plain));
        }
        for (text, shown) in [
            ("a\u{202e}b\u{200b}", "a\\u{202e}b\\u{200b}"),
            ("a\u{fe0f}b\u{e0100}\u{180b}", "a\\u{fe0f}b\\u{e0100}\\u{180b}"),
            ("\u{1d173}\u{1d17a}\u{1bca0}\u{1bca3}", "\\u{1d173}\\u{1d17a}\\u{1bca0}\\u{1bca3}"),
        ] {
            assert_eq!((visible(text), unhidden(text)), (shown.into(), shown.into()));
        }
        let text = "\u{2066}\u{e0041}\u{feff}\\u{202e}";
        let json = line_of_json(&text).unwrap();
        assert_eq!(json, "\"\\u2066\\udb40\\udc41\\ufeff\\\\u{202e}\"");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn no_two_texts_look_the_same() {
        let texts = ["a\u{202e}", "a\\u{202e}", "a\\\u{202e}", "a\\\\u{202e}", "a\\\\\u{202e}", "a\\\\\\u{202e}"];
        let shown = texts.map(visible);
        assert_eq!(shown[..3], ["a\\u{202e}", "a\\\\u{202e}", "a\\\\\\u{202e}"]);
        for (at, one) in shown.iter().enumerate() {
            assert!(!shown[..at].contains(one), "{one}");
            assert_eq!(unhidden(one), *one, "it is shown as it is");
        }
    }

    /// The characters of a class in the style of `[\u{ad}\u{2028}-\u{202e}]`.
    fn class(text: &str) -> Vec<char> {
        let code = |code: &str| char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap();
        let mut class = Vec::new();
        for part in text.split("\\u{").skip(1) {
            let (number, rest) = part.split_once('}').unwrap();
            match class.last() {
                Some('-') => {
                    class.pop();
                    let from: char = class.pop().unwrap();
                    class.extend(from..=code(number));
                }
                Some(_) | None => class.push(code(number)),
            }
            class.extend(rest.chars());
        }
        class
    }

    #[test]
    fn the_live_page_hides_the_same() {
        // Not a part of this package.
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../leasehold-dashboard/src/page/dom.js");
        let page = std::fs::read_to_string(file).unwrap();
        let (_, rest) = page.split_once("const HIDDEN = /[").unwrap();
        let (hidden, _) = rest.split_once("]/u;").unwrap();
        let mut all = class(hidden);
        all.sort_unstable();
        assert_eq!(all, ('\0'..=char::MAX).filter(|letter| is_hidden(*letter)).collect::<Vec<_>>());
    }
}
