//! Owners of leases.

use std::array;
use std::fmt;
use std::str::FromStr;

use crate::Invalid;

/// The identity of one lease: 16 random bytes, made before its first request.
///
/// Anyone who knows the owner can renew and release the lease, so it is a secret: `Debug` shows the first two bytes
/// only, and it must come from the operating system's random source. Never a host, a thread or a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner([u8; 16]);

impl Owner {
    /// Makes an owner from bytes of a cryptographic random source.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The owner under which a store keeps a lock that this owner has released for later. It is derived, so that a repeated
    /// release finds the lock again, and nothing else that this owner asks for does.
    #[must_use]
    pub fn kept(self) -> Self {
        Self(self.0.map(|byte| !byte))
    }

    /// The bytes themselves, which are the secret.
    pub(crate) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Writes the owner in full as 32 hexadecimal digits, for the wire only.
    pub fn to_wire(self) -> String {
        // `format!` takes several times as long, and each request needs this.
        let digits: [u8; 32] = array::from_fn(|digit| {
            let byte = usize::from(self.0[digit / 2]);
            HEX[if digit % 2 == 0 { byte >> 4 } else { byte & 15 }]
        });
        String::from_utf8_lossy(&digits).into_owned()
    }
}

const HEX: [u8; 16] = *b"0123456789abcdef";

impl FromStr for Owner {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let digits_only = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(number) if digits_only => Ok(Self(number.to_be_bytes())),
            _ => Err(Invalid::new(
                "owner",
                "(hidden)",
                "it is not 32 hexadecimal digits",
                "pass on what the store holds",
            )),
        }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:02x}{:02x}..)", self.0[0], self.0[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_form_comes_back() {
        let owner = Owner::from_random([0xab; 16]);
        assert_eq!(owner.to_wire().parse::<Owner>().unwrap(), owner);
        assert!("+b".repeat(16).parse::<Owner>().is_err());
        assert!("ab".parse::<Owner>().is_err());
    }

    #[test]
    fn a_lock_is_kept_under_another_owner_which_always_is_the_same() {
        let owner = Owner::from_random([0xab; 16]);
        assert_ne!(owner.kept(), owner);
        assert_eq!(owner.kept(), Owner::from_random([0xab; 16]).kept());
    }

    #[test]
    fn debug_does_not_give_the_owner_away() {
        assert_eq!(format!("{:?}", Owner::from_random([0xab; 16])), "Owner(abab..)");
    }
}
