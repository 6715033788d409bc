//! The stations of a client, by name.

use std::collections::HashMap;
use std::fmt;
use std::io;

use lock_core::station::{Floor, Input, Station};
use lock_core::{Event, Heard, LockName, Owner, Policy};

use crate::sync::Arc;
use crate::{Sharded, random_u64};

/// A station with whatever a face keeps beside it.
pub trait StationCell: Send + Sync {
    /// Tells the station what happened and carries out what it says, without blocking for long.
    fn handle(&self, input: Input);

    /// Closes the station.
    fn close(&self);

    /// Whether nothing is going on and nobody sits here.
    fn is_idle(&self) -> bool;

    /// Whether the store may know this owner from the station.
    fn knows(&self, owner: Owner) -> bool;
}

/// The stations of a client. They are made when they are needed; idle ones are let go when there are many.
pub struct Stations<C> {
    policy: Policy,
    floor: Floor,
    cells: Sharded<Cells<C>>,
}

/// Some of them.
struct Cells<C> {
    by_name: HashMap<LockName, Arc<C>>,
    tidy_at: usize,
    phase: Phase,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Open,
    Closed,
}

/// How many stations each part keeps without a look at which of them are idle. Where each lock has a
/// counter of its own, the highest token is forgotten with the station.
const STATIONS_KEPT: usize = 32;

impl<C: StationCell> Stations<C> {
    /// No stations yet.
    pub fn new(policy: Policy) -> Self {
        Self { policy, floor: Floor::default(), cells: Sharded::default() }
    }

    /// The station of a lock, made if there is none.
    ///
    /// # Errors
    /// The system's random source failing.
    pub fn cell(&self, name: &LockName, make: impl FnOnce(Station) -> Arc<C>) -> io::Result<Arc<C>> {
        let mut cells = self.cells.of(name);
        if let Some(cell) = cells.by_name.get(name) {
            return Ok(Arc::clone(cell));
        }
        cells.tidy();
        let cell = make(Station::new(name.clone(), self.policy, random_u64()?).sharing(&self.floor));
        if cells.phase == Phase::Closed {
            cell.close();
        }
        cells.by_name.insert(name.clone(), Arc::clone(&cell));
        Ok(cell)
    }

    /// The station of a lock, if there is one.
    pub fn find(&self, name: &LockName) -> Option<Arc<C>> {
        self.cells.of(name).by_name.get(name).cloned()
    }

    /// Passes on what the store told. A grant is for the station that knows its owner, if one does.
    pub fn deliver(&self, event: &Event) -> Heard {
        let cells = match event {
            Event::Granted { lease, .. } => match self.find(&lease.name).filter(|cell| cell.knows(lease.owner)) {
                Some(cell) => vec![cell],
                None => return Heard::Unknown,
            },
            Event::Freed { name } => self.find(name).into_iter().collect(),
            Event::RecheckAll | _ => self.all(),
        };
        cells.iter().for_each(|cell| cell.handle(Input::Event(event.clone())));
        Heard::Taken
    }

    /// Closes all stations, and those that will be made. Gives them back.
    pub fn close(&self) -> Vec<Arc<C>> {
        self.cells.all().for_each(|mut cells| cells.phase = Phase::Closed);
        let cells = self.all();
        cells.iter().for_each(|cell| cell.close());
        cells
    }

    fn all(&self) -> Vec<Arc<C>> {
        self.cells.all().flat_map(|cells| cells.by_name.values().cloned().collect::<Vec<_>>()).collect()
    }
}

impl<C> Default for Cells<C> {
    fn default() -> Self {
        Self { by_name: HashMap::new(), tidy_at: STATIONS_KEPT, phase: Phase::Open }
    }
}

impl<C: StationCell> Cells<C> {
    fn tidy(&mut self) {
        if self.by_name.len() >= self.tidy_at {
            self.by_name.retain(|_, cell| Arc::strong_count(cell) > 1 || !cell.is_idle());
            self.tidy_at = STATIONS_KEPT.max(self.by_name.len() * 2);
        }
    }
}

impl<C> fmt::Debug for Stations<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stations").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lock_core::station::{Action, ActionId, Join, Output, Reply, Request, TurnId};
    use lock_core::{
        Answer, Capabilities, Claim, Durability, FencingToken, Lease, Moment, Note, Owner, Patience, Terms, TokenRange,
        Ttl, Waiting,
    };

    use super::*;

    /// A cell that is idle, or not.
    struct Quiet(bool);

    impl StationCell for Quiet {
        fn handle(&self, _: Input) {}
        fn close(&self) {}
        fn is_idle(&self) -> bool {
            self.0
        }
        fn knows(&self, _: Owner) -> bool {
            false
        }
    }

    #[test]
    fn idle_stations_are_let_go_when_there_are_many() {
        let stations = Stations::new(Policy::new(Capabilities::new("test", Waiting::Poll, Durability::Process)));
        let name = |n: usize| format!("lock {n}").parse().unwrap();
        let used = stations.cell(&name(0), |_| Arc::new(Quiet(true))).unwrap();
        let many = 100 * STATIONS_KEPT;
        let busy = |n: usize| n.is_multiple_of(10);
        for n in 1..=many {
            stations.cell(&name(n), |_| Arc::new(Quiet(!busy(n)))).unwrap();
        }
        assert!(stations.all().len() < many / 2);
        assert!(stations.find(&name(0)).is_some_and(|cell| Arc::ptr_eq(&cell, &used)));
        assert!(
            (1..=many).filter(|n| busy(*n)).all(|n| stations.find(&name(n)).is_some()),
            "something is going on there"
        );
    }

    #[test]
    fn a_look_at_which_are_idle_is_worth_it_only_when_there_are_twice_as_many() {
        let mut cells = Cells::<Quiet>::default();
        let add = |cells: &mut Cells<Quiet>, n: usize, idle: bool| {
            cells.by_name.insert(format!("lock {n}").parse().unwrap(), Arc::new(Quiet(idle)));
        };
        let kept = |cells: &mut Cells<Quiet>| {
            cells.tidy();
            cells.by_name.len()
        };
        (1..STATIONS_KEPT).for_each(|n| add(&mut cells, n, true));
        assert_eq!(kept(&mut cells), STATIONS_KEPT - 1);
        add(&mut cells, 0, true);
        assert_eq!(kept(&mut cells), 0);
        (0..STATIONS_KEPT).for_each(|n| add(&mut cells, n, false));
        assert_eq!(kept(&mut cells), STATIONS_KEPT);
        (STATIONS_KEPT..2 * STATIONS_KEPT - 1).for_each(|n| add(&mut cells, n, true));
        assert_eq!(kept(&mut cells), 2 * STATIONS_KEPT - 1);
        add(&mut cells, 2 * STATIONS_KEPT, true);
        assert_eq!(kept(&mut cells), STATIONS_KEPT);
    }

    /// Counts how often it was closed.
    #[derive(Default)]
    struct Closing(std::sync::atomic::AtomicUsize);

    impl Closing {
        fn times(&self) -> usize {
            self.0.load(std::sync::atomic::Ordering::SeqCst)
        }
    }

    impl StationCell for Closing {
        fn handle(&self, _: Input) {}
        fn close(&self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        fn is_idle(&self) -> bool {
            true
        }
        fn knows(&self, _: Owner) -> bool {
            false
        }
    }

    #[test]
    fn the_stations_of_a_closed_client_are_closed_the_later_ones_too() {
        let stations = Stations::new(Policy::new(Capabilities::new("test", Waiting::Poll, Durability::Process)));
        let cell = |name: &str| stations.cell(&name.parse().unwrap(), |_| Arc::new(Closing::default())).unwrap();
        let before = cell("before");
        assert_eq!(before.times(), 0);
        assert!(stations.close().iter().any(|closed| Arc::ptr_eq(closed, &before)));
        assert_eq!((before.times(), cell("after").times()), (1, 1));
    }

    /// Keeps a station.
    struct Kept(std::sync::Mutex<Station>);

    impl StationCell for Kept {
        fn handle(&self, _: Input) {}
        fn close(&self) {}
        fn is_idle(&self) -> bool {
            self.0.lock().unwrap().is_idle()
        }
        fn knows(&self, _: Owner) -> bool {
            false
        }
    }

    /// What was handed out at a station that was let go is not granted again at the next one of that name.
    #[test]
    fn a_station_that_is_let_go_leaves_its_floor_behind() {
        let shared = Capabilities::new("test", Waiting::Queue, Durability::Process).with_shared_counter();
        let stations = Stations::new(Policy::new(shared));
        let name: LockName = "a".parse().unwrap();
        for expected in [None, Some(7)] {
            let cell = stations.cell(&name, |station| Arc::new(Kept(station.into()))).unwrap();
            let claim = claim(&cell.0);
            assert_eq!(claim.1.floor.map(FencingToken::get), expected);
            grant(&cell.0, claim, 7);
            stations.cells.of(&name).by_name.clear();
        }
    }

    fn claim(station: &std::sync::Mutex<Station>) -> (ActionId, Claim) {
        let mut station = station.lock().unwrap();
        let (turn, owner) = (TurnId(1), Owner::from_random([1; 16]));
        let (patience, note) = (Patience::Forever, Note::from_wire("1@test"));
        let join = Join { turn, owner, terms: Terms::exclusive(Ttl::DEFAULT), patience, max_hold: None, note };
        station.handle_input(Moment::ORIGIN, Input::Join(join));
        match station.poll_output() {
            Some(Output::Run(Action { id, request: Request::Acquire(claim), .. })) => (id, claim),
            other => panic!("no claim: {other:?}"),
        }
    }

    fn grant(station: &std::sync::Mutex<Station>, (id, claim): (ActionId, Claim), token: u64) {
        let token = FencingToken::new(token).unwrap();
        let (tokens, valid_for) = (TokenRange::new(token, token).unwrap(), claim.terms.ttl.get());
        let lease = Lease { name: claim.name, owner: claim.owner, tokens, terms: claim.terms };
        let answer = Answer::Granted { lease, valid_for };
        station.lock().unwrap().handle_input(Moment::ORIGIN, Input::Reply(id, Reply::Acquire(Ok(answer))));
    }
}
