//! The name of a lock, parsed once.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// The name of a lock: 1 to 512 bytes of UTF-8 without control characters or blanks at either end, not beginning with
/// `leasehold:`.
///
/// Code that has a `LockName` may rely on that; no layer checks it again. Cloning is cheap.
///
/// ```
/// # use lock_core as leasehold;
/// use leasehold::LockName;
///
/// let name: LockName = "invoice:42".parse()?;
/// assert_eq!(name.as_str(), "invoice:42");
/// assert!("leasehold:q".parse::<LockName>().is_err());
/// # Ok::<(), leasehold::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LockName(Arc<str>);

impl LockName {
    /// The longest name, in bytes. Chosen: long enough for a path, short enough for every store's key.
    pub const BYTES_MAX: usize = 512;

    /// The prefix of the library's own keys, which no lock name may have.
    pub const RESERVED_PREFIX: &'static str = "leasehold:";

    /// Shows the name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LockName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = |problem: &str, remedy: &str| Err(Invalid::new("lock name", text, problem, remedy));
        if text.is_empty() {
            return refuse("it is empty", "give a name of 1 to 512 bytes");
        }
        if text.len() > Self::BYTES_MAX {
            return refuse(
                &format!("it has {} bytes", text.len()),
                "give a name of 1 to 512 bytes, for instance a hash of the long one",
            );
        }
        if text.chars().any(char::is_control) {
            return refuse("it contains a control character", "remove line breaks, tabs and other control characters");
        }
        if text.trim() != text {
            return refuse("it begins or ends with whitespace", "remove whitespace at the beginning and the end");
        }
        if text.starts_with(Self::RESERVED_PREFIX) {
            return refuse(
                "names that begin with \"leasehold:\" are reserved",
                "choose a name that begins differently",
            );
        }
        Ok(Self(text.into()))
    }
}

impl TryFrom<&str> for LockName {
    type Error = Invalid;

    fn try_from(text: &str) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl TryFrom<String> for LockName {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<LockName> for String {
    fn from(name: LockName) -> Self {
        name.as_str().to_owned()
    }
}

impl AsRef<str> for LockName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for LockName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_once_and_bounded() {
        for good in ["a", "invoice:42", "nightly report", "späť", &"x".repeat(512)] {
            let name: LockName = good.parse().unwrap();
            assert_eq!((name.as_str(), Borrow::<str>::borrow(&name)), (good, good));
        }
        for bad in ["", "a\nb", "a\0", "\u{7f}", " a", "a ", "a\u{a0}", " ", "leasehold:x", &"x".repeat(513)] {
            assert!(bad.parse::<LockName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_are_read_from_text_and_from_configurations() {
        let name: LockName = "invoice:42".parse().unwrap();
        assert_eq!(
            (LockName::try_from("invoice:42"), LockName::try_from("invoice:42".to_owned())),
            (Ok(name.clone()), Ok(name.clone()))
        );
        let json = serde_json::to_string(&name).unwrap();
        assert_eq!((json.as_str(), serde_json::from_str::<LockName>(&json).unwrap()), ("\"invoice:42\"", name));
        assert!(serde_json::from_str::<LockName>("\" a\"").unwrap_err().to_string().contains("whitespace"));
    }

    #[test]
    fn a_refusal_names_the_input_and_the_remedy_on_one_line() {
        let refusal = "a\nb".parse::<LockName>().unwrap_err().to_string();
        assert_eq!(
            refusal,
            "lock name \"a\\nb\" is not valid: it contains a control character; remove line breaks, tabs and other control characters"
        );
    }
}
