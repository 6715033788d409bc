//! A public name for one turn of one owner.

use std::fmt;
use std::str::FromStr;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use crate::{FencingToken, Invalid, Owner};

/// A value that no other holder of any lock has, to be stored in public: 16 bytes, shown as 32 hexadecimal digits.
///
/// It is for resources that can compare two values, but cannot tell which of two is higher: a compare-and-set, an `If-Match`. A
/// holder first puts its id there, and then writes only where its id still is. Where a resource can compare numbers, check the
/// [`FencingToken`] instead: it also keeps out a holder that was paused before it put its id there.
///
/// ```text
/// UPDATE document SET editor = $id WHERE id = 7;                                -- first
/// SELECT text FROM document WHERE id = 7;
/// UPDATE document SET text = $text WHERE id = 7 AND editor = $id;               -- no row: another holder has put its id there, so stop
/// ```
///
/// All holds under one lease with one token, such as those of readers, have the same id. It tells nothing about the
/// owner, which is a secret.
///
/// # Source
/// RFC 8439: the start of a block of the ChaCha20 key stream. The key is the owner, which has 128 random bits, and a constant for
/// this use; the number of the block is the token. Comparing a unique value: S. Sanfilippo, "Is Redlock safe?" (2016).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId([u8; 16]);

/// The second half of the key. No other use of an owner has the same.
const USE: [u8; 16] = *b"leasehold id  v1";

impl LeaseId {
    /// The id of a turn with this token under a lease of this owner.
    pub fn of(owner: Owner, token: FencingToken) -> Self {
        let mut key = [0; 32];
        key[..16].copy_from_slice(owner.bytes());
        key[16..].copy_from_slice(&USE);
        let mut stream = ChaCha20Rng::from_seed(key);
        stream.set_block_pos(token.get());
        let mut id = [0; 16];
        stream.fill_bytes(&mut id);
        Self(id)
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseId({self})")
    }
}

impl FromStr for LeaseId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let digits_only = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(number) if digits_only => Ok(Self(number.to_be_bytes())),
            _ => Err(Invalid::new(
                "lease id",
                text,
                "it is not 32 hexadecimal digits",
                "pass on what the resource has stored",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn id(owner: u8, token: u64) -> LeaseId {
        LeaseId::of(Owner::from_random([owner; 16]), FencingToken::new(token).unwrap())
    }

    /// Computed by another implementation of ChaCha20, with the first half of its nonce as the high half of the block's number.
    #[test]
    fn it_is_a_block_of_the_key_stream() {
        assert_eq!(id(1, 7).to_string(), "ea2a3eaa68c2064dbc6df645878ccc20");
        assert_eq!(id(1, FencingToken::MAX.get()).to_string(), "fc0fda9c4aac89ff97f0c9eca321efb7");
    }

    #[test]
    fn each_owner_and_each_token_has_another_one() {
        let ids: HashSet<_> = (0..50).flat_map(|owner| (1..50).map(move |token| id(owner, token))).collect();
        assert_eq!(ids.len(), 50 * 49);
    }

    #[test]
    fn the_text_comes_back_and_does_not_show_the_owner() {
        let owner = Owner::from_random([0xab; 16]);
        let id = LeaseId::of(owner, FencingToken::MAX);
        assert_eq!(id.to_string().parse::<LeaseId>().unwrap(), id);
        assert!(!format!("{id:?}").contains("abab"));
        for bad in ["", "ab", &"+b".repeat(16)] {
            assert!(bad.parse::<LeaseId>().is_err());
        }
    }
}
