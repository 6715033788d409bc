//! What a `memory:` URL says.

use std::fmt;
use std::str::FromStr;

use lock_core::{Invalid, Reach, StoreConfig};
use serde::{Deserialize, Serialize};

/// Which store of this process to use.
///
/// `memory:` is a new store for every client; `memory:NAME` is the one store with that name in this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(description = "A store in this process, for tests."))]
#[serde(deny_unknown_fields)]
pub struct MemoryConfig {
    /// The name of the store, shared with all clients of this process that use the name. Without it, each client has its own.
    #[serde(default)]
    pub name: Option<StoreName>,
}

impl MemoryConfig {
    /// Reads `memory:` or `memory:NAME`.
    ///
    /// # Errors
    /// `Invalid` for another scheme, and for a name that is not allowed.
    pub fn from_url(url: &str) -> Result<Self, Invalid> {
        match url.split_once(':') {
            Some(("memory", "")) => Ok(Self::default()),
            Some(("memory", name)) => Ok(Self { name: Some(name.parse()?) }),
            // Only the scheme is shown: the URL of another store may hold a password.
            Some((scheme, _)) => Err(not_a_memory_url(scheme)),
            None => Err(not_a_memory_url("(no scheme)")),
        }
    }
}

impl StoreConfig for MemoryConfig {
    fn from_url(url: &str) -> Result<Self, Invalid> {
        Self::from_url(url)
    }

    fn shown(&self) -> String {
        format!("memory:{}", self.name.as_ref().map_or("", |name| &name.0))
    }

    fn reach(&self) -> Reach {
        Reach::Process
    }

    fn promise(&self) -> String {
        "at most one holder in this process".to_owned()
    }
}

fn not_a_memory_url(scheme: &str) -> Invalid {
    Invalid::new("memory URL", scheme, "its scheme is not \"memory\"", "write memory: or memory:NAME")
}

/// The name of a store in this process: 1 to 100 ASCII letters, digits, `-`, `_` and `.`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[A-Za-z0-9._-]{1,100}$")))]
#[serde(try_from = "String", into = "String")]
pub struct StoreName(String);

impl StoreName {
    /// The longest name, in bytes. Chosen: longer than any name that a person gives.
    pub const BYTES_MAX: usize = 100;
}

impl FromStr for StoreName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if (1..=Self::BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed) {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid::new(
            "name of a memory store",
            text,
            "it is not 1 to 100 ASCII letters, digits, \"-\", \"_\" and \".\"",
            "give a name such as memory:tests; a memory store takes no options",
        ))
    }
}

impl TryFrom<String> for StoreName {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<StoreName> for String {
    fn from(name: StoreName) -> Self {
        name.0
    }
}

impl fmt::Display for StoreName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_store_or_none() {
        assert_eq!(MemoryConfig::from_url("memory:").unwrap().name, None);
        assert_eq!(MemoryConfig::from_url("memory:tests").unwrap().name, Some("tests".parse().unwrap()));
        for bad in ["memory", "sqlite:x", "memory://x", "memory:a b", "memory:a?prefix=x", "memory:\n"] {
            assert!(MemoryConfig::from_url(bad).is_err(), "{bad:?}");
        }
        let refusal = MemoryConfig::from_url("redis://:secret@host").unwrap_err().to_string();
        assert!(!refusal.contains("secret"), "{refusal}");
    }

    #[test]
    fn the_configuration_is_strict() {
        let config: MemoryConfig = serde_json::from_str(r#"{"name":"tests"}"#).unwrap();
        assert_eq!(serde_json::to_string(&config).unwrap(), r#"{"name":"tests"}"#);
        assert_eq!(serde_json::from_str::<MemoryConfig>("{}").unwrap(), MemoryConfig::default());
        assert!(serde_json::from_str::<MemoryConfig>(r#"{"name":"a/b"}"#).is_err());
        assert!(serde_json::from_str::<MemoryConfig>(r#"{"nmae":"tests"}"#).is_err());
    }
}
