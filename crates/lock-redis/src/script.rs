//! What Redis runs: one script for each verb, atomic by nature. The texts are in `scripts/`, the contract in
//! `docs/wire.md`.
//!
//! Rules of all scripts: the lock's key is declared, and so is the counter; the others may be derived from them, which costs less than to
//! pass them, and keeps them in the same hash slot of a cluster; the type of the lock's key is checked before anything is written; the
//! token is drawn before the lock is set, since nothing is rolled back; expiries are set by the same `SET`; numbers are
//! written with `%.0f`, which is exact below 2^53; the first write of a release is one that runs in a full server too
//! (`LPOP`, `HDEL`, `ZREM`, `DEL`) and lets what follows run; how much one script does has a bound, however many hold or wait, because
//! other clients wait for it. A script that would pass over too many dead waiters, or notify too many, answers the error `PASSING`
//! instead, and is sent again.

use std::sync::OnceLock;

/// A script, known to the server by its hash once it is loaded.
pub(crate) struct Script {
    text: &'static str,
    hash: OnceLock<String>,
    many: Option<&'static Many>,
}

/// A script that runs one verb for several locks, and replies with a list: one reply for each lock.
///
/// Its keys are the shared ones, and then the locks. Its arguments are first the shared ones. Then comes each argument that every lock has
/// of its own, for all locks before the next such argument. Those that may be the same for all follow in the same way; one that is the
/// same is passed once.
pub(crate) struct Many {
    pub(crate) script: Script,
    /// How many of the first keys are shared.
    pub(crate) shared_keys: usize,
    /// How many of the first arguments are shared. Where they differ, they are numbers, and the highest one counts.
    pub(crate) shared: usize,
    /// How many of them have to be the same for all.
    pub(crate) same: usize,
    /// How many arguments each lock has of its own.
    pub(crate) own: usize,
    /// If the reply is one number, it answers the first request, and the answer to each later one is higher by this much.
    pub(crate) step: i64,
}

impl Script {
    const fn new(text: &'static str) -> Self {
        Self { text, hash: OnceLock::new(), many: None }
    }

    const fn with_many(text: &'static str, many: &'static Many) -> Self {
        Self { text, hash: OnceLock::new(), many: Some(many) }
    }

    /// The script for several locks, if there is one.
    pub(crate) fn many(&self) -> Option<&'static Many> {
        self.many
    }

    pub(crate) fn text(&self) -> &'static str {
        self.text
    }

    pub(crate) fn hash(&self) -> &str {
        self.hash.get_or_init(|| redis::Script::new(self.text).get_hash().to_owned())
    }
}

/// What a token must be above, besides the tokens drawn so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Nothing: the connection verified the counter first.
    Stored,
    /// The server's clock: the connection is not ours, so nothing was verified, or the server has replicas.
    Clock,
}

/// A script that draws tokens, for each way of counting.
pub(crate) struct Drawing {
    stored: Script,
    clock: Script,
}

impl Drawing {
    pub(crate) fn counting(&'static self, counting: Counting) -> &'static Script {
        match counting {
            Counting::Stored => &self.stored,
            Counting::Clock => &self.clock,
        }
    }
}

/// The text of a script, of its parts.
macro_rules! text {
    ($($part:literal),+) => {
        concat!($(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/scripts/", $part, ".lua"))),+)
    };
}

/// The text of a script that draws tokens.
macro_rules! drawing_text {
    ($counting:literal, $($part:literal),+) => {
        concat!(
            "local counter, dwell, lasts, counting, LAST_TOKEN = KEYS[1], KEYS[2], nil, '",
            $counting,
            "', 9007199254740991\n",
            "local tombstones = string.sub(counter, 1, -8) .. 'tombstones'\n",
            text!($($part),+)
        )
    };
}

macro_rules! drawing {
    ($($part:literal),+) => {
        Drawing {
            stored: Script::new(drawing_text!("stored", $($part),+)),
            clock: Script::new(drawing_text!("clock", $($part),+)),
        }
    };
    ($($part:literal),+; many $numbers:tt: $($of_many:literal),+) => {
        Drawing {
            stored: with_many!("stored", $($part),+; $numbers: $($of_many),+),
            clock: with_many!("clock", $($part),+; $numbers: $($of_many),+),
        }
    };
}

macro_rules! with_many {
    ($counting:literal, $($part:literal),+; {$($numbers:tt)+}: $($of_many:literal),+) => {{
        static MANY: Many = Many { script: Script::new(drawing_text!($counting, $($of_many),+)), $($numbers)+ };
        Script::with_many(drawing_text!($counting, $($part),+), &MANY)
    }};
}

// After the macros, which it uses.
pub(crate) mod node;

/// Asks for a lease. Keys: counter, dwell, lock. Arguments: floor; how long a dwell lasts at least (ms); the lead, which is
/// what the other keys of the lock begin with, before its own key; `lh1:OWNER:`; and in one ttl (ms), width, channel (empty if the claim
/// does not queue) and note.
///
/// Answers the low token of a fresh grant, or `granted` and the tokens that the owner already has, or `held`, value,
/// `PTTL`, or `queued`, value, `PTTL`, position, place (ms), and 1 if nobody listens on the channel, or `otherkind` and the
/// limit that is in use, or `dwells` and for how long (ms) no free lock is granted.
pub(crate) static ACQUIRE: Drawing = drawing!(
    "claim", "clock", "place", "members", "dwell", "queue", "tombstone", "sharing", "sweep", "queue_up", "acquire_shared", "acquire", "alone";
    many { shared_keys: 2, shared: 3, same: 0, own: 1, step: 1 }:
    "claims", "clock", "place", "members", "dwell", "queue", "tombstone", "sharing", "sweep", "queue_up", "acquire_shared", "acquire", "guarded",
    "claims_left"
);

/// Asks for a lease that others may share. Keys: those of an acquire. Arguments: those of an acquire, the limit, and `barging` for a claim
/// that may be granted past the waiters.
///
/// Answers like an acquire, with these differences. A grant is `granted`, low and high token, slots, and 1 if others wait; the
/// limit in force follows if the claim has another one. `queued` ends with the last token that was drawn. `above` and the limit
/// mean that the claim asks for more permits than there are.
pub(crate) static SHARE: Drawing = drawing!(
    "share",
    "clock",
    "place",
    "members",
    "dwell",
    "queue",
    "tombstone",
    "sharing",
    "sweep",
    "queue_up",
    "acquire_shared",
    "shared"
);

/// Asks for a lease that ends another one of the same client. Keys: those of an acquire. Arguments: those of an acquire, limit,
/// `lh1:OTHER:`, life of that owner's tombstone (ms).
///
/// Answers like a claim for a lease that others may share; never `queued`.
pub(crate) static REPLACE: Drawing =
    drawing!("clock", "place", "members", "dwell", "queue", "tombstone", "sharing", "replace");

/// Gives up a hold or a place, or ends the time for which the owner kept the lock. Keys: counter, dwell, lock. Arguments: lead,
/// `lh1:OWNER:`; and if it is not for many, `valid` or `doubtful`, and if a claim may still arrive, the life of a tombstone (ms). During a
/// dwell, a hold that is doubtful is not handed over.
///
/// Answers 1 for a hold or a kept lock, 2 for a place, 0 for none of them.
pub(crate) static RELEASE: Drawing = drawing!(
    "part", "clock", "place", "members", "dwell", "queue", "tombstone", "sharing", "give_up", "release";
    many { shared_keys: 2, shared: 1, same: 0, own: 1, step: 0 }:
    "releases", "clock", "place", "members", "dwell", "queue", "sharing", "give_up", "guarded", "releases_left"
);

/// Gives up a hold, but lets nobody have the lock for a while; or a place. Keys: those of a release. Arguments: lead, `lh1:OWNER:`,
/// `lh1:KEPT:`, how long (ms), and if a claim may still arrive, the life of a tombstone (ms). Answers 1 for a hold, and for a lock that is
/// kept already, 2 for a place, 0 for none of them.
pub(crate) static KEEP: Drawing =
    drawing!("clock", "place", "members", "dwell", "queue", "tombstone", "sharing", "give_up", "keep");

/// Sets the limit of a semaphore, or looks at it. Keys: counter, dwell, lock, queue, waiters, the limit that was set. Arguments: `set` or
/// `look`, the limit that the client knows, the new one, and how long to remember it (ms).
///
/// Answers `usage`, the limit in force and how many permits are held, or `otherkind` and the limit that is in use.
pub(crate) static LIMIT: Drawing = drawing!("clock", "place", "members", "dwell", "queue", "sharing", "sweep", "limit");

/// Ends the lease that spans a token. Keys: counter, dwell, lock, queue, waiters. Arguments: token, who does it, and how long to remember
/// that at least (ms). Answers 1 or 0.
pub(crate) static REVOKE: Drawing = drawing!("clock", "place", "members", "dwell", "queue", "sharing", "revoke");

/// Renews leases. Keys: locks. Arguments: how many; what the keys of revocations begin with, up to that of the lock; `lh1:OWNER:LOW:HIGH:`
/// of each; and each ttl (ms) with the number of the last lease in a row that has it, from 1. Answers for each lease that is lost its
/// number, from 1, and who revoked it, or nothing.
pub(crate) static RENEW: Script = Script::new(text!("leases", "renew"));

/// Renews leases, some of which may share their locks. Keys: locks, then what their waiters ask for. Arguments: the same, but
/// `lh2:OWNER:LOW:HIGH:` for one that may share. Answers two values for each: 0 if it is lost, 1 if not, 2 if others are known to wait;
/// and who revoked it, if it is lost and somebody did.
pub(crate) static RENEW_ANY: Script = Script::new(text!("clock", "members", "living", "leases", "renew_any"));

/// Checks a lease that may share its lock. Keys: lock, waiters. Arguments: owner, `LOW:HIGH:`. Answers 1 or 0, or the value of a lock
/// that is held exclusively.
pub(crate) static FENCE: Script = Script::new(text!("clock", "members", "living", "fence"));

/// Looks at locks: at all, or at the first ones if many wait for them. Keys: locks, then what their waiters ask for; or one lock, of which only the first three values are answered. Answers
/// three values for each of these: the value (nil for none, 0 for another type), `PTTL`, and how many waiters live. Then limit and
/// width of each of the first waiters, if any of them shares. Then, if the lock is shared, its limit, how many leases there
/// are, and for the first of them value, time left (ms) and slots.
pub(crate) static LOOK: Script = Script::new(text!("clock", "place", "members", "look"));

/// A request about a latch. Keys: latch, the ids of one generation, those of the other one, inboxes. Arguments: `arrive`, the
/// lock's key, ttl (ms), id and call; or `expect`, key, ttl, count; or `reset`, key, ttl, generation; or `look`, key, channel
/// (`-` for none).
///
/// The times of the inboxes are in a key beside them. Answers generation, expected, arrived, the latest complete generation (0 for none), and 1 if the client will be notified, 2 if
/// nobody listens on the channel.
pub(crate) static LATCH: Script = Script::new(text!("clock", "place", "latch"));

/// Verifies the counter for an incarnation of the server, and begins a dwell if leases may have been forgotten. Keys: counter,
/// marker, dwell, longest ttl. Arguments: the incarnation; the marker as it was read, and only that one is replaced; `unpromoted` if
/// the history has no second name, or anything else; the longest ttl of this client, and how much longer a dwell lasts (ms).
/// Answers 1 if the marker was of another incarnation, and 0 otherwise; and the longest ttl of any client.
pub(crate) static VERIFY: Script = Script::new(text!("clock", "verify"));

/// The same for one hash slot of a cluster, long after the greeting. Its last key is never there. Arguments: the run; the longest ttl of this client, and how
/// much longer a dwell lasts (ms).
pub(crate) static VERIFY_SLOT: Script = Script::new(text!("clock", "verify_slot", "verify"));

/// Ends the dwell that was marked. Keys: dwell, marker. Arguments: the mark, and the incarnation in which it was made. Answers the
/// dwell's `PTTL`, or -3 if it is another dwell.
pub(crate) static END_DWELL: Script = Script::new(text!("end_dwell"));

/// The scripts that our connections load on connecting, where tokens are drawn like this: all that acquire or release, because a request
/// that had to be sent again would be overtaken, and what else is most likely needed.
pub(crate) fn own(counting: Counting) -> [&'static Script; 9] {
    let [acquire, share, replace, release, keep] =
        [&ACQUIRE, &SHARE, &REPLACE, &RELEASE, &KEEP].map(|script| script.counting(counting));
    [acquire, share, replace, release, keep, &RENEW, &RENEW_ANY, &FENCE, &LOOK]
}
