//! The permits of semaphores: slots that nobody shares, and what becomes of them.

use std::collections::HashSet;
use std::time::Duration;

use lock_core::{Answer, Claim, Lease, Mode, Width};
use test_support::bounds::wait_for;
use test_support::{AfterDrop, Fault, Proxy};

use crate::support::{Client, LONG, SOON, Viewer, at, claim, end, meanwhile, server, url, waiting};

const LIMIT: u32 = 4;

fn permits(count: u32, claim: Claim) -> Claim {
    let width = Width::for_waiters(count.try_into().unwrap());
    Claim { width, ..claim.in_mode(Mode::permits(count, LIMIT).unwrap()) }
}

#[test]
fn slots_are_nodes_that_end_with_the_lease() {
    let server = server();
    let (client, viewer) = (Client::new(&url(&server.address(), LONG)), Viewer::at(&server.address()));
    let slots = || {
        let mut children = viewer.children("/permits/nodes");
        children.retain(|child| child.starts_with("slot-"));
        children.sort();
        children
    };
    let (two, one) = (permits(2, claim("permits/nodes")), permits(1, claim("permits/nodes")));
    assert_eq!(client.take(&two).slots.get(), [0, 1]);
    assert_eq!(client.take(&one).slots.get(), [2]);
    assert_eq!(slots(), ["slot-0", "slot-1", "slot-2"]);
    client.releases(&two);
    assert_eq!(slots(), ["slot-2"]);
    assert_eq!(client.take(&permits(3, claim("permits/nodes"))).slots.get(), [0, 1, 3]);
    client.is_busy(&permits(1, claim("permits/nodes")));
    assert_eq!(viewer.children("/permits/nodes").len(), 4 + 2, "a claim without a place leaves none");
}

/// Those who are granted permits at the same time take different slots, and tokens rise on each of them.
#[test]
fn racing_holders_share_no_slot_and_tokens_of_each_slot_rise() {
    let server = server();
    let clients = [0; 4].map(|_| Client::new(&url(&server.address(), LONG)));
    let works = |client: Client| {
        meanwhile(move || {
            let takes = |_| {
                let claim = permits(1, waiting("permits/racing"));
                let lease = match client.acquire(&claim, SOON).unwrap() {
                    Answer::Granted { lease, .. } => lease,
                    Answer::Queued { .. } => client.wait_for_grant(&claim),
                    other => panic!("{other:?}"),
                };
                client.releases(&claim);
                lease
            };
            (0..10).map(takes).collect::<Vec<Lease>>()
        })
    };
    let leases: Vec<Lease> = clients.map(works).into_iter().flat_map(end).collect();
    let tokens: HashSet<_> = leases.iter().map(|lease| lease.tokens.low()).collect();
    assert_eq!(tokens.len(), leases.len(), "no two grants have one token");
    assert!(leases.iter().all(|lease| matches!(lease.slots.get(), [slot] if *slot < LIMIT)));
}

/// A holder that asks again has the same slots and tokens, also over a session that does not know its lease.
#[test]
fn the_answer_that_was_lost_is_found_again() {
    let server = server();
    let proxy = Proxy::start(server.port());
    let client = Client::new(&url(&at(proxy.port()), LONG));
    let mine = permits(2, claim("permits/lost"));
    client.take(&permits(1, claim("permits/lost")));
    proxy.set(Fault::DropReplies(AfterDrop::Cut));
    assert!(client.acquire(&mine, Duration::from_secs(1)).is_err());
    proxy.heal();
    let lease = wait_for("an answer", || client.acquire(&mine, SOON));
    let Answer::Granted { lease, .. } = lease else { panic!("{lease:?}") };
    assert_eq!(lease.slots.get(), [1, 2]);
    assert_eq!(client.take(&mine), lease);
    assert!(client.renew(&lease, SOON).unwrap().is_some());
    client.releases(&mine);
    assert_eq!(client.take(&permits(3, claim("permits/lost"))).slots.get(), [1, 2, 3]);
}

/// When a holder dies, its slots are those of the next one, under higher tokens.
#[test]
fn the_slots_of_a_dead_holder_go_to_the_next_one() {
    let server = server();
    let proxy = Proxy::start(server.port());
    let (dying, next) =
        (Client::new(&url(&at(proxy.port()), Duration::from_secs(1))), Client::new(&url(&server.address(), LONG)));
    let before = dying.take(&permits(LIMIT, claim("permits/dying")));
    let waits = permits(2, waiting("permits/dying"));
    next.queue(&waits, 1);
    proxy.set(Fault::Refuse);
    proxy.cut();
    let lease = next.wait_for_grant(&waits);
    assert_eq!(lease.slots.get(), [0, 1]);
    assert!(lease.tokens.low() > before.tokens.high());
}
