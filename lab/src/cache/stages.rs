//! The stages: how callers get values, what goes wrong, and why.

use super::caller::Method;
use super::shelf::Absent;
use super::stage::{Missing, Stage};
use crate::shared::story::Promise;

/// By how much each ttl is shortened at most.
const JITTER_PERCENT: u8 = 50;

/// The story.
pub(crate) const STAGES: [Stage; 8] = [
    Stage {
        label: "no lock",
        title: "Breakdown: a value that all callers ask for has expired. Each of them calls the database.",
        method: Method::NoLock,
        missing: Missing::Expired,
        promise: Promise::Nothing,
        why: "All of them look into the cache before the first one has put the value there.",
    },
    Stage {
        label: "lock, one look",
        title: "Each caller that misses acquires a lock before it calls the database.",
        method: Method::OneLook,
        missing: Missing::Expired,
        promise: Promise::Nothing,
        why: "The calls no longer run at the same time, but none is saved: each caller has looked before it waited for the lock.",
    },
    Stage {
        label: "single flight",
        title: "leasehold: one caller computes, and the others wait for its value.",
        method: Method::SingleFlight,
        missing: Missing::Expired,
        promise: Promise::Right,
        why: "The caller with the lock looks again before it computes, and those who waited look again, all together.",
    },
    Stage {
        label: "old value",
        title: "leasehold: the same, but an expired value can be used for some time (stale_for).",
        method: Method::Stale,
        missing: Missing::Outdated,
        promise: Promise::Right,
        why: "One caller computes. The others do not wait: they get the old value at once.",
    },
    Stage {
        label: "absent, not cached",
        title: "Penetration: all callers ask for something that does not exist. Only what exists is cached.",
        method: Method::SingleFlight,
        missing: Missing::Nonexistent(Absent::NotCached),
        promise: Promise::Nothing,
        why: "The cache never has it, so each caller calls the database, although one after the other.",
    },
    Stage {
        label: "absent, cached",
        title: "leasehold: that it does not exist is cached as well (absent_ttl).",
        method: Method::SingleFlight,
        missing: Missing::Nonexistent(Absent::Cached),
        promise: Promise::Right,
        why: "The first caller puts into the cache that there is nothing.",
    },
    Stage {
        label: "same ttl",
        title: "Avalanche: each caller has a value of its own. All were cached at the same time, for 60 seconds.",
        method: Method::SingleFlight,
        missing: Missing::Many,
        promise: Promise::Nothing,
        why: "All values expire in the same second. Single flight does not help: each value is computed once.",
    },
    Stage {
        label: "shortened ttl",
        title: "leasehold: the same, but each ttl is shortened at random, by half at most (jitter_percent).",
        method: Method::Jitter(JITTER_PERCENT),
        missing: Missing::Many,
        promise: Promise::Right,
        why: "The values expire over 30 seconds, so only a few calls come in each second.",
    },
];
