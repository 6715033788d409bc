//! Three servers of which some end, hang, or are cut off.

use std::thread;
use std::time::{Duration, Instant};

use lock_core::{BackendError, BlockingBackend, Certainty, Claim, ErrorKind, OnUnavailable};
use test_support::bounds::{wait_at_most, wait_for};
use test_support::{EtcdCluster, Fault, Proxy};

use crate::VERSION;
use crate::support::{Client, claim, count, facade, waiting};

/// How long a request may take here.
const TIME: Duration = Duration::from_secs(2);
/// How long it then takes at most, on a busy machine.
const TIME_AND_MORE: Duration = Duration::from_secs(6);

/// A URL with this server first.
fn url_from(cluster: &EtcdCluster, first: usize) -> String {
    let [second, third] = cluster.others(first);
    let ports = [first, second, third].map(|number| format!("127.0.0.1:{}", cluster.server(number).port()));
    format!("etcd://{}", ports.join(","))
}

/// Checks that a request fails in time, because the cluster does not answer.
fn fails_in_time<T: std::fmt::Debug>(ask: impl FnOnce() -> Result<T, BackendError>) {
    let asked = Instant::now();
    let error = ask().unwrap_err();
    assert!(asked.elapsed() < TIME_AND_MORE, "{:?}: {error}", asked.elapsed());
    assert!(matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unreachable), "{error}");
}

#[test]
fn waiters_and_holders_outlive_their_leader() {
    let mut cluster = EtcdCluster::start(VERSION);
    let leader = cluster.leader();
    let url = url_from(&cluster, leader);
    let (holder, waiter) = (facade(&url), facade(&url));
    let guard = holder.mutex("kept").ttl(Duration::from_secs(6)).acquire().unwrap();
    thread::scope(|scope| {
        let waits =
            scope.spawn(|| waiter.mutex("kept").on_unavailable(OnUnavailable::Wait).acquire().unwrap().fencing_token());
        wait_for("the waiter", || count(cluster.server(leader), "leasehold/kept/") == 2);
        cluster.server_mut(leader).kill();
        let until = guard.valid_until();
        wait_for("a renewal", || guard.valid_until() > until + Duration::from_secs(1));
        guard.verify().unwrap();
        let token = guard.fencing_token();
        guard.release().unwrap();
        assert!(waits.join().unwrap() > token);
    });
}

#[test]
fn claims_go_to_the_others_while_a_leader_hangs() {
    let cluster = EtcdCluster::start(VERSION);
    let leader = cluster.leader();
    let client = Client::new(&url_from(&cluster, leader));
    let before = client.take(&claim("hangs"));
    cluster.server(leader).stop();
    let free = claim("free");
    wait_for("a grant", || client.store.acquire(&free, TIME));
    client.releases(&free);
    assert!(client.renew(&before).unwrap().is_some());
}

#[test]
fn without_a_majority_requests_fail_in_time_and_leases_last() {
    let mut cluster = EtcdCluster::start(VERSION);
    let client = Client::new(&cluster.url());
    let (held, free) = (claim("held"), claim("free"));
    let lease = client.take(&held);
    let until = client.renew_until(&lease).unwrap();
    for way in ["suspended", "killed"] {
        let leader = cluster.leader();
        let [_, gone] = cluster.others(leader);
        let gone = [leader, gone];
        for server in gone {
            if way == "killed" { cluster.server_mut(server).kill() } else { cluster.server(server).stop() }
        }
        fails_in_time(|| client.store.acquire(&free, TIME));
        fails_in_time(|| client.store.renew(std::slice::from_ref(&lease), TIME));
        fails_in_time(|| client.store.release(&free.release(Certainty::Unknown), TIME));
        fails_in_time(|| client.store.fence(&lease, TIME));
        for server in gone {
            if way == "killed" {
                cluster.server_mut(server).restart_with_data()
            } else {
                cluster.server(server).resume()
            }
        }
        let renewed = wait_for("a renewal", || client.renew_until(&lease));
        assert!(renewed > until, "it was not lost, and not renewed meanwhile");
        cluster.wait_until_serving();
    }
    wait_for("a release", || client.try_release(&held).ok());
    client.take(&claim("held"));
}

#[test]
fn who_is_cut_off_with_an_old_leader_finds_the_others() {
    let cluster = EtcdCluster::start(VERSION);
    let leader = cluster.leader();
    let holder = facade(&url_from(&cluster, cluster.others(leader)[0]));
    let waiter = facade(&url_from(&cluster, leader));
    let both = ["one", "two"];
    let [one, two] = both.map(|name| holder.mutex(name).acquire().unwrap());
    let kept = waiter.mutex("kept").ttl(Duration::from_secs(6)).acquire().unwrap();
    thread::scope(|scope| {
        let waits = both.map(|name| {
            scope.spawn({
                let waiter = &waiter;
                move || waiter.mutex(name).on_unavailable(OnUnavailable::Wait).acquire().unwrap().fencing_token()
            })
        });
        let server = cluster.server(leader);
        wait_for("the waiters", || both.iter().all(|name| count(server, &format!("leasehold/{name}/")) == 2));
        cluster.cut(leader);
        // The first one is released while nobody leads, the second one after that.
        let token = one.fencing_token();
        drop(one);
        cluster.leader();
        let until = kept.valid_until();
        wait_for("a renewal", || kept.valid_until() > until + Duration::from_secs(1));
        drop(two);
        let tokens = waits.map(|wait| wait.join().unwrap());
        assert!(tokens[0] > token);
        kept.verify().unwrap();
        cluster.heal(leader);
    });
}

#[test]
fn slow_ways_are_only_slow() {
    let cluster = EtcdCluster::start(VERSION);
    let (proxies, url) = ways(&cluster);
    let (far, near) = (facade(&url), facade(&cluster.url()));
    proxies.iter().for_each(|proxy| proxy.set(Fault::Delay(Duration::from_millis(60))));
    let guard = far.mutex("far").ttl(Duration::from_secs(6)).acquire().unwrap();
    let until = guard.valid_until();
    wait_for("a renewal", || guard.valid_until() > until + Duration::from_secs(1));
    thread::scope(|scope| {
        let waits =
            scope.spawn(|| near.mutex("far").on_unavailable(OnUnavailable::Wait).acquire().unwrap().fencing_token());
        guard.verify().unwrap();
        let token = guard.fencing_token();
        guard.release().unwrap();
        assert!(waits.join().unwrap() > token);
    });
    assert!(proxies.iter().any(|proxy| proxy.fired() > 0));
}

#[test]
fn leases_are_renewed_over_very_slow_ways() {
    let cluster = EtcdCluster::start(VERSION);
    let (proxies, url) = ways(&cluster);
    let client = Client::new(&url);
    let lease = client.take(&claim("very far"));
    proxies.iter().for_each(|proxy| proxy.set(Fault::Delay(Duration::from_millis(250))));
    wait_for("a renewal", || client.renew(&lease).is_ok_and(|lasts| lasts > Some(Duration::from_secs(50))));
    assert!(client.renew(&lease).unwrap() > Some(Duration::from_secs(50)), "the client knows by now how slow they are");
}

/// A proxy before each server, and the URL over all of them.
fn ways(cluster: &EtcdCluster) -> ([Proxy; 3], String) {
    let proxies = [0, 1, 2].map(|number| Proxy::start(cluster.server(number).port()));
    let hosts: Vec<_> = proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect();
    let url = format!("etcd://{}", hosts.join(","));
    (proxies, url)
}

/// How many leases of etcd there are.
fn leases(cluster: &EtcdCluster) -> usize {
    // Behind a line that says how many there are.
    cluster.server(0).run(&["lease", "list"]).lines().skip(1).count()
}

#[test]
fn a_hundred_claims_at_servers_that_hang_end_in_time_and_leave_nothing() {
    const CLAIMS: usize = 100;
    let cluster = EtcdCluster::start(VERSION);
    let client = Client::new(&cluster.url());
    // Their leases are used again, so that the claims below write at once.
    let earlier: Vec<_> = (0..CLAIMS / 2).map(|number| claim(&format!("earlier {number}"))).collect();
    earlier.iter().for_each(|claim| drop(client.take(claim)));
    earlier.iter().for_each(|claim| client.releases(claim));
    let claims: Vec<Claim> = (0..CLAIMS).map(|number| waiting(&format!("crowd {}", number % 10))).collect();
    (0..3).for_each(|number| cluster.server(number).stop());
    let asked = Instant::now();
    thread::scope(|scope| {
        for claim in &claims {
            let store = &client.store;
            scope.spawn(move || {
                store.acquire(claim, TIME).unwrap_err();
                store.release(&claim.release(Certainty::Unknown), TIME).unwrap_err();
            });
        }
    });
    assert!(asked.elapsed() < 2 * TIME_AND_MORE, "{:?}", asked.elapsed());
    (0..3).for_each(|number| cluster.server(number).resume());
    cluster.wait_until_serving();
    // As stations do: a claim that failed is given up until that is answered.
    for claim in &claims {
        wait_for("an answer", || client.store.release(&claim.release(Certainty::Unknown), TIME));
    }
    // Before their leases end.
    wait_at_most(Duration::from_secs(20), "the end of all entries", || {
        count(cluster.server(0), "leasehold/crowd") == 0
    });
    let leases = leases(&cluster);
    // Each request may have been carried out late. These leases end by themselves.
    assert!(leases <= 4 * CLAIMS, "{leases}");
}

#[test]
fn a_claim_that_is_asked_again_at_servers_that_hang_leaves_few_leases() {
    let cluster = EtcdCluster::start(VERSION);
    let (client, claim) = (Client::new(&cluster.url()), claim("crowd"));
    (0..3).for_each(|number| cluster.server(number).stop());
    for _ in 0..50 {
        client.store.acquire(&claim, TIME / 20).unwrap_err();
    }
    (0..3).for_each(|number| cluster.server(number).resume());
    cluster.wait_until_serving();
    wait_for("a grant", || client.try_take(&claim));
    let leases = leases(&cluster);
    assert!(leases < 20, "{leases}");
}
