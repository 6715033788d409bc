//! The threads that wait or hold at a site, and which of them runs what.

use std::collections::VecDeque;
use std::time::Duration;

use lock_core::station::{Action, ActionId, Request, TurnId};
use lock_host::{Turns, Waiters, Wake};

use crate::sync::{Arc, Condvar};

/// The threads that wait or hold at a site, and what is to be run there.
#[derive(Default)]
pub(crate) struct Threads {
    pub(crate) turns: Turns<Thread>,
    /// Actions that no thread runs yet.
    pub(crate) pending: VecDeque<Action>,
    /// Actions that are being run, and how long each may take.
    pub(crate) running: Vec<(ActionId, Duration)>,
    /// Whether the pool knows that it has something to run here.
    pub(crate) attended: bool,
    /// How many threads wait until something has been run.
    pub(crate) settling: usize,
    /// Notifies those threads.
    pub(crate) quiet: Arc<Condvar>,
}

/// A thread that waits or holds.
#[derive(Default)]
pub(crate) struct Thread {
    pub(crate) presence: Presence,
    /// `None` until a thread sleeps here. Most threads never do, and notifying costs a system call even if none sleeps.
    condvar: Option<Arc<Condvar>>,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    /// With its user.
    #[default]
    Away,
    /// At the site, looking for something to run.
    Here,
    /// At the site, waiting for the store's answer to what it runs.
    Busy,
    /// At the site, asleep until it is woken.
    Asleep,
}

impl Thread {
    /// Wakes this thread, and the threads that wait for the end of its hold.
    pub(crate) fn condvar(&mut self) -> Arc<Condvar> {
        Arc::clone(self.condvar.get_or_insert_default())
    }

    /// Whether this thread will run the requests of its turn without waiting for the store first.
    fn is_present(&self) -> bool {
        matches!(self.presence, Presence::Here | Presence::Asleep)
    }
}

impl Wake for Thread {
    fn wake(&self) {
        self.condvar.iter().for_each(|condvar| condvar.notify_all());
    }
}

impl Threads {
    /// Records where the thread of a turn is.
    pub(crate) fn set_presence(&mut self, turn: TurnId, presence: Presence) {
        self.turns.get_mut(turn).into_iter().for_each(|thread| thread.presence = presence);
    }

    /// The next action for the thread of a turn, which is present. A waiter runs the claims that it waits for, and each thread
    /// its own release; actions that others leave behind must not delay it.
    pub(crate) fn take_own(&mut self, turn: TurnId) -> Option<Action> {
        self.take(|threads, action| threads.turns.is_for(turn, action))
    }

    /// The next action that no thread here will run.
    pub(crate) fn take_unclaimed(&mut self) -> Option<Action> {
        self.take(Self::is_unclaimed)
    }

    fn take(&mut self, which: impl Fn(&Self, &Action) -> bool) -> Option<Action> {
        let index = self.pending.iter().position(|action| which(self, action))?;
        self.pending.remove(index)
    }

    /// Whether no thread here will run an action.
    fn is_unclaimed(&self, action: &Action) -> bool {
        !self.turns.for_whom(action).any(|(_, thread)| thread.is_present())
    }

    /// Whether there is something that no thread here will run.
    pub(crate) fn has_unclaimed(&self) -> bool {
        self.pending.iter().any(|action| self.is_unclaimed(action))
    }

    /// The actions that are pending or being run, and how long each may take.
    pub(crate) fn actions(&self) -> impl Iterator<Item = (ActionId, Duration)> {
        self.pending.iter().map(|action| (action.id, action.within)).chain(self.running.iter().copied())
    }

    /// Wakes a thread that will run a pending claim, unless all such threads are awake.
    pub(crate) fn wake_for_claims(&mut self) {
        let claims = self.pending.iter().filter(|action| matches!(action.request, Request::Acquire(_)));
        let asleep = claims
            .flat_map(|claim| self.turns.for_whom(claim))
            .find_map(|(turn, thread)| (thread.presence == Presence::Asleep).then_some(turn));
        if let Some(thread) = asleep.and_then(|turn| self.turns.get_mut(turn)) {
            thread.presence = Presence::Here;
            thread.wake();
        }
    }
}

impl Waiters for Threads {
    type Waiter = Thread;

    fn turns(&mut self) -> &mut Turns<Thread> {
        &mut self.turns
    }
}
