//! What must hold whatever happens, one rule in each file, and who watches them.

mod cancelled;
mod everybody;
mod fencing;
mod one_holder;
mod outliving;
mod refusals;
mod store_keeps;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lock_core::station::TurnId;
use lock_core::{Hold, Lease, LockName, Owner, TokenRange};

pub(crate) use cancelled::check as cancelled;
pub(crate) use everybody::check as everybody;
use fencing::Fencing;
pub(crate) use one_holder::{Outsider, check as one_holder};
pub(crate) use outliving::check as outliving;
pub(crate) use store_keeps::check as store_keeps;
use tokens::Tokens;

use crate::clock::Time;
use crate::network::ProcessId;

/// A rule that must hold whatever happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// At most one holder at a time, by what each holder thinks itself.
    OneHolder,
    /// Nobody relies on its lease for longer than the store keeps it.
    StoreKeeps,
    /// Tokens rise in the order of admission, and over losses of data.
    TokensRise,
    /// The resource refuses no write of a valid holder.
    Fencing,
    /// Who waits without an end is not turned away.
    Refusals,
    /// Once nothing goes wrong any more, everybody has its turn.
    Everybody,
    /// No key outlives its lease or its place.
    Outliving,
    /// A waiter that left leaves nothing at the store.
    Cancelled,
    /// One input has an end of outputs.
    Endless,
}

/// A rule that did not hold.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Which one.
    pub rule: Rule,
    /// How.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)
    }
}

/// A valid hold, and when its holder thinks that it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holding<'a> {
    pub(crate) hold: &'a Hold,
    pub(crate) until: Time,
}

/// Which of the store's memories a grant belongs to. Each loss of data begins another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(u32);

/// What is known of a grant beside what its holder knows.
#[derive(Clone, Copy, Debug)]
struct Grant {
    epoch: Epoch,
    revoked: Option<Revocation>,
}

#[derive(Clone, Copy, Debug)]
struct Revocation;

/// Remembers what the rules need, and the first that was broken.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    epoch: Epoch,
    grants: BTreeMap<LockName, BTreeMap<TokenRange, Grant>>,
    tokens: Tokens,
    fencing: Fencing,
    /// Owners of which something may be left that they cannot help: the store forgot their release.
    excused: BTreeSet<Owner>,
    broken: Option<Broken>,
}

impl Watch {
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
        let grant = Grant { epoch: self.epoch, revoked: None };
        self.grants.entry(lease.name.clone()).or_default().insert(lease.tokens, grant);
    }

    pub(crate) fn revoked(&mut self, name: &LockName, tokens: TokenRange) {
        if let Some(grant) = self.grants.get_mut(name).and_then(|grants| grants.get_mut(&tokens)) {
            grant.revoked = Some(Revocation);
        }
    }

    /// The store lost data: what was granted before is another memory's.
    pub(crate) fn data_lost(&mut self, excused: impl Iterator<Item = Owner>) {
        self.epoch.0 += 1;
        self.excused.extend(excused);
    }

    pub(crate) fn is_excused(&self, owner: Owner) -> bool {
        self.excused.contains(&owner)
    }

    /// The memory that a lease is in, unless an operator ended it: then its holder cannot know.
    pub(crate) fn epoch_of(&self, lease: &Lease) -> Option<Epoch> {
        let grant = self.grants.get(&lease.name)?.get(&lease.tokens)?;
        grant.revoked.is_none().then_some(grant.epoch)
    }

    pub(crate) fn admitted(&mut self, hold: &Hold) {
        if let Some(epoch) = self.epoch_of(hold.lease()) {
            let result = self.tokens.admitted(epoch, hold);
            self.report(Rule::TokensRise, result);
        }
    }

    pub(crate) fn admitted_a_stranger(&mut self, name: &LockName, turn: TurnId) {
        self.report(Rule::Cancelled, Err(format!("{turn:?} of {name} was admitted after it had left")));
    }

    pub(crate) fn endless(&mut self, process: ProcessId) {
        self.report(Rule::Endless, Err(format!("{process:?} has no end of outputs")));
    }
}
