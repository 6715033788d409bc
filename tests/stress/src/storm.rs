//! Fault injection: at random, counting what took effect, and healing what does not heal by itself.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use test_support::{AfterDrop, Fault};

use crate::cast::TTL;
use crate::crew::{Crew, Link, Running};

/// How long it may take, beyond the storm itself, until every kind of fault took effect.
const LAST_KINDS_WITHIN: Duration = Duration::from_secs(30);

/// What a test breaks, and how.
pub trait Nemesis {
    /// The kinds of faults.
    type Trouble: Copy + Ord + Debug;
    /// A fault that lasts for a while and has to be ended.
    type Lasting;

    /// What is common to all of them.
    fn storm(&mut self) -> &mut Storm<Self::Trouble, Self::Lasting>;

    /// Breaks something.
    fn begin(&mut self, trouble: Self::Trouble);

    /// Ends the faults whose time is over.
    fn end(&mut self, what: Self::Lasting);

    /// Injects every kind of fault once, in random order, then random faults for the given time, and continues until every
    /// kind took effect.
    fn rage(&mut self, troubles: &[Self::Trouble], length: Duration) {
        let end = Instant::now() + length;
        let mut deck = troubles.to_vec();
        self.storm().rng.shuffle(&mut deck);
        deck.into_iter().for_each(|trouble| self.strike(trouble));
        while Instant::now() < end {
            let next = self.storm().rng.usize(..troubles.len());
            self.strike(troubles[next]);
        }
        // Lasting faults are counted when they end.
        self.heal_until(None);
        let last = Instant::now() + LAST_KINDS_WITHIN;
        while let Some(missing) = troubles.iter().find(|trouble| !self.storm().fired.contains_key(trouble)) {
            assert!(Instant::now() < last, "{missing:?} never took effect");
            self.strike(*missing);
            self.heal_until(None);
        }
    }

    /// Injects a fault, and handles the others for a moment.
    fn strike(&mut self, trouble: Self::Trouble) {
        self.begin(trouble);
        let pauses = self.storm().pauses.clone();
        let pause = self.storm().time(pauses);
        self.heal_until(Some(Instant::now() + pause));
    }

    /// Ends the faults whose time ends by then; all of them if no time is given.
    fn heal_until(&mut self, end: Option<Instant>) {
        for (over, what) in self.storm().due(end) {
            thread::sleep(over.saturating_duration_since(Instant::now()));
            self.end(what);
        }
        thread::sleep(end.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now())));
    }
}

/// The random numbers, the counts, and the current faults.
#[derive(Debug)]
pub struct Storm<T, L> {
    /// The source of random numbers.
    pub rng: Rng,
    /// How often each kind took effect.
    pub fired: BTreeMap<T, u64>,
    pauses: Range<Duration>,
    lasting: Vec<(Instant, L)>,
}

impl<T: Ord, L> Storm<T, L> {
    /// No faults yet; later one after the other, with pauses in this range.
    pub fn new(seed: u64, pauses: Range<Duration>) -> Self {
        Self { rng: Rng::with_seed(seed), fired: BTreeMap::new(), pauses, lasting: Vec::new() }
    }

    /// Counts a fault that took effect this many times.
    pub fn count(&mut self, trouble: T, times: u64) {
        if times > 0 {
            *self.fired.entry(trouble).or_default() += times;
        }
    }

    /// Keeps a fault for a time in this range.
    pub fn lasting(&mut self, what: L, length: Range<Duration>) {
        let length = self.time(length);
        self.lasting.push((Instant::now() + length, what));
    }

    /// A time in this range.
    pub fn time(&mut self, length: Range<Duration>) -> Duration {
        let micros = |length: Duration| u64::try_from(length.as_micros()).unwrap();
        Duration::from_micros(self.rng.u64(micros(length.start)..micros(length.end)))
    }

    fn due(&mut self, end: Option<Instant>) -> Vec<(Instant, L)> {
        self.lasting.sort_by_key(|(over, _)| *over);
        let due = self.lasting.iter().take_while(|(over, _)| end.is_none_or(|end| *over <= end)).count();
        self.lasting.drain(..due).collect()
    }
}

/// What may happen to the network of a worker or to that of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wire {
    /// Replies are lost until the fault ends.
    DropReplies,
    /// A connection ends with its first reply, which is lost.
    CutAtReply,
    /// Nothing arrives until the fault ends; then everything does.
    Hold,
    /// Nobody can connect.
    Refuse,
}

impl Wire {
    /// What the proxy does for it.
    pub fn fault(self) -> Fault {
        match self {
            Self::DropReplies => Fault::DropReplies(AfterDrop::Keep),
            Self::CutAtReply => Fault::DropReplies(AfterDrop::Cut),
            Self::Hold => Fault::Hold,
            Self::Refuse => Fault::Refuse,
        }
    }
}

/// What may be done to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blow {
    /// It is killed, and another takes its place.
    Kill,
    /// It is suspended for less than its lease.
    FreezeBriefly,
    /// It is suspended until its lease has expired.
    FreezePastTtl,
}

impl Blow {
    /// How long it is suspended.
    fn length(self) -> Option<Range<Duration>> {
        match self {
            Self::Kill => None,
            Self::FreezeBriefly => Some(TTL / 5..TTL * 4 / 5),
            Self::FreezePastTtl => Some(TTL * 6 / 5..TTL * 2),
        }
    }
}

/// A lasting fault of a worker or the network.
#[derive(Debug)]
pub enum Lingering<T> {
    /// A worker is suspended.
    Frozen(T, usize),
    /// A fault of the network.
    Network(T, Vec<Link>, Fault),
}

impl<T: Ord, L: From<Lingering<T>>> Storm<T, L> {
    /// Injects a fault into a worker.
    pub fn hit(&mut self, crew: &mut Crew, trouble: T, worker: usize, blow: Blow) {
        match blow.length() {
            None => {
                crew.replace(worker);
                self.count(trouble, 1);
            }
            Some(length) if crew.workers[worker].state == Running::Yes => {
                crew.workers[worker].freeze();
                self.lasting(Lingering::Frozen(trouble, worker).into(), length);
            }
            Some(_) => {}
        }
    }

    /// Injects a fault into these links for a while.
    pub fn cross(&mut self, crew: &Crew, trouble: T, links: Vec<Link>, fault: Fault, length: Range<Duration>) {
        crew.begin_fault(&links, fault);
        self.lasting(Lingering::Network(trouble, links, fault).into(), length);
    }

    /// Ends a lasting fault.
    pub fn over(&mut self, crew: &mut Crew, what: Lingering<T>) {
        match what {
            // It may have been killed and replaced meanwhile.
            Lingering::Frozen(trouble, worker) if crew.workers[worker].state == Running::Frozen => {
                crew.workers[worker].thaw();
                self.count(trouble, 1);
            }
            Lingering::Frozen(..) => {}
            Lingering::Network(trouble, links, fault) => {
                let fired = crew.end_fault(&links, fault);
                self.count(trouble, fired);
            }
        }
    }
}

/// A worker to break: often one that holds a lock, because that hurts most. `held` is the value of its lease.
pub fn victim(rng: &mut Rng, crew: &Crew, held: Option<&str>) -> usize {
    let holder = held.and_then(pid_in).and_then(|pid| crew.with_pid(pid));
    match holder {
        Some(holder) if rng.u32(..3) > 0 => holder,
        Some(_) | None => rng.usize(..crew.workers.len()),
    }
}

/// The process id in the note of a lease: `lh1:OWNER:LOW:HIGH:TIME~PID@HOST WHY`, or `LOW:HIGH:SLOTS:TIME~PID@HOST WHY`.
fn pid_in(value: &str) -> Option<u32> {
    value.split_once('@')?.0.rsplit([':', '~']).next()?.parse().ok()
}
