//! The hash slots of a cluster: in which of them a key is, and a tag that leads to each of them.

use std::fmt;
use std::sync::OnceLock;

use crc16::{State, XMODEM};

/// One of the parts into which a cluster divides its keys. All keys of a hash slot are at one primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HashSlot(u16);

impl HashSlot {
    /// How many of them each cluster has.
    pub(crate) const COUNT: u16 = 16_384;

    /// The hash slot of a key.
    ///
    /// # Source
    /// The specification of Redis Cluster: CRC16 of what is between the first `{` and the first `}` after it, or of the whole key if
    /// there is nothing in between.
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(State::<XMODEM>::calculate(hashed(key)) % Self::COUNT)
    }

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    /// Its number, from 0 to 16383.
    pub(crate) fn get(self) -> u16 {
        self.0
    }

    /// The smallest number whose decimal digits are in this hash slot.
    pub(crate) fn tag(self) -> u32 {
        static TAGS: OnceLock<Vec<u32>> = OnceLock::new();
        TAGS.get_or_init(tags).get(usize::from(self.0)).copied().unwrap_or_default()
    }
}

impl fmt::Display for HashSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The part of a key that decides in which hash slot it is.
fn hashed(key: &[u8]) -> &[u8] {
    let position = |bytes: &[u8], byte| bytes.iter().position(|other| *other == byte);
    let after = position(key, b'{').and_then(|open| key.get(open + 1..)).unwrap_or_default();
    let tag = position(after, b'}').and_then(|close| after.get(..close)).unwrap_or_default();
    if tag.is_empty() { key } else { tag }
}

/// The tag of each hash slot.
fn tags() -> Vec<u32> {
    let (mut tags, mut missing) = (vec![None; usize::from(HashSlot::COUNT)], HashSlot::COUNT);
    let mut number = 0_u32;
    while missing > 0 {
        let slot = HashSlot::of(number.to_string().as_bytes());
        if let Some(tag @ None) = tags.get_mut(usize::from(slot.get())) {
            *tag = Some(number);
            missing -= 1;
        }
        number += 1;
    }
    tags.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `CLUSTER KEYSLOT` says.
    #[test]
    fn a_key_is_in_the_hash_slot_of_its_tag_if_it_has_one() {
        for (key, slot) in [("123456789", 0x31c3), ("foo", 12182), ("", 0), ("somekey", 11058)] {
            assert_eq!(HashSlot::of(key.as_bytes()).get(), slot, "{key}");
        }
        let same = |key: &str, hashed: &str| HashSlot::of(key.as_bytes()) == HashSlot::of(hashed.as_bytes());
        assert!(
            same("a{foo}b", "foo") && same("{foo}{bar}", "foo") && same("a}{foo}}", "foo") && same("{{foo}", "{foo")
        );
        for whole in ["a{}{foo}", "a{foo", "a}foo{", "{}"] {
            assert_eq!(
                HashSlot::of(whole.as_bytes()).0,
                State::<XMODEM>::calculate(whole.as_bytes()) % HashSlot::COUNT,
                "{whole}"
            );
        }
    }

    #[test]
    fn each_hash_slot_has_the_smallest_tag_that_leads_to_it() {
        let tags = tags();
        assert_eq!(tags.len(), usize::from(HashSlot::COUNT));
        for (slot, tag) in tags.iter().enumerate() {
            assert_eq!(usize::from(HashSlot::of(tag.to_string().as_bytes()).get()), slot);
        }
        let mut smallest = std::collections::BTreeMap::new();
        for number in 0..=*tags.iter().max().unwrap() {
            smallest.entry(HashSlot::of(number.to_string().as_bytes())).or_insert(number);
        }
        assert!(smallest.into_values().eq(tags));
    }

    /// The tags are a part of the layout, and never change.
    #[test]
    fn tags_are_pinned() {
        let tags = [0, 1, 100, 8191, 12182, 16383].map(|slot| HashSlot(slot).tag());
        assert_eq!(tags, [3560, 22_179, 48_063, 42_163, 43_681, 39_296]);
    }
}
