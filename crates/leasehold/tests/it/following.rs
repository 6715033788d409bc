//! Whole listings, and what has happened between two of them, in both forms.

use std::sync::Arc;
use std::time::Duration;

use leasehold::backend::Operation;
use leasehold::clock::{Clock, HostClock};
use leasehold::inspect::watch::Change;
use leasehold::inspect::{Entry, Listing, Query, Watch, blocking, list_all, next_changes, note};
use leasehold::memory::MemoryStore;
use leasehold::memory::faults::{Fault, Faults, Faulty};
use leasehold::{Client, ErrorKind, FencingToken, Holder};
use tokio::runtime::{Builder, Runtime};

const WITHIN: Duration = Duration::from_secs(5);

/// A store that can be made to fail, and a client that holds locks there.
struct Stage {
    runtime: Runtime,
    faults: Faults,
    locks: Client,
    blocking: leasehold::blocking::Client,
}

impl Stage {
    fn new() -> Self {
        let (store, faults) = (MemoryStore::default(), Faults::new());
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let nonblocking = Arc::new(Faulty::new(store.nonblocking(), &faults));
        let locks = runtime.block_on(async { Client::new(nonblocking).unwrap() });
        let blocking = leasehold::blocking::Client::new(Arc::new(Faulty::new(store.blocking(), &faults))).unwrap();
        Self { runtime, faults, locks, blocking }
    }

    fn acquire(&self, name: &str) -> leasehold::Guard {
        self.runtime.block_on(self.locks.mutex(name).try_acquire()).unwrap().unwrap()
    }

    fn revoke(&self, name: &str, token: FencingToken) {
        let (name, by) = (name.parse().unwrap(), note("it hangs").unwrap());
        self.runtime.block_on(self.locks.inspect().unwrap().revoke(&name, token, &by, WITHIN)).unwrap();
    }

    /// The names in a listing that takes a page for each lock, in both forms.
    fn listed(&self, pattern: &str) -> [Vec<String>; 2] {
        let query = || Query::matching(pattern).limit(1);
        let listings = [
            self.runtime.block_on(list_all(self.locks.inspect().unwrap(), query(), WITHIN)),
            blocking::list_all(self.blocking.inspect().unwrap(), query(), WITHIN),
        ];
        listings.map(|listing| listing.unwrap().entries().iter().map(|entry| entry.name.to_string()).collect())
    }

    fn watches(&self) -> [Watch; 2] {
        [(); 2]
            .map(|()| Watch::new(blocking::list_all(self.blocking.inspect().unwrap(), Query::all(), WITHIN).unwrap()))
    }

    /// What has happened since these watches began, in both forms. While it is found out, the store fails if it is to.
    fn changes(&self, [first, second]: &mut [Watch; 2], fault: Option<Fault>) -> [Vec<String>; 2] {
        let store = self.blocking.inspect().unwrap();
        let listing = blocking::list_all(store, Query::all(), WITHIN).unwrap();
        fault.into_iter().for_each(|fault| self.faults.fail_all(Operation::Inspect, fault));
        let changes = [
            self.runtime.block_on(next_changes(self.locks.inspect().unwrap(), first, listing.clone(), WITHIN)),
            blocking::next_changes(store, second, listing, WITHIN),
        ];
        let word = |Change { name, happened, .. }: Change| format!("{name} {}", happened.word());
        changes.map(|changes| changes.into_iter().map(word).collect())
    }
}

#[test]
fn all_pages_are_listed() {
    let stage = Stage::new();
    let _held = ["b", "c", "a", "other"].map(|name| stage.acquire(name));
    let expected = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(stage.listed("?"), [expected.clone(), expected]);
}

#[test]
fn an_error_ends_a_listing() {
    let stage = Stage::new();
    stage.faults.fail_all(Operation::Inspect, Fault::Refused(ErrorKind::Denied));
    let error = blocking::list_all(stage.blocking.inspect().unwrap(), Query::all(), WITHIN).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
}

#[test]
fn the_store_says_which_leases_were_revoked() {
    let stage = Stage::new();
    let [released, revoked] = ["released", "revoked"].map(|name| stage.acquire(name));
    let mut watches = stage.watches();
    stage.revoke("revoked", revoked.fencing_token());
    stage.runtime.block_on(released.release()).unwrap();
    let expected = ["released released", "revoked broken"].map(str::to_owned).to_vec();
    assert_eq!(stage.changes(&mut watches, None), [expected.clone(), expected]);
    assert_eq!(stage.changes(&mut watches, None), [Vec::<String>::new(), Vec::new()], "both were reported");
}

#[test]
fn a_store_that_fails_is_asked_once_and_the_ends_of_leases_are_unknown() {
    let stage = Stage::new();
    let held = ["a", "b", "c"].map(|name| stage.acquire(name));
    let mut watches = stage.watches();
    held.into_iter().for_each(|guard| stage.runtime.block_on(guard.release()).unwrap());
    let before = stage.faults.calls(Operation::Inspect);
    let expected = ["a ended", "b ended", "c ended"].map(str::to_owned).to_vec();
    let fault = Some(Fault::Refused(ErrorKind::Unreachable));
    assert_eq!(stage.changes(&mut watches, fault), [expected.clone(), expected]);
    // The listing, and one question in each form.
    assert_eq!(stage.faults.calls(Operation::Inspect) - before, 3);
}

/// Nobody says who ended a lease of another library. While the store fails, nobody says so of ours either, and the two must read alike.
#[test]
fn after_an_error_the_ends_of_leases_of_other_libraries_are_unknown_as_well() {
    let stage = Stage::new();
    let held = stage.acquire("a");
    let listing = blocking::list_all(stage.blocking.inspect().unwrap(), Query::all(), WITHIN).unwrap();
    let foreign = Entry::exclusive("b".parse().unwrap(), Holder::Foreign, None, 0);
    let entries = listing.entries().iter().cloned().chain([foreign]).collect();
    let now = HostClock.now();
    let mut watches = [(); 2].map(|()| Watch::new(Listing::new(now, now, Vec::clone(&entries))));
    stage.runtime.block_on(held.release()).unwrap();
    let expected = ["a ended", "b ended"].map(str::to_owned).to_vec();
    let fault = Some(Fault::Refused(ErrorKind::Unreachable));
    assert_eq!(stage.changes(&mut watches, fault), [expected.clone(), expected]);
}

/// The end of a lock that is kept for a set time is no loss, whenever it is seen.
#[test]
fn a_mark_that_ends_was_released() {
    let (hour, began) = (Duration::from_secs(60 * 60), HostClock.now());
    let entry = |name: &str| Entry::exclusive(name.parse().unwrap(), Holder::Foreign, Some(13 * hour), 0);
    let first = ["a", "nightly@2026-11-21T03:00:00Z"].map(entry).to_vec();
    let mut watch = Watch::new(Listing::new(began, began, first));
    let later = began + 14 * hour;
    let stage = Stage::new();
    let store = stage.blocking.inspect().unwrap();
    let changes = blocking::next_changes(store, &mut watch, Listing::new(later, later, Vec::new()), WITHIN);
    assert_eq!(changes.iter().map(|change| change.happened.word()).collect::<Vec<_>>(), ["lost", "released"]);
}
