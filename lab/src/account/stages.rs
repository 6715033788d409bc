//! The stages: the lock of each, what goes wrong, and why.

use std::time::Duration;

use leasehold::Fairness;

use super::cast::Cast;
use super::cues::{AT_MOST, Did};
use super::gate::Method;
use super::leased::Scope;
use super::line;
use super::memory::Shared;
use super::mishap::{Before, Blow, Mishap};
use super::naive::{Recipe, Release, Renew, Set};
use super::stage::{Accounts, Stage};
use super::worker::{Check, Second};
use crate::shared::story::Promise;

/// The ttl of the leases: long enough for a busy machine to renew them in time, short enough to wait for its end.
const TTL: Duration = Duration::from_millis(1500);
/// A holder that works for one and a half times the ttl, unless another worker enters.
const PAST_TTL: Mishap = Mishap::Slow(Did::Read, Duration::from_millis(2250));
/// A holder that works until another worker is inside, too.
const SLOW: Mishap = Mishap::Slow(Did::Read, AT_MOST);

/// A stage in which nothing is locked, and the first worker is slow. The others say how they differ.
const PLAIN: Stage = Stage {
    label: "no lock",
    title: "Nothing keeps the workers apart.",
    accounts: Accounts::One,
    method: Method::None,
    check: Check::None,
    cast: Cast::FirstAhead,
    mishap: SLOW,
    second: Second::Usual,
    promise: Promise::Nothing,
    why: "Workers read the same balance, and each write overwrites the others.",
};

const NAIVE: Recipe = Recipe { set: Set::IfAbsentWithExpiry, renew: Renew::Never, release: Release::Delete };

const fn leasehold(scope: Scope) -> Method {
    Method::Lease { ttl: TTL, scope }
}

/// The story.
pub(crate) const STAGES: [Stage; 20] = [
    PLAIN,
    Stage {
        label: "new lock each time",
        title: "Each deposit locks a lock in memory, which it has just made.",
        method: Method::Memory(Shared::Never),
        why: "Nobody else has this lock, so it is always free. A lock protects only if all workers use the same one.",
        ..PLAIN
    },
    Stage {
        label: "lock in memory",
        title: "The workers of each process share a lock in its memory. There are two processes.",
        method: Method::Memory(Shared::InProcess),
        cast: Cast::TwoProcesses,
        why: "The lock keeps the workers of one process apart, but the other process has a lock of its own.",
        ..PLAIN
    },
    Stage {
        label: "check, then set",
        title: "The lock is a key in the store. A worker checks whether it exists, and if not, sets it: two requests.",
        method: Method::Naive(Recipe { set: Set::AfterLook, ..NAIVE }),
        cast: Cast::Together,
        why: "Between the check and the set, others check, too: all of them find the lock free, and all take it.",
        ..PLAIN
    },
    Stage {
        label: "no expiry",
        title: "SETNX: a worker sets the key if it does not exist, in one request. The process of the first holder is killed.",
        method: Method::Naive(Recipe { set: Set::IfAbsent, ..NAIVE }),
        cast: Cast::WithoutFirst,
        mishap: Mishap::Strike(Blow::Kill, Before::Write),
        why: "Only one worker is inside at a time, but the lock of the killed holder is never released: all others wait forever.",
        ..PLAIN
    },
    Stage {
        label: "expiry set later",
        title: "SETNX, then EXPIRE: two requests. The process of the first holder is killed between them.",
        method: Method::Naive(Recipe { set: Set::IfAbsentThenExpiry, ..NAIVE }),
        cast: Cast::WithoutFirst,
        mishap: Mishap::Strike(Blow::Kill, Before::Expiry),
        why: "The lock would have expired after half a second, but the request that says so was never sent.",
        ..PLAIN
    },
    Stage {
        label: "with expiry",
        title: "SET NX PX: the key expires after half a second. The first holder works longer than that, and then deletes the key.",
        method: Method::Naive(NAIVE),
        second: Second::Until(Did::Leave),
        why: "The lock expires while the slow holder works. It continues alongside the next holder, and then deletes a lock \
              that is no longer its own.",
        ..PLAIN
    },
    Stage {
        label: "check, then delete",
        title: "GET, compare, DEL: a worker deletes the key only if it is its own, in two requests. The first holder is \
                suspended between them, until another worker has the lock.",
        method: Method::Naive(Recipe { release: Release::LookThenDelete, ..NAIVE }),
        cast: Cast::FirstAmong,
        mishap: Mishap::Strike(Blow::Stop, Before::Delete),
        second: Second::Until(Did::Read),
        why: "The lock was its own when it checked. It expires before the delete, which hits the lock of the next holder, \
              and a third worker enters.",
        ..PLAIN
    },
    Stage {
        label: "checked release",
        title: "A script compares and deletes the key in one request. The first holder works longer than the expiry.",
        method: Method::Naive(Recipe { release: Release::DeleteOwn, ..NAIVE }),
        why: "No worker deletes another's lock any more, but the slow holder still works alongside the next one after its \
              own lock has expired.",
        ..PLAIN
    },
    Stage {
        label: "blind watchdog",
        title: "A thread of the holder gives the key a new expiry from time to time, without looking at its owner. The \
                first holder is suspended until another worker has the lock. Then its thread renews once more, and it \
                goes on.",
        method: Method::Naive(Recipe { renew: Renew::AnyOwner, release: Release::DeleteOwn, ..NAIVE }),
        cast: Cast::FirstAmong,
        mishap: Mishap::Strike(Blow::Stop, Before::Check),
        second: Second::Until(Did::Leave),
        why: "The renewal succeeds, but what it renews is the lock of another worker. So the first holder believes that \
              it still has the lock, and if the other one crashed, its lock would not expire.",
        ..PLAIN
    },
    Stage {
        label: "renewed lease",
        title: "leasehold, as it comes. The first holder works for one and a half times the ttl.",
        method: leasehold(Scope::Account),
        mishap: PAST_TTL,
        promise: Promise::Right,
        why: "The lease is renewed in the background for as long as its holder runs, however slow it is. A renewal names \
              the owner.",
        ..PLAIN
    },
    Stage {
        label: "lock per deposit",
        title: "leasehold, but the lock is named after the deposit, not after the account.",
        method: leasehold(Scope::Deposit),
        why: "Nobody else uses this name, so the lock is always free.",
        ..PLAIN
    },
    Stage {
        label: "one lock for all",
        title: "leasehold, with one lock for all accounts. Now each worker pays into an account of its own.",
        accounts: Accounts::OneEach,
        method: leasehold(Scope::Everything),
        mishap: Mishap::Slow(Did::Wait, AT_MOST),
        promise: Promise::Right,
        why: "All accounts are right, but workers wait for each other although their deposits do not conflict.",
        ..PLAIN
    },
    Stage {
        label: "lock per account",
        title: "The same with a lock for each account. The first deposit takes until another worker is inside, too.",
        accounts: Accounts::OneEach,
        method: leasehold(Scope::Account),
        promise: Promise::Right,
        why: "Only deposits to the same account exclude each other, so here nobody waits.",
        ..PLAIN
    },
    Stage {
        label: "fair",
        title: "leasehold, with a read lock for those who look at the balance. While one worker looks, the second comes to \
                pay in, and then all others come to look.",
        method: Method::Lease { ttl: line::TTL, scope: Scope::Account },
        cast: Cast::InLine(Fairness::Fair),
        mishap: Mishap::None,
        promise: Promise::Right,
        why: "First come, first served: those who look wait behind the one who pays in, although they could join the reader.",
        ..PLAIN
    },
    Stage {
        label: "barging",
        title: "The same, but those who look are barging: they enter as soon as it is possible.",
        method: Method::Lease { ttl: line::TTL, scope: Scope::Account },
        cast: Cast::InLine(Fairness::Barging),
        mishap: Mishap::None,
        promise: Promise::Right,
        why: "They wait less, but as long as barging readers come, the one who pays in does not get its turn.",
        ..PLAIN
    },
    Stage {
        label: "suspended",
        title: "leasehold. The first holder is suspended after its last check of the lease, just before its write.",
        method: leasehold(Scope::Account),
        cast: Cast::FirstLate,
        mishap: Mishap::Strike(Blow::Stop, Before::Write),
        why: "A suspended process renews nothing and does not notice that time passes. When it resumes, its next step is \
              the write, which overwrites what others wrote in the meantime. It counts as inside until then.",
        ..PLAIN
    },
    Stage {
        label: "fencing token",
        title: "The same, but each write carries the fencing token of its lease, and the account checks it.",
        method: leasehold(Scope::Account),
        check: Check::Token,
        cast: Cast::FirstLate,
        mishap: Mishap::Strike(Blow::Stop, Before::Write),
        promise: Promise::Right,
        why: "The suspended holder still resumes too late, but its write carries a lower token than the account has seen. \
              The write is refused, and the deposit is made again under a new lease.",
        ..PLAIN
    },
    Stage {
        label: "token, read first",
        title: "The same, but the suspended holder resumes when the next one has read the balance, and has not written yet.",
        method: leasehold(Scope::Account),
        check: Check::Token,
        cast: Cast::FirstAmong,
        mishap: Mishap::Strike(Blow::Stop, Before::Write),
        second: Second::Until(Did::Leave),
        why: "The account has not seen the token of the next holder, so it accepts the late write. Then the next holder \
              writes what it made of the older balance, also with a good token: an update is lost, and nobody is told.",
        ..PLAIN
    },
    Stage {
        label: "fence raised first",
        title: "The same, but each holder first raises the fence of the account to its token, and only then reads.",
        method: leasehold(Scope::Account),
        check: Check::RaisedToken,
        cast: Cast::FirstAmong,
        mishap: Mishap::Strike(Blow::Stop, Before::Write),
        second: Second::Until(Did::Leave),
        promise: Promise::Right,
        why: "From the moment at which the next holder has read, the account refuses the late write. The deposit is made \
              again under a new lease.",
        ..PLAIN
    },
];
