//! What everything in the world shares: the time, the dice, the network, the plans, and the invariants.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::clock::Time;
use crate::diary::Diary;
use crate::dice::Dice;
use crate::fault::{Fault, Tally};
use crate::invariants::Watch;
use crate::network::{ConnId, ConnectionEnd, Network, ProcessId, StoreId, Tag, Talk};
use crate::wish::Act;

/// Something that happens by itself at its time.
#[derive(Debug)]
pub(crate) enum Plan {
    /// A user in a process does something.
    Act(ProcessId, Act),
    /// A user comes to a process.
    Arrival(ProcessId),
    /// A process continues.
    Resume(ProcessId),
    /// A process ends.
    Death(ProcessId),
    /// A new process takes the place of one that ended.
    Rebirth,
    /// Something goes wrong.
    Mischief,
    /// A store continues.
    Thaw(StoreId),
    /// A store starts again.
    Start(StoreId),
    /// A store's clock runs as it should again.
    ClockRight(StoreId),
    /// What a plot or the stores have planned, by its number.
    Cue(usize),
    /// The client of the plain layout is done.
    ForeignDone,
}

#[derive(Debug)]
pub(crate) struct Env<T: Talk> {
    pub(crate) now: Time,
    pub(crate) dice: Dice,
    pub(crate) tally: Tally,
    pub(crate) diary: Diary,
    pub(crate) network: Network<T::Ask, T::Say>,
    pub(crate) watch: Watch,
    agenda: BTreeMap<(Time, u64), Plan>,
    last_number: u64,
}

impl<T: Talk> Env<T> {
    pub(crate) fn new(seed: u64, diary: Diary) -> Self {
        Self {
            now: Time::START,
            dice: Dice::new(seed),
            tally: Tally::default(),
            diary,
            network: Network::default(),
            watch: Watch::default(),
            agenda: BTreeMap::new(),
            last_number: 0,
        }
    }

    pub(crate) fn plan(&mut self, after: Duration, plan: Plan) {
        let number = self.number();
        self.agenda.insert((self.now + after, number), plan);
    }

    pub(crate) fn next_planned(&self) -> Option<Time> {
        self.agenda.keys().next().map(|(at, _)| *at)
    }

    pub(crate) fn take_planned(&mut self) -> Option<Plan> {
        let first = self.agenda.first_entry().filter(|plan| plan.key().0 <= self.now)?;
        Some(first.remove())
    }

    /// Forgets the plans of a kind.
    pub(crate) fn cancel(&mut self, which: impl Fn(&Plan) -> bool) {
        self.agenda.retain(|_, plan| !which(plan));
    }

    /// A number that was never used before.
    pub(crate) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(crate) fn note(&mut self, what: fmt::Arguments<'_>) {
        self.diary.note(self.now, what);
    }

    pub(crate) fn fired(&mut self, fault: Fault) {
        self.tally.count(fault);
    }

    pub(crate) fn ask(&mut self, conn: ConnId, tag: Tag, ask: T::Ask) {
        self.network.ask(self.now, &mut self.dice, &mut self.tally, conn, tag, ask);
    }

    pub(crate) fn say(&mut self, conn: ConnId, tag: Tag, say: T::Say) {
        self.network.say(self.now, &mut self.dice, &mut self.tally, conn, tag, say);
    }

    pub(crate) fn cut(&mut self, conn: ConnId) {
        self.network.cut(self.now, &mut self.dice, &mut self.tally, conn);
    }

    pub(crate) fn leave(&mut self, conn: ConnId, farewell: ConnectionEnd) {
        self.network.leave(self.now, &mut self.dice, &mut self.tally, conn, farewell);
    }
}
