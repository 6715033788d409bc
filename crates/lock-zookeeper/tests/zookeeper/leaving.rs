//! A waiter gives up, or its session ends, at the moment at which its turn comes.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_core::StoreEvent;
use test_support::bounds::wait_at_most;

use crate::support::{Client, LONG, Viewer, claim, end, meanwhile, server, url, waiting};

const ROUNDS: u64 = 50;
/// One of about a thousand delivered an event too late, before sessions waited for events that were being delivered.
const ENDINGS: usize = 300;

#[test]
fn a_waiter_that_gives_up_when_its_turn_comes_leaves_no_entry() {
    let server = server();
    let [holder, waiter] = [(); 2].map(|()| Arc::new(Client::new(&url(&server.address(), LONG))));
    let viewer = Viewer::at(&server.address());
    for round in 0..ROUNDS {
        let (held, place) = (claim("leaving"), waiting("leaving"));
        holder.take(&held);
        waiter.queue(&place, 1);
        let (leaving, left) = (Arc::clone(&waiter), place.clone());
        let leaves = meanwhile(move || {
            thread::sleep(Duration::from_micros(fastrand::u64(..2_000)));
            leaving.gives_up(&left);
        });
        thread::sleep(Duration::from_micros(fastrand::u64(..2_000)));
        holder.releases(&held);
        end(leaves);
        // Nobody releases what nobody knows: these clients accept every grant.
        wait_at_most(LONG / 10, &format!("no entry is left in round {round}"), || {
            viewer.children("/leaving").is_empty()
        });
    }
}

/// Listeners forget the owners of a session that has ended.
#[test]
fn nothing_of_a_session_is_told_after_its_end() {
    let server = server();
    let [holder, waiter] = [(); 2].map(|()| Client::new(&url(&server.address(), LONG)));
    let waiter = Arc::new(waiter);
    let mut owners = Vec::new();
    for round in 0..ENDINGS {
        let name = format!("ending {round}");
        let (held, place) = (claim(&name), waiting(&name));
        owners.push(place.owner);
        holder.take(&held);
        waiter.queue(&place, 1);
        let ending = Arc::clone(&waiter);
        let ends = meanwhile(move || {
            thread::sleep(Duration::from_micros(fastrand::u64(..1_500)));
            ending.end_session();
        });
        holder.releases(&held);
        end(ends);
    }
    let (mut ended, mut granted) = (0, 0);
    for event in waiter.events() {
        if event == StoreEvent::SessionEnded {
            ended += 1;
        } else if let StoreEvent::Granted { lease, .. } = event {
            granted += 1;
            assert!(!owners[..ended].contains(&lease.owner), "a grant is told after session {ended} has ended");
        }
    }
    assert!(ended == ENDINGS && granted > 0, "{granted} grants and {ended} ends");
}
