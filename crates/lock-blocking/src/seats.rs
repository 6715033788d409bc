//! Who waits or holds at a station in this process, and which of them runs what.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lock_core::station::{Action, ActionId, Request, Station, TurnId};
use lock_core::{BackendError, Ended, Hold, Moment, Owner, Refusal};
use lock_host::KnownOwners;

use crate::sync::{Arc, Condvar};

/// Who is at a station, and what is to be run for it.
pub(crate) struct Inner {
    pub(crate) station: Station,
    pub(crate) condition: Condition,
    pub(crate) known: KnownOwners,
    pub(crate) seats: BTreeMap<TurnId, Box<Seat>>,
    /// Actions that nobody runs yet.
    pub(crate) pending: VecDeque<Action>,
    /// Actions that are being run, and how long each may take.
    pub(crate) running: Vec<(ActionId, Duration)>,
    /// Whether the driver's threads know that something is left for them here.
    pub(crate) attended: bool,
    /// How many threads wait until something has been run.
    pub(crate) settling: usize,
    /// The earliest alarm that is set. A later one is set when it rings.
    pub(crate) alarm_at: Option<Moment>,
}

/// What a cell has to tell the store at some moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    /// The last action of all.
    pub(crate) last: ActionId,
    /// The longest time that one of them may take.
    pub(crate) longest: Duration,
}

/// Whether the station can be relied on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Condition {
    #[default]
    Works,
    /// It panicked.
    Broken,
}

/// What the station's answer to a waiter is.
pub(crate) type Verdict = Result<Arc<Hold>, Refusal>;

/// Where somebody waits for the station's word about its turn.
#[derive(Default)]
pub(crate) struct Seat {
    pub(crate) verdict: Option<Verdict>,
    pub(crate) ended: Option<Result<Ended, BackendError>>,
    pub(crate) bell: Arc<Condvar>,
    pub(crate) presence: Presence,
    /// Whose release is for the thread of this seat to run: its lease's, or the last claim's where it was turned
    /// away and nobody here holds by it.
    pub(crate) owner: Option<Owner>,
    /// What its guard knows, once it holds.
    pub(crate) hold: Option<Arc<Hold>>,
}

/// Where the thread of a seat is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    /// With its user.
    #[default]
    Away,
    /// In the cell, looking for something to run or running it.
    Here,
    /// In the cell, asleep until it is woken.
    Asleep,
}

impl Seat {
    /// Whether the thread of this seat will run a request. A waiter runs the claims that it waits for, and everybody its
    /// own release; what others leave behind must not delay it.
    fn runs(&self, request: &Request) -> bool {
        let own = match request {
            Request::Acquire(_) => self.owner.is_none(),
            Request::Release(request) => self.owner == Some(request.owner),
        };
        own && self.presence != Presence::Away
    }
}

impl Inner {
    pub(crate) fn new(station: Station) -> Self {
        Self {
            station,
            condition: Condition::default(),
            known: KnownOwners::default(),
            seats: BTreeMap::new(),
            pending: VecDeque::with_capacity(1),
            running: Vec::new(),
            attended: false,
            settling: 0,
            alarm_at: None,
        }
    }

    /// The actions that are pending or being run, and how long each may take.
    pub(crate) fn actions(&self) -> impl Iterator<Item = (ActionId, Duration)> {
        self.pending.iter().map(|action| (action.id, action.within)).chain(self.running.iter().copied())
    }

    pub(crate) fn take_own(&mut self, turn: TurnId) -> Option<Action> {
        self.take(|inner, action| inner.seats.get(&turn).is_some_and(|seat| seat.runs(&action.request)))
    }

    pub(crate) fn take(&mut self, which: impl Fn(&Self, &Action) -> bool) -> Option<Action> {
        let index = self.pending.iter().position(|action| which(self, action))?;
        self.pending.remove(index)
    }

    /// Whether no thread of a seat will run an action.
    pub(crate) fn is_left(&self, action: &Action) -> bool {
        !self.seats.values().any(|seat| seat.runs(&action.request))
    }

    pub(crate) fn has_left(&self) -> bool {
        self.pending.iter().any(|action| self.is_left(action))
    }

    /// Whether somebody here holds, or held, by this owner.
    pub(crate) fn is_a_holders(&self, owner: Owner) -> bool {
        self.seats.values().any(|seat| seat.hold.as_ref().is_some_and(|hold| hold.lease().owner == owner))
    }

    /// Wakes a thread that waits for its turn, unless all are awake.
    pub(crate) fn wake_a_waiter(&mut self) {
        let waits = |seat: &&mut Box<Seat>| seat.presence == Presence::Asleep && seat.owner.is_none();
        if let Some(seat) = self.seats.values_mut().find(waits) {
            seat.presence = Presence::Here;
            seat.bell.notify_all();
        }
    }

    pub(crate) fn tell(&mut self, turn: TurnId, what: impl FnOnce(&mut Seat)) {
        if let Some(seat) = self.seats.get_mut(&turn) {
            what(seat);
            seat.bell.notify_all();
        }
    }
}
