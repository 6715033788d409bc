//! What Redis runs: one script for each verb, atomic by nature. The texts are in `scripts/`, the contract in
//! `docs/wire.md`.
//!
//! Rules of all scripts: every key is declared; the type of the lock's key is checked before anything is written; the
//! token is drawn before the lock is set, since nothing is rolled back; expiries go with the same `SET`; numbers are
//! written with `%.0f`, which is exact below 2^53; the first write of a release is one that runs in a full server too
//! (`LPOP`, `HDEL`, `DEL`) and lets what follows run.

use std::sync::OnceLock;

/// A script, known to the server by its hash once it was loaded.
pub(crate) struct Script {
    text: &'static str,
    hash: OnceLock<String>,
}

impl Script {
    const fn new(text: &'static str) -> Self {
        Self { text, hash: OnceLock::new() }
    }

    pub(crate) fn text(&self) -> &'static str {
        self.text
    }

    pub(crate) fn hash(&self) -> &str {
        self.hash.get_or_init(|| redis::Script::new(self.text).get_hash().to_owned())
    }
}

/// What a token is drawn above, beside the tokens drawn so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Nothing: every connection verified the counter before it carried anything.
    Stored,
    /// The server's clock: the connections are not ours, and nobody verified anything.
    #[cfg(any(feature = "async", feature = "r2d2"))]
    Clock,
}

/// A script that draws tokens, for each way of counting.
pub(crate) struct Drawing {
    stored: Script,
    #[cfg(any(feature = "async", feature = "r2d2"))]
    clock: Script,
}

impl Drawing {
    pub(crate) fn counting(&'static self, counting: Counting) -> &'static Script {
        match counting {
            Counting::Stored => &self.stored,
            #[cfg(any(feature = "async", feature = "r2d2"))]
            Counting::Clock => &self.clock,
        }
    }
}

/// The text of a script, of its parts.
macro_rules! text {
    ($($part:literal),+) => { concat!($(include_str!(concat!("scripts/", $part, ".lua"))),+) };
}

/// The text of a script that draws tokens.
macro_rules! drawing_text {
    ($counting:literal, $($part:literal),+) => {
        concat!("local counting, LAST_TOKEN = '", $counting, "', 9007199254740991\n", text!($($part),+))
    };
}

macro_rules! drawing {
    ($($part:literal),+) => {
        Drawing {
            stored: Script::new(drawing_text!("stored", $($part),+)),
            #[cfg(any(feature = "async", feature = "r2d2"))]
            clock: Script::new(drawing_text!("clock", $($part),+)),
        }
    };
}

/// Asks for a lease. Keys: lock, counter, tombstone, queue, waiters.
/// Arguments: `lh1:OWNER:`, ttl (ms), width, floor, note, inbox (nothing where the claim does not queue).
///
/// Answers the low token of a fresh grant, or `granted` and the tokens that the owner has already, or `held`, value,
/// `PTTL`, or `queued`, value, `PTTL`, position, place (ms), and 1 where nobody listens behind the inbox.
pub(crate) static ACQUIRE: Drawing = drawing!("claim", "clock", "queue", "acquire");

/// Gives up a hold or a place. Keys: lock, counter, queue, waiters and, where a claim may still arrive, tombstone.
/// Arguments: `lh1:OWNER:`, life of the tombstone (ms). Answers 1 for a hold, 2 for a place, 0 for neither.
pub(crate) static RELEASE: Drawing = drawing!("part", "clock", "queue", "release");

/// Ends the lease that spans a token. Keys: lock, counter, queue, waiters. Arguments: token. Answers 1 or 0.
pub(crate) static REVOKE: Drawing = drawing!("clock", "queue", "revoke");

/// Renews leases. Keys: locks. Arguments, two for each: `lh1:OWNER:LOW:HIGH:`, ttl (ms).
/// Answers the numbers of those that are lost, from 1.
pub(crate) static RENEW: Script = Script::new(text!("renew"));

/// Looks at locks. Keys: locks, then what their waiters ask for. Answers three for each: the value (nil for none, 0 for
/// another type), `PTTL`, and how many places are not over.
pub(crate) static LOOK: Script = Script::new(text!("clock", "look"));

/// Verifies the counter against the server's identity. Keys: counter, marker. Arguments: the server's `run_id`.
/// Answers 1 where the server is not the one that was last verified.
pub(crate) static VERIFY: Script = Script::new(text!("clock", "verify"));

/// The scripts to load when a connection of ours is opened: all that it may need.
pub(crate) static OWN: [&Script; 6] = [&ACQUIRE.stored, &RELEASE.stored, &REVOKE.stored, &RENEW, &LOOK, &VERIFY];
