//! What a model of a server has to do.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use lock_core::latch::LatchState;
use lock_core::{Capabilities, LockName, Moment, Owner, Slots, TokenRange};

use super::mistake::Mistake;
use super::units::Inbox;
use super::words::{Ask, Outcome};
use crate::client::Usage;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::network::ConnId;

/// The model of one server.
pub(crate) trait Model: Debug + Sized {
    /// Everything that it stores.
    type Data: Clone + Debug + Default;

    /// What is asked for.
    const TTLS: &'static [Duration];
    /// How often a request may arrive twice, in a thousand.
    const REPEATS: &'static [u32];
    /// Who is served first.
    const ORDER: Order;
    /// How many of a thousand clients are notified.
    const TOLD: u32 = 650;
    /// Whether a claim is answered by what was so some time ago, as a server knows it.
    const READS_THE_PAST: bool = false;
    /// Whether each entry ends with a lease of its own.
    const HAS_LEASES: bool = false;

    /// A new server.
    fn new(dice: &mut Dice, mistake: Option<Mistake>) -> Self;

    /// What it can do, besides what every model can.
    fn can(capabilities: Capabilities) -> Capabilities;

    /// What a name is used as.
    fn usage(dice: &mut Dice) -> Usage;

    /// Runs what is asked. `now` is the server's clock.
    fn ask(&mut self, now: Moment, conn: ConnId, ask: &Ask) -> Outcome;

    /// The connections that listen to an inbox.
    fn heard_on(&self, inbox: Inbox) -> BTreeSet<ConnId>;

    /// A connection is gone, and its subscriptions with it.
    fn closed(&mut self, conn: ConnId);

    fn data(&self) -> &Self::Data;

    /// Forgets everything.
    fn flush(&mut self, now: Moment);

    /// Starts again, as another run of the server, with these data.
    fn start_again(&mut self, now: Moment, data: Self::Data);

    /// Something goes wrong that only it knows.
    fn go_wrong(&mut self, _now: Moment, _dice: &mut Dice) -> Option<Fault> {
        None
    }

    /// From now on nothing goes wrong.
    fn heal(&mut self) {}

    /// What went wrong there since this was last asked.
    fn take_faults(&mut self) -> Vec<Fault> {
        Vec::new()
    }

    /// The connections that it has dropped since this was last asked.
    fn take_dropped(&mut self) -> Vec<ConnId> {
        Vec::new()
    }

    /// Somebody whom nobody wakes although its turn has come.
    fn oversleeps(&self) -> Option<String> {
        None
    }

    /// The names of its latches.
    fn latches() -> Vec<LockName>;

    /// A latch, if it is stored.
    fn latch(&mut self, now: Moment, name: &LockName) -> Option<LatchState>;

    /// Every owner that holds or waits.
    fn owners(&self) -> BTreeSet<Owner>;

    /// The holds of a lock, besides those of the plain layout.
    fn holds(&self, now: Moment, name: &LockName) -> Vec<Stored>;

    /// What it stores of locks, if it does.
    fn left_over(&mut self, now: Moment, names: &[LockName]) -> Option<String>;
}

/// Who is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Who arrived first.
    OfArrival,
    /// The same, but who cannot be notified loses its place.
    OfThoseWhoListen,
}

/// A lease that is stored.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) owner: Owner,
    pub(crate) tokens: TokenRange,
    pub(crate) slots: Slots,
    /// From then on it is not there.
    pub(crate) until: Moment,
}
