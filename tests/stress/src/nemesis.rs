//! Faults of one server, or of servers that clients see as one, and of their surroundings.

use std::fmt::Debug;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use crate::cast::{BOOK, COOL, HOT, POOL, TTL};
use crate::crew::Crew;
use crate::storm::{self, Blow, Lingering, Nemesis as _, Storm, Wire, victim};

/// The pause between two faults.
const PAUSES: Range<Duration> = Duration::from_millis(150)..Duration::from_millis(700);

/// A server that faults are injected into.
pub trait Server {
    /// The kinds of faults that only this kind of server has.
    type Own: Copy + Ord + Debug + 'static;
    /// All of them.
    const OWN: &'static [Self::Own];
    /// How long it is suspended.
    const SUSPENDED_FOR: Range<Duration>;

    /// The notes of the leases of a lock, each with the process of its holder.
    fn notes(&self, lock: &str) -> Vec<String>;

    /// Suspends it.
    fn suspend(&mut self);

    /// Ends that.
    fn resume(&mut self);

    /// Kills it, and starts it with what it has stored.
    fn restart_with_data(&mut self);

    /// Injects a fault of its own.
    fn begin(&mut self, own: Self::Own) -> Effect;

    /// Ends one that lasts, and returns how often it took effect.
    fn end(&mut self, own: Self::Own) -> u64;
}

/// What comes of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It is over, and took effect so many times.
    Times(u64),
    /// It lasts until it is ended.
    Lasts,
}

/// One kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble<O> {
    /// A worker's process breaks.
    Worker(Blow),
    /// The connections of a worker are cut.
    CutConnections,
    /// The network of a worker breaks.
    Network(Wire),
    /// The server is suspended.
    FreezeServer,
    /// The server is killed, and comes back with its data.
    RestartWithData,
    /// What only this kind of server has.
    Own(O),
}

impl<O: Copy> Trouble<O> {
    /// Those of every server, and these.
    fn all(own: &[O]) -> Vec<Self> {
        let blows = [Blow::Kill, Blow::FreezeBriefly, Blow::FreezePastTtl].map(Self::Worker);
        let wires = [Wire::DropReplies, Wire::CutAtReply, Wire::Hold, Wire::Refuse].map(Self::Network);
        let others = [Self::CutConnections, Self::FreezeServer, Self::RestartWithData];
        blows.into_iter().chain(wires).chain(others).chain(own.iter().copied().map(Self::Own)).collect()
    }
}

/// Faults that last for a while.
#[derive(Debug)]
pub enum Lasting<O> {
    /// Of a worker, or of the network.
    Lingering(Lingering<Trouble<O>>),
    /// Of the server.
    Own(O),
}

impl<O> From<Lingering<Trouble<O>>> for Lasting<O> {
    fn from(lingering: Lingering<Trouble<O>>) -> Self {
        Self::Lingering(lingering)
    }
}

/// Injects random faults, and counts what took effect.
struct Nemesis<'a, S: Server> {
    server: &'a mut S,
    crew: &'a mut Crew,
    storm: Storm<Trouble<S::Own>, Lasting<S::Own>>,
}

/// Injects every kind of fault into a server and a crew, for the given time and until each took effect.
pub fn rage<S: Server>(server: &mut S, crew: &mut Crew, length: Duration) {
    let storm = Storm::new(crew.seed(), PAUSES);
    let mut nemesis = Nemesis { server, crew, storm };
    nemesis.rage(&Trouble::all(S::OWN), length);
    println!("took effect: {:?}", nemesis.storm.fired);
}

impl<S: Server> Nemesis<'_, S> {
    fn victim(&mut self) -> usize {
        let lock = [HOT, COOL, BOOK, POOL][self.storm.rng.usize(..4)];
        let held = self.storm.rng.choice(self.server.notes(lock));
        victim(&mut self.storm.rng, self.crew, held.as_deref())
    }
}

impl<S: Server> storm::Nemesis for Nemesis<'_, S> {
    type Trouble = Trouble<S::Own>;
    type Lasting = Lasting<S::Own>;

    fn storm(&mut self) -> &mut Storm<Self::Trouble, Self::Lasting> {
        &mut self.storm
    }

    fn begin(&mut self, trouble: Self::Trouble) {
        match trouble {
            Trouble::Worker(blow) => {
                let worker = self.victim();
                self.storm.hit(self.crew, trouble, worker, blow);
            }
            Trouble::CutConnections => {
                let worker = self.storm.rng.usize(..self.crew.workers.len());
                self.storm.count(trouble, self.crew.cut(&self.crew.links(worker)));
            }
            Trouble::Network(wire) => {
                let worker = self.victim();
                let links = self.crew.links(worker);
                self.storm.cross(self.crew, trouble, links, wire.fault(), TTL / 5..TTL);
            }
            Trouble::FreezeServer => {
                self.server.suspend();
                thread::sleep(self.storm.time(S::SUSPENDED_FOR));
                self.server.resume();
                self.storm.count(trouble, 1);
            }
            Trouble::RestartWithData => {
                self.server.restart_with_data();
                self.storm.count(trouble, 1);
            }
            Trouble::Own(own) => match self.server.begin(own) {
                Effect::Times(times) => self.storm.count(trouble, times),
                Effect::Lasts => self.storm.lasting(Lasting::Own(own), TTL / 5..TTL),
            },
        }
    }

    fn end(&mut self, what: Self::Lasting) {
        match what {
            Lasting::Lingering(what) => self.storm.over(self.crew, what),
            Lasting::Own(own) => {
                let times = self.server.end(own);
                self.storm.count(Trouble::Own(own), times);
            }
        }
    }
}
