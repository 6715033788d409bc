//! The latches of the store, and the clients that wait for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;
use std::time::Duration;

use lock_core::latch::{Act, ArrivalId, Generation, LatchState, Request, Seen, Watching};
use lock_core::{LockName, Moment};
use lock_rules::{Change, LatchRows, LatchUpdate, ask_latch};

use crate::notice::ClientId;

/// How many entries are stored before expired ones are dropped.
const KEPT: usize = 32;

/// How long clients are notified after the last of them has looked. Chosen: a client that waits looks every few seconds.
const WATCHED: Duration = Duration::from_secs(10);

/// All latches, and who waits for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latches {
    by_name: BTreeMap<LockName, Latch>,
    watching: BTreeMap<LockName, Watchers>,
    generations: u64,
    tidy_at: usize,
}

#[derive(Clone, Debug)]
struct Latch {
    state: LatchState,
    /// Which call counted an id.
    arrived: Calls,
    /// The same for the generation before.
    before: Calls,
    until: Moment,
}

/// Who waits for a latch.
#[derive(Clone, Debug)]
struct Watchers {
    clients: BTreeSet<ClientId>,
    until: Moment,
}

type Calls = HashMap<ArrivalId, u64>;

impl Latches {
    /// Carries out a request. Also returns the clients to notify that the latch has changed.
    pub(crate) fn ask(&mut self, now: Moment, client: ClientId, request: &Request) -> (Seen, BTreeSet<ClientId>) {
        let Request { name, act } = request;
        if self.by_name.get(name).is_some_and(|latch| latch.until <= now) {
            self.by_name.remove(name);
        }
        let Ok((state, change)) = ask_latch(&mut OneLatch { now, name, latches: self }, request);
        let to_notify = match change {
            Change::Minor => BTreeSet::new(),
            Change::Major => self.watching.remove(name).map(|watchers| watchers.clients).unwrap_or_default(),
        };
        let is_open = !state.is_some_and(|state| state.is_complete());
        let told = is_open && matches!(act, Act::Look { watching: Watching::Wanted });
        if told {
            self.watch(now, client, name);
        }
        (Seen { state, told }, to_notify)
    }

    /// New generations get higher numbers than this from now on.
    pub(crate) fn raise(&mut self, floor: u64) {
        self.generations = self.generations.max(floor);
    }

    fn watch(&mut self, now: Moment, client: ClientId, name: &LockName) {
        if !self.watching.contains_key(name) {
            self.tidy(now);
        }
        let nobody = || Watchers { clients: BTreeSet::new(), until: now };
        let watchers = self.watching.entry(name.clone()).or_insert_with(nobody);
        watchers.clients.insert(client);
        watchers.until = now + WATCHED;
    }

    fn tidy(&mut self, now: Moment) {
        if self.by_name.len() + self.watching.len() >= self.tidy_at {
            self.by_name.retain(|_, latch| latch.until > now);
            self.watching.retain(|_, watchers| watchers.until > now);
            self.tidy_at = KEPT.max((self.by_name.len() + self.watching.len()) * 2);
        }
    }
}

/// One latch during one request, as the rules see it.
struct OneLatch<'a> {
    now: Moment,
    name: &'a LockName,
    latches: &'a mut Latches,
}

impl OneLatch<'_> {
    fn latch(&self) -> Option<&Latch> {
        self.latches.by_name.get(self.name)
    }
}

impl LatchRows for OneLatch<'_> {
    type Error = Infallible;

    fn now(&self) -> Moment {
        self.now
    }

    fn state(&mut self) -> Result<Option<LatchState>, Infallible> {
        Ok(self.latch().map(|latch| latch.state))
    }

    fn has_arrived(&mut self, _: Generation, id: &ArrivalId) -> Result<bool, Infallible> {
        Ok(self.latch().is_some_and(|latch| latch.arrived.contains_key(id)))
    }

    fn has_arrived_before(&mut self, _: Generation, id: &ArrivalId, call: u64) -> Result<bool, Infallible> {
        Ok(self.latch().is_some_and(|latch| latch.before.get(id) == Some(&call)))
    }

    fn next_generation(&mut self, _: Option<Generation>) -> Result<Generation, Infallible> {
        Ok(Generation::new(self.latches.generations + 1))
    }

    fn write(&mut self, LatchUpdate { state, until, arrival }: LatchUpdate<'_>) -> Result<(), Infallible> {
        if self.latch().is_none() {
            self.latches.tidy(self.now);
        }
        self.latches.raise(state.generation.get());
        let latch = self.latches.by_name.entry(self.name.clone()).or_insert_with(|| Latch::new(state, until));
        if latch.state.generation != state.generation {
            latch.before = std::mem::take(&mut latch.arrived);
        }
        latch.arrived.extend(arrival.map(|(id, call)| (id.clone(), call)));
        (latch.state, latch.until) = (state, latch.until.max(until));
        Ok(())
    }
}

impl Latch {
    fn new(state: LatchState, until: Moment) -> Self {
        Self { state, arrived: Calls::new(), before: Calls::new(), until }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long after its last look a client is certainly no longer waiting.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn those_who_waited_for_latches_that_nobody_used_are_forgotten() {
        let (mut latches, mut now) = (Latches::default(), Moment::ORIGIN);
        let look = |latches: &mut Latches, now, number: u32| {
            let name = format!("job {number}").parse().unwrap();
            let act = Act::Look { watching: Watching::Wanted };
            assert!(latches.ask(now, ClientId::new(1), &Request { name, act }).0.told);
        };
        for number in 0..1000 {
            look(&mut latches, now, number);
            now = now + LONG;
        }
        assert!(latches.watching.len() <= 2 * KEPT, "{} are watched", latches.watching.len());
    }
}
