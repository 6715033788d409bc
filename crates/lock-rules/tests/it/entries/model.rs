//! A few clients of one lock, and everything that may happen to them.
//!
//! A client decides only when it has arrived, when an entry that it watches has ended, and when the limit has risen. Until it gets to that,
//! anything else may happen, and again until it writes a grant. To list the entries and to watch some of them is one step: an
//! entry that has ended before the watch on it was set counts as an end that was seen. To be granted past the queue is one step, too.

use lock_rules::entries::{Decision, Entry};

/// What is under test: the real decision, or a broken twin.
pub(super) type Decide = for<'a> fn(&'a [Entry<usize>], &usize, u32) -> Option<Decision<'a, usize>>;

/// Who says that an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grants {
    /// Nobody: the order decides. Nobody barges, nothing is replaced, and limits stay.
    ByOrder,
    /// The store.
    ByStore,
}

/// What the store compares when it writes the grant of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// The limit with that of the decision.
    Compared,
    /// Nothing: a broken twin.
    Blind,
}

/// What is explored.
#[derive(Clone, Copy)]
pub(super) struct Setup {
    /// How many entries there may be at once.
    pub(super) entries: usize,
    /// What they may weigh.
    pub(super) weights: &'static [u32],
    /// The capacities: each of them at the beginning, and as limits that change.
    pub(super) capacities: &'static [u32],
    pub(super) grants: Grants,
    pub(super) writes: Writes,
    pub(super) decide: Decide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// The grant is written, and its client was answered that it holds.
    Holds,
    /// Its client has decided that it may hold, and is about to write that.
    Fits,
    /// Its client is about to decide.
    Awake,
    /// Its client waits for the end of one of these entries, a bit for each.
    Asleep { watched: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client {
    pub(super) weight: u32,
    pub(super) stage: Stage,
}

/// The entries in their order, and the capacity.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) capacity: u32,
    pub(super) clients: Vec<Client>,
}

/// What may happen. Entries are numbered by their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// An entry of this weight arrives.
    Arrives(u32),
    /// An entry of this weight is granted beside the holders, although others wait.
    Barges(u32),
    /// A holder's entry ends, and one of this weight is granted in the same step.
    Replaced(usize, u32),
    /// An entry ends: of a holder or a waiter.
    Ends(usize),
    /// Another limit.
    Limit(u32),
    /// A client that is awake decides.
    Decides(usize),
    /// A client writes the grant of its entry.
    Writes(usize),
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A waiter that fits is asleep.
    Sleeps { entry: usize },
    /// A grant has made the holders weigh more than the capacity.
    Exceeds,
    /// A grant came before that of an earlier entry that does not fit.
    Overtakes { entry: usize },
    /// A holder holds no longer by the rule.
    Loses { entry: usize },
}

impl State {
    /// Everything that may happen next.
    pub(super) fn events(&self, setup: &Setup) -> Vec<Event> {
        let mut events = Vec::new();
        for (entry, client) in self.clients.iter().enumerate() {
            events.push(Event::Ends(entry));
            match client.stage {
                Stage::Awake => events.push(Event::Decides(entry)),
                Stage::Fits => events.push(Event::Writes(entry)),
                Stage::Holds | Stage::Asleep { .. } => {}
            }
        }
        let weights = || setup.weights.iter().copied().filter(|weight| *weight <= self.capacity);
        let has_room = self.clients.len() < setup.entries;
        events.extend(weights().filter(|_| has_room).map(Event::Arrives));
        if setup.grants == Grants::ByStore {
            let limits = setup.capacities.iter().copied().filter(|limit| *limit != self.capacity);
            events.extend(limits.map(Event::Limit));
            let barging = weights().filter(|weight| has_room && self.promised() + u64::from(*weight) <= self.room());
            events.extend(barging.map(Event::Barges));
            events.extend(weights().flat_map(|weight| self.replacements(weight)));
        }
        events
    }

    fn replacements(&self, weight: u32) -> impl Iterator<Item = Event> {
        let fits = move |held: u32| self.promised() - u64::from(held) + u64::from(weight) <= self.room();
        let is_replaced = move |client: &Client| client.stage == Stage::Holds && fits(client.weight);
        let replaced = self.clients.iter().enumerate().filter(move |(_, client)| is_replaced(client));
        replaced.map(move |(entry, _)| Event::Replaced(entry, weight))
    }

    /// What this leads to.
    pub(super) fn after(&self, setup: &Setup, event: Event) -> Result<Self, Fault> {
        let mut next = self.clone();
        match event {
            Event::Arrives(weight) => next.clients.push(Client { weight, stage: Stage::Awake }),
            Event::Barges(weight) => next.clients.push(Client { weight, stage: Stage::Holds }),
            Event::Replaced(entry, weight) => {
                next.end(entry);
                next.clients.push(Client { weight, stage: Stage::Holds });
            }
            Event::Ends(entry) => next.end(entry),
            Event::Limit(limit) => next.limit(setup, limit),
            Event::Decides(entry) => next.clients[entry].stage = next.decision(setup, entry),
            Event::Writes(entry) => next.grant(entry)?,
        }
        next.check(setup)?;
        Ok(next)
    }

    fn end(&mut self, ended: usize) {
        self.clients.remove(ended);
        let below = (1 << ended) - 1;
        for client in &mut self.clients {
            let Stage::Asleep { watched } = client.stage else { continue };
            let is_watched = watched & (1 << ended) != 0;
            let watched = (watched & below) | ((watched >> 1) & !below);
            client.stage = if is_watched { Stage::Awake } else { Stage::Asleep { watched } };
        }
    }

    /// A higher limit wakes all waiters. A grant that was decided under another one is not written.
    fn limit(&mut self, setup: &Setup, limit: u32) {
        for client in &mut self.clients {
            let is_wakened = match client.stage {
                Stage::Asleep { .. } => limit > self.capacity,
                Stage::Fits => setup.writes == Writes::Compared,
                Stage::Holds | Stage::Awake => false,
            };
            if is_wakened {
                client.stage = Stage::Awake;
            }
        }
        self.capacity = limit;
    }

    fn decision(&self, setup: &Setup, me: usize) -> Stage {
        match (setup.decide)(&self.entries(setup), &me, self.capacity) {
            Some(Decision::Granted) => Stage::Fits,
            Some(Decision::Waits { watched, .. }) => {
                Stage::Asleep { watched: watched.into_iter().fold(0, |set, entry| set | 1 << entry) }
            }
            None => panic!("the entry is there"),
        }
    }

    fn grant(&mut self, me: usize) -> Result<(), Fault> {
        if self.held() + u64::from(self.clients[me].weight) > self.room() {
            return Err(Fault::Exceeds);
        }
        self.clients[me].stage = Stage::Holds;
        let overtaken = (0..me).find(|earlier| self.clients[*earlier].stage != Stage::Holds && !self.fits(*earlier));
        overtaken.map_or(Ok(()), |entry| Err(Fault::Overtakes { entry }))
    }

    /// What must be true of every state.
    fn check(&self, setup: &Setup) -> Result<(), Fault> {
        let entries = self.entries(setup);
        for (entry, client) in self.clients.iter().enumerate() {
            match client.stage {
                Stage::Holds if (setup.decide)(&entries, &entry, self.capacity) != Some(Decision::Granted) => {
                    return Err(Fault::Loses { entry });
                }
                Stage::Asleep { .. } if self.fits(entry) => return Err(Fault::Sleeps { entry }),
                Stage::Holds | Stage::Fits | Stage::Asleep { .. } | Stage::Awake => {}
            }
        }
        Ok(())
    }

    /// What the store lists.
    fn entries(&self, setup: &Setup) -> Vec<Entry<usize>> {
        let is_granted = |client: &Client| setup.grants == Grants::ByStore && client.stage == Stage::Holds;
        let clients = self.clients.iter().enumerate();
        clients.map(|(key, client)| Entry { key, weight: client.weight, is_granted: is_granted(client) }).collect()
    }

    /// Whether a waiter fits beside the holders and the waiters before it.
    fn fits(&self, me: usize) -> bool {
        let before = self.clients[..me].iter().filter(|client| client.stage != Stage::Holds);
        self.held() + weight(before) + u64::from(self.clients[me].weight) <= self.room()
    }

    /// What clients hold.
    fn held(&self) -> u64 {
        weight(self.clients.iter().filter(|client| client.stage == Stage::Holds))
    }

    /// What clients hold, or will when they get to it.
    fn promised(&self) -> u64 {
        let fits = |entry: &usize| self.clients[*entry].stage != Stage::Holds && self.fits(*entry);
        self.held() + weight((0..self.clients.len()).filter(fits).map(|entry| &self.clients[entry]))
    }

    fn room(&self) -> u64 {
        self.capacity.into()
    }
}

fn weight<'a>(clients: impl Iterator<Item = &'a Client>) -> u64 {
    clients.map(|client| u64::from(client.weight)).sum()
}
