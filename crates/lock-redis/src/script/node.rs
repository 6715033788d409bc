//! The requests to a node of a quorum. A seal is `RUN_ID:EPOCH`. A script that depends on one takes it as its first
//! argument, or only the run as `RUN_ID:`, and fails at a replica.

use super::{Many, Script};

/// A script that serves several locks as it serves one.
macro_rules! also_for_many {
    ($($part:literal),+; {$($numbers:tt)+}) => {{
        static MANY: Many = Many { script: Script::new(text!($($part),+)), $($numbers)+ };
        Script::with_many(text!($($part),+), &MANY)
    }};
}

/// Asks for a grant. Keys: node, lock. Arguments: seal; the lead, which is what the other keys of the lock begin with, before its own key;
/// `lh1:OWNER:`; wish; and in one ttl (ms), width, floor, channel (empty if no notification is wanted) and note.
///
/// Answers only the clock if the wish was granted, or token and clock, or value and `PTTL` of somebody else's hold,
/// or `abstains`.
pub(crate) static ACQUIRE: Script = also_for_many!(
    "guarded", "node/history", "node/acquire";
    { shared_keys: 1, shared: 2, same: 1, own: 2, step: 0 }
);

/// Acknowledges and renews leases. Keys: node, locks. Arguments: seal, and four for each lease: `lh1:OWNER:`, low,
/// high, ttl (ms). Answers one value for each: 1 for yes, 0 for not held, or a higher token: that of its grant, or
/// the first one of a later holder; or `abstains`.
pub(crate) static FENCE: Script = Script::new(text!("node/history", "node/fence"));

/// Gives up a hold or a claim. Keys: lock. Arguments: lead, `lh1:OWNER:` and, if a claim may still arrive, life of a tombstone (ms).
/// Answers 1 for a hold, or 0.
pub(crate) static RELEASE: Script = also_for_many!(
    "node/tell_one", "node/release";
    { shared_keys: 0, shared: 1, same: 0, own: 1, step: 0 }
);

/// What the node knows about itself. Keys: node. Arguments: `RUN_ID:`. Answers seal and pending if they count,
/// since (us), fence, longest (ms), members and `max_ttl` (ms) of its deployment, of the one that marked it, and of
/// the predecessor, and the number of the move; whether it has voted in its deployment; clock (us).
pub(crate) static LOOK: Script = Script::new(text!("clock", "node/history", "node/view"));

/// Makes it abstain, unless it already votes or abstains. Keys: node. Arguments: `RUN_ID:`, epoch, members,
/// `max_ttl` (ms). Answers as a look.
pub(crate) static MARK: Script = Script::new(text!("clock", "node/history", "node/mark", "node/view"));

/// Makes it vote, if it abstains under this seal. Keys: node. Arguments: seal, counter, longest (ms), number of
/// the last move, members, `max_ttl` (ms). Answers as a look.
pub(crate) static INSTALL: Script = Script::new(text!("clock", "node/history", "node/install", "node/view"));

/// Makes it abstain in another deployment. Keys: node. Arguments: seal, number of the move, members and
/// `max_ttl` (ms) of that one, of the one before, and of the one that was seen. Answers as a look.
pub(crate) static MOVE: Script = Script::new(text!("clock", "node/history", "node/move", "node/view"));

/// Records what was seen of members. Keys: those of the members. Arguments: how long to keep a record (ms), and for each
/// member the epoch that begins, with a `!` if the record is to start again, or nothing. Returns two values for each:
/// the recorded epoch, or nothing, and its age (us).
pub(crate) static RECORD: Script = Script::new(text!("clock", "node/record"));

/// Shows locks to operators. Keys: locks. Returns a pair for each: the value with a digest in place of the owner, a digest alone of a value
/// that is not ours, or nothing; and `PTTL`.
pub(crate) static SHOW: Script = Script::new(text!("node/show"));

/// Digests of the owners whose lease has a token, or was revoked by it. Keys: lock, what is remembered of revocations by that token.
/// Arguments: token.
pub(crate) static OWNERS: Script = Script::new(text!("node/owners"));

/// Ends the lease of an owner, and refuses its late claims. Keys: node, lock. Arguments: lead, token that names it, note of who does it, how long to remember
/// it (ms), and digests of owners. Returns 1 if one of them held the lock, or 0.
pub(crate) static REVOKE: Script = Script::new(text!("clock", "node/tell_one", "node/revoke"));

/// What a connection to a node loads on connecting.
pub(crate) static ALL: [&Script; 11] =
    [&ACQUIRE, &FENCE, &RELEASE, &LOOK, &MARK, &INSTALL, &MOVE, &RECORD, &SHOW, &OWNERS, &REVOKE];
