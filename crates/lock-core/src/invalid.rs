//! The one error for input that cannot be parsed.

use std::fmt;

/// Input that was refused before anything was done with it.
///
/// Says what was given, what is wrong with it and what to do. Its text can be shown to users as is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {given} is not valid: {problem}; {remedy}")]
pub struct Invalid {
    what: &'static str,
    given: Given,
    problem: String,
    remedy: String,
}

/// The given value, shortened and with control characters escaped, so that it can go to a terminal or a log.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given(String);

const GIVEN_CHARS_MAX: usize = 60;

impl Invalid {
    /// Describes a refused input: the thing's name, what was given, what is wrong, and what to do instead.
    ///
    /// Pass a redacted `given` if the input may contain a secret.
    pub fn new(
        what: &'static str,
        given: impl fmt::Display,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { what, given: Given::shortened(&given.to_string()), problem: problem.into(), remedy: remedy.into() }
    }

    /// Names the kind of input, such as `lock name` or `ttl`.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Says what to do instead.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl Given {
    fn shortened(text: &str) -> Self {
        let mut shown: String = text.chars().take(GIVEN_CHARS_MAX).flat_map(char::escape_debug).collect();
        if text.chars().nth(GIVEN_CHARS_MAX).is_some() {
            shown.push_str("...");
        }
        Self(shown)
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_was_given_what_is_wrong_and_what_helps() {
        let invalid = Invalid::new("ttl", "so\nlong", "it is not a number", "give 30s");
        assert_eq!(invalid.to_string(), "ttl \"so\\nlong\" is not valid: it is not a number; give 30s");
        assert_eq!((invalid.what(), invalid.remedy()), ("ttl", "give 30s"));
    }

    #[test]
    fn long_input_is_shortened() {
        let shown = |given: usize| Given::shortened(&"x".repeat(given)).0;
        assert_eq!(shown(GIVEN_CHARS_MAX), "x".repeat(GIVEN_CHARS_MAX));
        assert_eq!(shown(GIVEN_CHARS_MAX + 1), "x".repeat(GIVEN_CHARS_MAX) + "...");
    }
}
