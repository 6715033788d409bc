//! Latches as plain values: what each request means.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use lock_core::latch::{Act, ArrivalId, Generation, LatchState, Request, Seen, Watching};
use lock_core::{LockName, Moment, Ttl};

use crate::hand_over::ClientId;

/// How many entries are stored before those whose time is over are dropped.
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

/// What a request did.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Nothing that anybody waits for.
    Small,
    /// Now all have arrived, or a new generation has begun.
    Great,
}

impl Latches {
    /// Carries out a request. Also returns who is told that the latch has changed.
    pub(crate) fn ask(&mut self, now: Moment, client: ClientId, request: &Request) -> (Seen, BTreeSet<ClientId>) {
        let Request { name, act } = request;
        if self.by_name.get(name).is_some_and(|latch| latch.until <= now) {
            self.by_name.remove(name);
        }
        let change = match act {
            Act::Arrive { id, call, ttl } => self.stored(now, name, *ttl).arrive(id, *call),
            Act::Make { ttl } => self.stored(now, name, *ttl).change(|_| {}),
            Act::Expect { count, generation, ttl } => {
                match self.state(name).filter(|state| state.generation == *generation) {
                    Some(state) if state.expected.is_none_or(|expected| expected == *count) => {
                        self.stored(now, name, *ttl).change(|state| state.expected = Some(*count))
                    }
                    Some(_) | None => Change::Small,
                }
            }
            Act::Reset { generation, ttl } => self.reset(now, name, *generation, *ttl),
            Act::Look { watching } => return (self.look(now, client, name, *watching), BTreeSet::new()),
        };
        let told = match change {
            Change::Small => BTreeSet::new(),
            Change::Great => self.watching.remove(name).map(|watchers| watchers.clients).unwrap_or_default(),
        };
        (Seen { state: self.state(name), told: false }, told)
    }

    /// New generations get higher numbers than this from now on.
    pub(crate) fn raise(&mut self, floor: u64) {
        self.generations = self.generations.max(floor);
    }

    fn state(&self, name: &LockName) -> Option<LatchState> {
        self.by_name.get(name).map(|latch| latch.state)
    }

    fn look(&mut self, now: Moment, client: ClientId, name: &LockName, watching: Watching) -> Seen {
        let state = self.state(name);
        let told = watching == Watching::Wanted && !state.is_some_and(|state| state.is_complete());
        if told {
            self.watch(now, client, name);
        }
        Seen { state, told }
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

    fn reset(&mut self, now: Moment, name: &LockName, generation: Generation, ttl: Ttl) -> Change {
        if self.state(name).is_none_or(|state| state.generation != generation) {
            return Change::Small;
        }
        let next = self.next_generation();
        let latch = self.stored(now, name, ttl);
        let completed = if latch.state.is_complete() { Some(generation) } else { latch.state.completed };
        latch.state = LatchState::new(next);
        latch.state.completed = completed;
        latch.before = std::mem::take(&mut latch.arrived);
        Change::Great
    }

    /// The latch, made if there is none, with its ttl re-armed.
    fn stored(&mut self, now: Moment, name: &LockName, ttl: Ttl) -> &mut Latch {
        if !self.by_name.contains_key(name) {
            self.tidy(now);
        }
        let next = Generation::new(self.generations + 1);
        let latch = self.by_name.entry(name.clone()).or_insert_with(|| {
            self.generations += 1;
            Latch { state: LatchState::new(next), arrived: Calls::new(), before: Calls::new(), until: now }
        });
        latch.until = latch.until.max(now + ttl.get());
        latch
    }

    fn next_generation(&mut self) -> Generation {
        self.generations += 1;
        Generation::new(self.generations)
    }

    fn tidy(&mut self, now: Moment) {
        if self.by_name.len() + self.watching.len() >= self.tidy_at {
            self.by_name.retain(|_, latch| latch.until > now);
            self.watching.retain(|_, watchers| watchers.until > now);
            self.tidy_at = KEPT.max((self.by_name.len() + self.watching.len()) * 2);
        }
    }
}

impl Latch {
    fn arrive(&mut self, id: &ArrivalId, call: u64) -> Change {
        let is_late = self.before.get(id) == Some(&call);
        if is_late || self.arrived.contains_key(id) || !self.state.takes_more() {
            return Change::Small;
        }
        self.arrived.insert(id.clone(), call);
        self.change(|state| state.arrived += 1)
    }

    fn change(&mut self, change: impl FnOnce(&mut LatchState)) -> Change {
        let was_complete = self.state.is_complete();
        change(&mut self.state);
        if self.state.is_complete() && !was_complete { Change::Great } else { Change::Small }
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
