//! What is read: variations of things that are well-formed, and anything at all.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use redis::Value;

/// Pieces that are special to some reader.
const PIECES: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "7",
    "9007199254740991",
    "9007199254740992",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999",
    "1e309",
    "NaN",
    ":",
    "::",
    "/",
    "//",
    "@",
    "?",
    "#",
    "&",
    "=",
    ",",
    ";",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\0",
    "\u{1b}[2J",
    "%",
    "%00",
    "%2f",
    "%zz",
    "..",
    "+",
    "*",
    "{",
    "}",
    "{}",
    "[",
    "]",
    "[::1]",
    "\"",
    "'",
    "\\",
    "ß",
    "é",
    "漢",
    "🔒",
    "\u{202e}",
    "\u{feff}",
    "\u{85}",
    "ms",
    "s",
    "y",
    "null",
    "true",
];

/// Any text, mostly short and strange.
pub fn text() -> impl Strategy<Value = String> {
    let pieces = vec(select(PIECES), 0..8).prop_map(|pieces| pieces.concat());
    prop_oneof![
        pieces,
        any::<String>(),
        "[ -~]{0,40}",
        "[0-9a-f]{30,34}",
        Just("x".repeat(5000)),
        Just("é".repeat(150))
    ]
}

/// One of these texts as it is, or with a few changes: a part is dropped, doubled, replaced or moved.
pub fn like(examples: &'static [&'static str]) -> impl Strategy<Value = String> {
    let changed = (select(examples), vec((any::<Range<u16>>(), edit()), 0..4));
    changed.prop_map(|(example, edits)| {
        edits.into_iter().fold(example.to_owned(), |text, (range, edit)| edit.apply(&text, &range))
    })
}

/// A change to a part of a text.
#[derive(Clone, Debug)]
enum Edit {
    Drop,
    Double,
    Swap,
    Replace(String),
    Insert(String),
}

fn edit() -> impl Strategy<Value = Edit> {
    let some = || prop_oneof![4 => select(PIECES).prop_map(str::to_owned), 1 => any::<String>()];
    prop_oneof![
        Just(Edit::Drop),
        Just(Edit::Double),
        Just(Edit::Swap),
        some().prop_map(Edit::Replace),
        some().prop_map(Edit::Insert),
    ]
}

impl Edit {
    /// Changes at most a few characters, wherever the numbers point.
    fn apply(self, text: &str, place: &Range<u16>) -> String {
        let chars: Vec<char> = text.chars().collect();
        let start = usize::from(place.start) % (chars.len() + 1);
        let end = (start + usize::from(place.end) % 9).min(chars.len());
        let [before, part, after] = [&chars[..start], &chars[start..end], &chars[end..]].map(String::from_iter);
        match self {
            Self::Drop => before + &after,
            Self::Double => [before, part.clone(), part, after].concat(),
            Self::Swap => [after, part, before].concat(),
            Self::Replace(other) => [before, other, after].concat(),
            Self::Insert(other) => [before, other, part, after].concat(),
        }
    }
}

/// A number where limits are near.
pub fn number() -> impl Strategy<Value = i64> {
    const NEAR: &[i64] = &[
        i64::MIN,
        -2,
        -1,
        0,
        1,
        2,
        3,
        63,
        64,
        65,
        100,
        30_000,
        100_000,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x1_0000_0000,
        9_007_199_254_740_990,
        9_007_199_254_740_991,
        9_007_199_254_740_992,
        i64::MAX,
    ];
    prop_oneof![4 => select(NEAR), 1 => any::<i64>()]
}

/// Any reply of a server. Its texts are like these examples.
pub fn reply(examples: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => number().prop_map(Value::Int),
        4 => like(examples).prop_map(|text| Value::BulkString(text.into_bytes())),
        1 => vec(any::<u8>(), 0..40).prop_map(Value::BulkString),
        1 => text().prop_map(Value::SimpleString),
        1 => Just(Value::Nil),
        1 => Just(Value::Okay),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => any::<f64>().prop_map(Value::Double),
    ];
    leaf.prop_recursive(4, 64, 12, |inner| {
        prop_oneof![
            6 => vec(inner.clone(), 0..12).prop_map(Value::Array),
            1 => vec((inner.clone(), inner.clone()), 0..4).prop_map(Value::Map),
            1 => vec(inner, 0..4).prop_map(Value::Set),
        ]
    })
}

/// A well-formed reply, with a few of its parts replaced, dropped or doubled.
pub fn reply_like(forms: Vec<Value>, examples: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let edits = vec((any::<u16>(), prop_oneof![3 => reply(examples).prop_map(Some), 1 => Just(None)]), 0..3);
    (select(forms), edits).prop_map(|(form, edits)| {
        edits.into_iter().fold(form, |mut reply, (place, part)| {
            let mut left = usize::from(place) % parts(&reply);
            change(&mut reply, &mut left, part.as_ref());
            reply
        })
    })
}

fn parts(reply: &Value) -> usize {
    match reply {
        Value::Array(all) => 1 + all.iter().map(parts).sum::<usize>(),
        _ => 1,
    }
}

/// Replaces the part with this number; without another one, it loses what follows in its list.
fn change(reply: &mut Value, left: &mut usize, part: Option<&Value>) -> bool {
    if *left == 0 {
        match (part, &mut *reply) {
            (Some(part), _) => *reply = part.clone(),
            (None, Value::Array(all)) => _ = all.pop(),
            (None, _) => *reply = Value::Nil,
        }
        return true;
    }
    *left -= 1;
    let Value::Array(all) = reply else { return false };
    all.iter_mut().any(|inner| change(inner, left, part))
}
