//! The key of a value and that of its fence.

use lock_core::{Invalid, LockName};

/// Both are in the same slot of a cluster, and no two values have one fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) value: String,
    pub(super) fence: String,
}

impl Keys {
    pub(super) fn of(key: &str) -> Result<Self, Invalid> {
        let refuse = |problem, remedy| Err(Invalid::new("key", key, problem, remedy));
        if key.is_empty() {
            return refuse("it is empty", "give the key of the value");
        }
        if key.starts_with(LockName::RESERVED_PREFIX) {
            return refuse("keys that begin with \"leasehold:\" are reserved", "choose a key that begins differently");
        }
        let fence =
            if has_hash_tag(key) { format!("leasehold:fence:{key}") } else { format!("leasehold:{{{key}}}:fence") };
        Ok(Self { value: key.to_owned(), fence })
    }
}

/// Whether a part of the key alone decides about its slot: what is between the first `{` and the next `}`, if anything.
fn has_hash_tag(key: &str) -> bool {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.is_some_and(|(tag, _)| !tag.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(key: &str) -> String {
        Keys::of(key).unwrap().fence
    }

    #[test]
    fn a_fence_has_the_tag_of_its_value() {
        assert_eq!(fence("config:7"), "leasehold:{config:7}:fence");
        assert_eq!(fence("{user:7}:cart"), "leasehold:fence:{user:7}:cart");
        assert_eq!(fence("a{b"), "leasehold:{a{b}:fence");
        assert_ne!(fence("{x}"), fence("x"));
    }

    #[test]
    fn a_key_that_is_empty_or_reserved_is_refused() {
        for key in ["", "leasehold:{a}:fence", "leasehold:counter"] {
            assert_eq!(Keys::of(key).unwrap_err().what(), "key");
        }
        assert!(Keys::of(" späť\n}").is_ok());
    }
}
