//! Latches, which end with their leases.

use std::thread;
use std::time::Duration;

use lock_core::Ttl;
use lock_core::latch::{Act, ArrivalId, LatchState};
use test_support::EtcdServer;
use test_support::bounds::wait_for;

use crate::support::{Client, claim, server};

/// The shortest lease of the server.
const SHORT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(60);

fn arrive(client: &Client, (name, id): (&str, u64), ttl: Duration) -> LatchState {
    let id: ArrivalId = format!("id {id}").parse().unwrap();
    let call = lock_host::random_u64().unwrap();
    client.latch(name, Act::Arrive { id, call, ttl: Ttl::new(ttl).unwrap() }).unwrap().unwrap()
}

fn keys(server: &EtcdServer, name: &str) -> usize {
    server
        .run(&["get", "--prefix", "--keys-only", &format!("leasehold/leasehold-latches/{name}")])
        .matches(name)
        .count()
}

#[test]
fn arrivals_outlast_the_lease_that_they_were_written_under() {
    let (server, name) = (server(), "longer");
    let client = Client::new(&server.url());
    let first = (0..100).map(|id| arrive(&client, (name, id), SHORT)).last().unwrap();
    assert_eq!((first.arrived, arrive(&client, (name, 100), LONG).arrived), (100, 101));
    let before = keys(&server, name);
    thread::sleep(SHORT * 3);
    assert_eq!(keys(&server, name), before);
    let after = (0..100).map(|id| arrive(&client, (name, id), SHORT)).last().unwrap();
    assert_eq!((after.arrived, after.generation), (101, first.generation));
}

#[test]
fn nothing_is_left_of_a_latch_that_has_ended() {
    let (server, name) = (server(), "ended");
    let client = Client::new(&server.url());
    let states: Vec<_> = (0..20).map(|id| arrive(&client, (name, id), SHORT)).collect();
    let generation = states[0].generation;
    client.latch(name, Act::Reset { generation, ttl: Ttl::new(SHORT).unwrap() }).unwrap();
    arrive(&client, (name, 20), SHORT);
    assert!(keys(&server, name) > 2);
    wait_for("the end of all keys", || keys(&server, name) == 0);
    assert!(arrive(&client, (name, 20), SHORT).generation > generation);
}

#[test]
fn arrivals_at_the_same_time_all_count() {
    let (server, name) = (server(), "crowd");
    let crowd: Vec<_> = (0..8_u64)
        .map(|part| {
            let url = server.url();
            thread::spawn(move || {
                let client = Client::new(&url);
                // Each id arrives at two clients.
                (0..40).for_each(|id| _ = arrive(&client, (name, part / 2 * 40 + id), LONG));
            })
        })
        .collect();
    crowd.into_iter().for_each(|part| part.join().unwrap());
    assert_eq!(arrive(&Client::new(&server.url()), (name, 0), LONG).arrived, 160);
}

#[test]
fn generations_rise_over_the_loss_of_all_data() {
    let (mut server, name) = (EtcdServer::start(), "lost");
    let client = Client::new(&server.url());
    let before = arrive(&client, (name, 0), LONG);
    server.restart_empty();
    let arrived = |id| {
        let id: ArrivalId = format!("id {id}").parse().unwrap();
        client.latch(name, Act::Arrive { id, call: 1, ttl: Ttl::new(LONG).unwrap() })
    };
    let after = wait_for("an answer", || arrived(1).ok().flatten());
    assert!(after.generation > before.generation && after.arrived == 1, "{before:?}, {after:?}");
}

#[test]
fn locks_are_listed_although_many_latches_come_before_them() {
    let server = EtcdServer::start();
    let client = Client::new(&server.url());
    client.take(&claim("lock"));
    let ttl = Ttl::new(LONG).unwrap();
    (0..1100).for_each(|number| _ = client.latch(&number.to_string(), Act::Make { ttl }).unwrap());
    assert_eq!(client.list_all(), ["lock"]);
}
