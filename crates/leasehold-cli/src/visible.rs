//! Characters that cannot be seen: with them, the name or the reason of one lock can be made to look like those of another.

use std::borrow::Cow;

use serde::Serialize;

/// Whether a character is not drawn, or changes the direction or the order of those around it.
///
/// # Source
/// Unicode 15: the bidirectional controls, and those of the category Cf and the separators that have no width.
fn is_hidden(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{feff}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
}

/// The text for display: what cannot be seen is `\u{202e}`.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |letter, into| into.extend(letter.escape_unicode()))
}

/// The JSON of a value, in which no character is hidden.
pub(crate) fn line_of_json(value: &impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(|line| visible_json(&line).into_owned())
}

/// The same JSON, in which what cannot be seen is `\u202e`.
fn visible_json(json: &str) -> Cow<'_, str> {
    escaped(json, |letter, into| {
        letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| into.push_str(&format!("\\u{unit:04x}")));
    })
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut shown = String::new();
    for letter in text.chars() {
        if is_hidden(letter) { escape(letter, &mut shown) } else { shown.push(letter) }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_named_and_all_else_stays() {
        for plain in
            ["invoice:42", "sp\u{e4}t \u{645}\u{631}\u{62d}\u{628}\u{627} \u{1f512}", "\u{1b}[1mbold\u{1b}[0m\n"]
        {
            assert!(matches!(visible(plain), Cow::Borrowed(same) if same == plain));
        }
        assert_eq!(visible("a\u{202e}b\u{200b}"), "a\\u{202e}b\\u{200b}");
        assert_eq!(visible("a\u{fe0f}b\u{e0100}\u{180b}"), "a\\u{fe0f}b\\u{e0100}\\u{180b}");
        let json = serde_json::to_string("\u{2066}\u{e0041}\u{feff}").unwrap();
        assert_eq!(visible_json(&json), "\"\\u2066\\udb40\\udc41\\ufeff\"");
        assert_eq!(serde_json::from_str::<String>(&visible_json(&json)).unwrap(), "\u{2066}\u{e0041}\u{feff}");
    }
}
