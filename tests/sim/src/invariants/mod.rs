//! What must hold whatever happens, with one rule in each file, and what checks the rules. This module has the rules
//! for all stores.

mod bounded_debt;
mod everybody;
mod excused;
mod fencing;
mod kept;
mod latches;
mod refusals;
mod revoked;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_core::latch::{Generation, LatchError, Request};
use lock_core::station::TurnId;
use lock_core::{Hold, Lease, LockName, Owner, TokenRange};

pub(crate) use bounded_debt::check as bounded_debt;
pub(crate) use everybody::check as everybody;
use fencing::Fencing;
use kept::Kept;
pub(crate) use latches::Change;
use latches::Latches;

use crate::clock::Time;
use crate::fault::{Fault, Tally};
use crate::network::ProcessId;

/// A rule that must hold whatever happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// At most one holder at a time, in each holder's own view; or several that only read.
    OneHolder,
    /// The permits that are held, in each holder's own view, are at most as many as there are.
    Limit,
    /// No two holders use one slot.
    Slots,
    /// Nobody relies on its lease for longer than the store keeps it.
    StoreKeeps,
    /// Tokens rise: on one store in the order of admission, in a quorum if one was handed out before the other was
    /// requested; and across losses of data.
    TokensRise,
    /// The order in which nodes acknowledged two leases is the order of their tokens.
    NodesAgree,
    /// No node counts as having acknowledged a token below its grant's own.
    NothingBelow,
    /// A node that votes again counts above all that it acknowledged before it forgot.
    Recovers,
    /// The resource refuses no write of a valid holder, and no valid reader sees what a later writer wrote.
    Fencing,
    /// A waiter without a time limit is not rejected.
    Refusals,
    /// Once nothing goes wrong any more, every waiter gets its turn.
    Everybody,
    /// Nobody sleeps at the store whose turn has come, until it is woken.
    Overslept,
    /// Nobody is overtaken by a later arrival at the store, nor for long by readers that join a lease.
    Overtaken,
    /// No key outlives its lease or its place.
    Outliving,
    /// A waiter that left leaves nothing at the store.
    Cancelled,
    /// A claim that failed leaves nothing at nodes that could be reached.
    FailedLeavesNothing,
    /// A node grants nothing to an owner that was released there.
    Ghosts,
    /// The number of a station's pending releases is bounded, and a new claim waits for those that could affect it.
    BoundedDebt,
    /// A lock that is kept after its release is granted to nobody before its time.
    Kept,
    /// A call about a latch takes effect once, in one generation, and a wait ends as its generation did.
    Latches,
    /// A client that was told of a primary is connected to none that was chosen before it.
    NeverBack,
    /// The outputs of one input end.
    Endless,
}

/// A rule that did not hold.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The rule.
    pub rule: Rule,
    /// How it was broken.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)
    }
}

/// Holds that a check has to look at.
pub(crate) type Admitted = Vec<Arc<Hold>>;

/// A valid hold, and when its holder thinks that it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding<'a> {
    pub(crate) hold: &'a Hold,
    /// The owner that was last asked for in place of this one.
    pub(crate) replacing: Option<Owner>,
    /// Whether it writes nothing.
    pub(crate) reads: bool,
    /// The slots that it uses.
    pub(crate) slots: &'a [u32],
    pub(crate) until: Time,
}

/// Which of the store's memories a grant belongs to. Each loss of data begins another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(u32);

/// What is known about a grant besides what its holder knows.
#[derive(Clone, Copy, Debug)]
struct Grant {
    epoch: Epoch,
    /// When an operator ended it.
    revoked: Option<Time>,
}

/// Remembers what the rules need, and the first that was broken.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    epoch: Epoch,
    grants: BTreeMap<LockName, BTreeMap<TokenRange, Grant>>,
    /// Holds that were handed out and not looked at yet.
    admitted: Admitted,
    /// The readers that joined a lease and were not looked at yet, by lock, and when they came.
    joined: Vec<(LockName, Time)>,
    fencing: Fencing,
    /// Owners of which something may be left through no fault of theirs: the store forgot their release.
    excused: BTreeSet<Owner>,
    kept: Kept,
    latches: Latches,
    /// Whether tokens may have fallen, in a case without a guarantee.
    tokens_fell: bool,
    /// Whether something is wrong that only an operator can fix.
    needs_operator: bool,
    /// Whether anybody wanted a name for something that it is not used as.
    used_otherwise: bool,
    broken: Option<Broken>,
}

impl Watch {
    /// Something is wrong that only an operator can fix: clients may be refused.
    pub(crate) fn needs_operator(&mut self) {
        self.needs_operator = true;
    }

    /// Somebody wants a name for something that it is not used as: anybody may be refused there.
    pub(crate) fn used_otherwise(&mut self) {
        self.used_otherwise = true;
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    pub(crate) fn report(&mut self, rule: Rule, result: Result<(), String>) {
        if let (Err(what), None) = (result, &self.broken) {
            self.broken = Some(Broken { rule, what });
        }
    }

    pub(crate) fn granted(&mut self, lease: &Lease) {
        self.granted_in(self.epoch, lease);
    }

    /// It was asked for in that epoch.
    pub(crate) fn granted_in(&mut self, epoch: Epoch, lease: &Lease) {
        let grant = Grant { epoch, revoked: None };
        self.grants.entry(lease.name.clone()).or_default().insert(lease.tokens, grant);
    }

    pub(crate) fn revoked(&mut self, now: Time, name: &LockName, tokens: TokenRange) {
        self.kept.ended(name);
        if let Some(grant) = self.grants.get_mut(name).and_then(|grants| grants.get_mut(&tokens)) {
            grant.revoked = Some(now);
        }
    }

    /// The store lost data: what was granted before belongs to an earlier memory.
    pub(crate) fn data_lost(&mut self, excused: impl Iterator<Item = Owner>) {
        self.begin_epoch();
        self.kept.all_ended();
        self.latches.data_lost();
        self.excused.extend(excused);
    }

    /// From now on, what was granted before is uncertain.
    pub(crate) fn begin_epoch(&mut self) {
        self.epoch.0 += 1;
    }

    /// From now on tokens may be below earlier ones, and the resource may refuse them.
    pub(crate) fn tokens_may_fall(&mut self) {
        self.tokens_fell = true;
    }

    /// The memory that a lease is in, unless an operator ended it: then its holder cannot know.
    pub(crate) fn epoch_of(&self, lease: &Lease) -> Option<Epoch> {
        let grant = self.grants.get(&lease.name)?.get(&lease.tokens)?;
        grant.revoked.is_none().then_some(grant.epoch)
    }

    /// A holder writes, with this much left of its hold at that moment. If the store lost data since the grant, there
    /// can be another holder.
    pub(crate) fn written(&mut self, hold: &Hold, slots: &[u32], remaining: Duration, tally: &mut Tally) {
        let lease = hold.lease();
        if self.fencing.accepts_all(hold, slots) {
            return;
        }
        tally.count(Fault::WriteRefused);
        if !remaining.is_zero() && !self.tokens_fell && self.epoch_of(lease) == Some(self.epoch()) {
            self.report(Rule::Fencing, Err(format!("the write of a valid holder was refused: {hold:?}")));
        }
    }

    /// A valid holder reads.
    pub(crate) fn read(&mut self, hold: &Hold) {
        let lease = hold.lease();
        if self.fencing.is_past(&lease.name, hold.token()) && self.epoch_of(lease) == Some(self.epoch()) {
            self.report(Rule::Fencing, Err(format!("somebody has written beside a valid reader: {hold:?}")));
        }
    }

    /// The store has carried out a request about a latch, for the call with this number.
    pub(crate) fn latch_asked(&mut self, call: u64, request: &Request, change: Change, tally: &mut Tally) {
        let result = self.latches.asked(call, request, change, tally);
        self.report(Rule::Latches, result);
    }

    /// A call about a latch is over; a wait for this generation ended like this.
    pub(crate) fn waited(
        &mut self,
        name: &LockName,
        generation: Option<Generation>,
        end: Option<Result<(), LatchError>>,
    ) {
        if let Some(end) = end {
            let result = self.latches.waited(name, generation, &end);
            self.report(Rule::Latches, result);
        }
    }

    /// Somebody who held as one of these owners left, and wants the lock kept until then.
    pub(crate) fn keeping(&mut self, owners: impl Iterator<Item = Owner>, until: Time) {
        self.kept.wanted(owners, until);
    }

    /// The store took in that a lock is to be kept.
    pub(crate) fn kept(&mut self, name: &LockName, owner: Owner) {
        self.kept.begun(name, owner);
    }

    /// A turn begins under a lease. If an operator ended that, or the store forgot it, nobody knows yet.
    pub(crate) fn begun(&mut self, now: Time, lease: &Lease) {
        if self.epoch_of(lease) == Some(self.epoch()) {
            let result = self.kept.check(now, &lease.name);
            self.report(Rule::Kept, result);
        }
    }

    pub(crate) fn admitted(&mut self, hold: &Arc<Hold>) {
        self.admitted.push(Arc::clone(hold));
    }

    /// The holds that were handed out since this was last asked.
    pub(crate) fn take_admitted(&mut self) -> Admitted {
        std::mem::take(&mut self.admitted)
    }

    /// A reader that came then joins a lease.
    pub(crate) fn joined(&mut self, name: &LockName, since: Time) {
        self.joined.push((name.clone(), since));
    }

    /// Those who joined since this was last asked.
    pub(crate) fn take_joined(&mut self) -> Vec<(LockName, Time)> {
        std::mem::take(&mut self.joined)
    }

    pub(crate) fn admitted_a_stranger(&mut self, name: &LockName, turn: TurnId) {
        self.report(Rule::Cancelled, Err(format!("{turn:?} of {name} was admitted after it had left")));
    }

    pub(crate) fn endless(&mut self, process: ProcessId) {
        self.report(Rule::Endless, Err(format!("the outputs of {process:?} do not end")));
    }
}
