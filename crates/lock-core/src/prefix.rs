//! The prefix of lock names in a shared store.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Invalid, LockName};

/// The prefix of lock names in a store, separated by a colon: 1 to 100 bytes, or nothing.
///
/// It lets applications that share a store use the same names without conflict.
///
/// ```
/// let prefix: lock_core::Prefix = "shop".parse()?;
/// assert_eq!(prefix.key("invoice:42"), "shop:invoice:42");
/// assert!(prefix.name("invoice:42").is_none());
/// # Ok::<(), lock_core::Invalid>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(Option<String>);

impl Prefix {
    /// The longest prefix, in bytes. Chosen: as short as any sensible one, so that keys stay short.
    pub const BYTES_MAX: usize = 100;

    /// Whether there is no prefix.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The prefix without the colon, if there is one.
    pub fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The beginning of every key with this prefix.
    pub fn beginning(&self) -> String {
        self.0.as_ref().map_or_else(String::new, |prefix| format!("{prefix}:"))
    }

    /// The key of a lock in the store.
    pub fn key(&self, name: &str) -> String {
        self.beginning() + name
    }

    /// The lock of a key; `None` if the key is not a lock under this prefix.
    pub fn name(&self, key: &str) -> Option<LockName> {
        key.strip_prefix(self.beginning().as_str())?.parse().ok()
    }
}

impl FromStr for Prefix {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let problem = if text.is_empty() || text.len() > Self::BYTES_MAX {
            "it does not have 1 to 100 bytes"
        } else if text.chars().any(char::is_control) {
            "it contains a control character"
        } else if text == "leasehold" || text.starts_with(LockName::RESERVED_PREFIX) {
            "keys that begin with \"leasehold:\" are reserved"
        } else {
            return Ok(Self(Some(text.to_owned())));
        };
        Err(Invalid::new("prefix", text, problem, "give a short word such as prefix=shop, for keys such as shop:NAME"))
    }
}

impl TryFrom<String> for Prefix {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.0.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_names_behind_the_prefix() {
        let (bare, shop): (Prefix, Prefix) = (Prefix::default(), "shop".parse().unwrap());
        assert_eq!((bare.key("a").as_str(), shop.key("a").as_str()), ("a", "shop:a"));
        assert_eq!(bare.name("a").unwrap().as_str(), "a");
        assert_eq!(shop.name("shop:a").unwrap().as_str(), "a");
        assert!(shop.name("a").is_none() && shop.name("shop:").is_none() && bare.name("leasehold:a").is_none());
    }

    #[test]
    fn a_prefix_has_the_same_text_in_a_configuration() {
        let shop: Prefix = serde_json::from_str("\"shop\"").unwrap();
        assert_eq!((shop.is_none(), shop.as_deref()), (false, Some("shop")));
        assert_eq!(serde_json::to_string(&shop).unwrap(), "\"shop\"");
        assert_eq!((Prefix::default().is_none(), Prefix::default().as_deref()), (true, None));
        assert!(serde_json::from_str::<Prefix>("\"leasehold:x\"").is_err());
    }

    #[test]
    fn prefixes_are_bounded() {
        for bad in ["", "a\nb", "leasehold", "leasehold:x", &"x".repeat(101)] {
            assert!(bad.parse::<Prefix>().is_err(), "{bad:?}");
        }
        assert!("x".repeat(100).parse::<Prefix>().is_ok());
    }
}
