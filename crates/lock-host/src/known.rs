//! Which owners of a station its store may still know.

use lock_core::Owner;
use lock_core::station::{Action, ActionId, Input, Output, Reply, Request};

/// How many releases that did not end well are remembered. Chosen: a station has no more pending ones than a few.
const RELEASES_MAX: usize = 16;

/// The owners that a station asked the store for and that the store may still know: that of the last claim, whose lease
/// or place it has become, and those of releases that were not answered.
#[derive(Debug, Default)]
pub struct KnownOwners {
    asked: Option<Owner>,
    releasing: Vec<(ActionId, Owner)>,
}

impl KnownOwners {
    /// Whether a grant for this owner is the station's, or is given up by a release of it.
    pub fn contains(&self, owner: Owner) -> bool {
        self.asked == Some(owner) || self.releasing.iter().any(|(_, other)| *other == owner)
    }

    /// Whose claim came last.
    pub fn last_asked(&self) -> Option<Owner> {
        self.asked
    }

    /// Takes in what the station is about to be told.
    pub fn note_input(&mut self, input: &Input) {
        let Input::Reply(id, Reply::Release(Ok(_))) = input else { return };
        let released = self.releasing.iter().find(|(other, _)| other == id).map(|(_, owner)| *owner);
        self.releasing.retain(|(_, owner)| Some(*owner) != released);
        if self.asked == released {
            self.asked = None;
        }
    }

    /// Takes in what the station says.
    pub fn note_output(&mut self, output: &Output) {
        let Output::Run(Action { id, request, .. }) = output else { return };
        match request {
            Request::Acquire(claim) => self.asked = Some(claim.owner),
            Request::Release(request) => {
                self.releasing.retain(|(_, owner)| *owner != request.owner);
                if self.releasing.len() == RELEASES_MAX {
                    self.releasing.remove(0);
                }
                self.releasing.reserve_exact(1);
                self.releasing.push((*id, request.owner));
            }
        }
    }

    /// Nothing is going on at the station any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use lock_core::station::{Join, Station, TurnId};
    use lock_core::{
        BackendError, Capabilities, Durability, Effect, ErrorKind, Moment, Note, Operation, Patience, Policy, Released,
        RequestOrder, Terms, Ttl, Waiting,
    };

    use super::*;

    /// A station, what it asked of its store, and what is known of its owners.
    struct Bench {
        station: Station,
        now: Moment,
        known: KnownOwners,
        asked: Vec<(ActionId, Owner)>,
    }

    impl Bench {
        fn new(waiting: Waiting) -> Self {
            let store = Capabilities::new("test", waiting, Durability::Process).with_ordering(RequestOrder::InOrder);
            let station = Station::new("a".parse().unwrap(), Policy::new(store), 1);
            Self { station, now: Moment::ORIGIN, known: KnownOwners::default(), asked: Vec::new() }
        }

        fn feed(&mut self, input: Input) {
            self.known.note_input(&input);
            self.station.handle_input(self.now, input);
            while let Some(output) = self.station.poll_output() {
                self.known.note_output(&output);
                if let Output::Run(Action { id, request, .. }) = output {
                    self.asked.push(match request {
                        Request::Acquire(claim) => (id, claim.owner),
                        Request::Release(request) => (id, request.owner),
                    });
                }
            }
        }

        /// A waiter joins: whose claim goes out.
        fn join(&mut self, turn: u8) -> (ActionId, Owner) {
            let (owner, note) = (Owner::from_random([turn; 16]), Note::from_wire("1@test"));
            let (terms, turn) = (Terms::exclusive(Ttl::DEFAULT), TurnId(u64::from(turn)));
            self.feed(Input::Join(Join { turn, owner, terms, patience: Patience::Forever, max_hold: None, note }));
            self.last()
        }

        fn time_out(&mut self, claim: ActionId) {
            self.feed(Input::Reply(claim, Reply::Acquire(Err(timeout(Operation::Acquire)))));
        }

        fn released(&mut self, release: ActionId) {
            self.feed(Input::Reply(release, Reply::Release(Ok(Released::NotHeld))));
        }

        fn last(&self) -> (ActionId, Owner) {
            *self.asked.last().unwrap()
        }
    }

    fn timeout(operation: Operation) -> BackendError {
        BackendError::new("test", operation, ErrorKind::Timeout, Effect::Unknown, "no answer")
    }

    #[test]
    fn the_owner_of_the_last_claim_is_known() {
        let mut bench = Bench::new(Waiting::Queue);
        assert!(bench.known.last_asked().is_none());
        let (_, owner) = bench.join(1);
        assert_eq!(bench.known.last_asked(), Some(owner));
        assert!(bench.known.contains(owner) && !bench.known.contains(owner.successor()));
        bench.known.clear();
        assert!(!bench.known.contains(owner));
    }

    #[test]
    fn an_owner_is_known_until_its_last_release_is_answered() {
        let mut bench = Bench::new(Waiting::Poll);
        let (claim, owner) = bench.join(1);
        bench.time_out(claim);
        let (release, released) = bench.last();
        assert_eq!(owner, released);
        bench.feed(Input::Reply(release, Reply::Release(Err(timeout(Operation::Release)))));
        assert!(bench.known.contains(owner), "the release may not have arrived");
        bench.now = bench.station.next_wake().unwrap();
        bench.feed(Input::Tick);
        let (again, released) = bench.last();
        assert!(released == owner && again != release);
        bench.released(release);
        assert!(bench.known.contains(owner), "that is not the answer to the last one");
        bench.feed(Input::Leave(TurnId(1)));
        bench.released(again);
        assert!(!bench.known.contains(owner) && bench.known.last_asked().is_none());
    }

    #[test]
    fn the_release_of_an_earlier_owner_leaves_the_last_one_known() {
        let mut bench = Bench::new(Waiting::Queue);
        let (claim, earlier) = bench.join(1);
        bench.time_out(claim);
        bench.feed(Input::Leave(TurnId(1)));
        let (release, released) = bench.last();
        assert_eq!(released, earlier);
        let (_, last) = bench.join(2);
        assert!(last != earlier && bench.known.contains(last) && bench.known.contains(earlier));
        bench.released(release);
        assert!(!bench.known.contains(earlier));
        assert_eq!(bench.known.last_asked(), Some(last));
    }
}
