//! A request loads as many rows, in as many steps, among ten thousand leases or waiters as among a hundred.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{
    Certainty, Claim, Fairness, LockName, Mode, NameKind, Note, Owner, Queueing, Slots, Terms, TokenRange, Ttl, Width,
};
use lock_host::{Clock, ManualClock};
use lock_rules::window::{self, Request, Step, Window};
use lock_rules::{Hold, Place};

use super::{ClientId, Lock, Server};
use crate::network::Remote;

const FEW: u32 = 100;
const MANY: u32 = 10_000;

fn name() -> LockName {
    "a".parse().unwrap()
}

fn permit(count: u32, limit: u32) -> Mode {
    Mode::permits(count, limit).unwrap()
}

fn owner(number: u32) -> Owner {
    let mut bytes = [7; 16];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    Owner::from_random(bytes)
}

fn claim(number: u32, mode: Mode) -> Claim {
    Claim {
        name: name(),
        owner: owner(number),
        terms: Terms { mode, ttl: Ttl::DEFAULT },
        width: Width::for_waiters(usize::try_from(mode.count()).unwrap()),
        floor: None,
        note: Note::from_wire("1@here"),
        queueing: Queueing::Wanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

/// A server on which so many hold one permit each, and as many wait for two.
fn server(holders: u32, limit: u32) -> Server {
    let clock = ManualClock::new();
    let until = clock.now() + Duration::from_secs(60);
    let hold = |number: u32| Hold {
        tokens: TokenRange::above(number.into(), Width::ONE).unwrap(),
        slots: Slots::new([number]),
        until,
        ..Hold::new(
            clock.now(),
            &claim(number, permit(1, limit)),
            TokenRange::above(0, Width::ONE).unwrap(),
            Slots::NONE,
        )
    };
    let place = |number: u32| {
        let Claim { owner, terms, width, note, .. } = claim(number, permit(2, limit));
        Place { number: number.into(), owner, terms, width, joined: None, until, note, client: 1 }
    };
    let waiters = holders + 1..=holders * 2;
    let lock = Lock {
        tail: (holders * 2).into(),
        last_token: holders.into(),
        permits: holders,
        holds: (0..holders).map(|number| (owner(number), hold(number))).collect(),
        places: waiters.map(|number| (number.into(), place(number))).collect(),
        ..Lock::default()
    };
    let server = Server::new(Arc::new(clock));
    server.tables().locks.insert(name(), lock);
    server
}

/// The steps of a request, and the rows that it loads.
fn cost<T>(server: &Server, mut request: Request<'_, Remote, T>) -> (u32, usize) {
    let (mut step, mut steps, mut rows) = (request.begin(), 0, 0);
    loop {
        steps += 1;
        step = match step {
            Step::Load(needs) => {
                let window = server.load(&name(), needs);
                rows += rows_of(&window);
                request.loaded(window)
            }
            Step::Commit(commit) => request.committed(server.commit(&name(), commit)),
            Step::Done(answer) => {
                assert!(answer.is_ok());
                return (steps, rows);
            }
        };
    }
}

fn rows_of(window: &Window<ClientId>) -> usize {
    let lists = [window.expired.len(), window.last.len(), window.first_ends.len(), window.free_slots.len()];
    lists.iter().sum::<usize>() + window.owners.len() + window.places.len() + window.above.len()
}

#[test]
fn a_request_costs_the_same_among_many() {
    let costs = [FEW, MANY].map(|holders| {
        // Nothing is free, so that new claims wait; then two permits are.
        let (full, roomy) = (server(holders, holders), server(holders, holders + 2));
        let refresh = claim(holders * 2, permit(2, holders));
        let new = claim(holders * 3, permit(1, holders));
        let leave = claim(holders + 5, permit(2, holders)).release(Certainty::Answered);
        let lease = claim(3, permit(1, holders)).lease_of(TokenRange::above(3, Width::ONE).unwrap(), Slots::new([3]));
        let end = claim(4, permit(1, holders + 2)).release(Certainty::Answered);
        [
            cost(&full, window::acquire(1, &new)),
            cost(&full, window::acquire(1, &refresh)),
            cost(&full, window::renew(&lease)),
            cost(&full, window::fence(&lease)),
            cost(&full, window::release(&leave)),
            cost(&roomy, window::release(&end)),
        ]
    });
    assert_eq!(costs[0], costs[1], "steps and rows of each request, among {FEW} and among {MANY}");
}
