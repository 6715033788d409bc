//! Leaders that are deposed while they are suspended. Until they find out, they answer renewals of leases, which nobody else knows of.

use std::thread;
use std::time::{Duration, Instant};

use lock_core::{BlockingBackend, Claim, Renewed};
use test_support::bounds::wait_for;
use test_support::{EtcdCluster, Fault, Proxy};

use crate::VERSION;
use crate::support::{Client, SOON, claim, count, lasting, waiting};

/// How long a lease of etcd lasts here.
const TTL: Duration = Duration::from_secs(6);
/// When the deposed leader is resumed: not so late that it takes the leases for ended.
const RESUMED_AFTER: Duration = Duration::from_millis(5300);

/// How often a leader may hear of the new one first, or a busy machine be too late.
const ROUNDS_MAX: u32 = 6;

/// Who believes what `etcdctl` says, as Go's client does.
struct Bare<'a> {
    cluster: &'a EtcdCluster,
    lease: String,
}

impl<'a> Bare<'a> {
    /// Holds a lock.
    fn take(cluster: &'a EtcdCluster, server: usize, name: &str) -> Self {
        let granted = cluster.server(server).run(&["lease", "grant", &TTL.as_secs().to_string()]);
        let lease = granted.split_whitespace().nth(1).unwrap().to_owned();
        cluster.server(server).run(&["put", "--lease", &lease, &format!("leasehold/{name}/{lease}"), ""]);
        Self { cluster, lease }
    }

    /// Until when the lease lasts after a renewal, as the server says.
    fn renew(&self, server: usize) -> Instant {
        let sent = Instant::now();
        let told = self.cluster.server(server).run(&["lease", "keep-alive", "--once", &self.lease]);
        assert!(told.contains(&format!("TTL({})", TTL.as_secs())), "{told}");
        sent + TTL
    }
}

#[test]
fn who_believes_a_deposed_leader_is_not_alone_and_we_are() {
    let cluster = EtcdCluster::start(VERSION);
    let old = cluster.leader();
    let rest = cluster.others(old).map(|number| cluster.server(number).port());
    let ours = Client::new(&cluster.server(old).url());
    let next = Client::new(&format!("etcd://127.0.0.1:{},127.0.0.1:{}", rest[0], rest[1]));
    let lease = ours.take(&lasting(claim("ours"), TTL - Duration::from_secs(1)));
    let bare = Bare::take(&cluster, old, "bare");
    let waits = ["ours", "bare"].map(waiting);
    waits.iter().for_each(|wait| next.queue(wait, 1));
    let until = ours.renew_until(&lease).unwrap();
    bare.renew(old);
    let renewed = Instant::now();

    cluster.server(old).stop();
    cluster.cut(old);
    cluster.leader();
    thread::sleep(RESUMED_AFTER.saturating_sub(renewed.elapsed()));
    cluster.server(old).resume();
    let believed = bare.renew(old);
    let (until, ends) = thread::scope(|scope| {
        // This fails late: the transaction is not answered.
        let renewed = scope.spawn(|| ours.renew_until(&lease).unwrap_or(until));
        let ends = [0, 1].map(|number| {
            scope.spawn({
                let next = &next;
                let wait = &waits[number];
                move || granted_at(next, wait)
            })
        });
        (renewed.join().unwrap(), ends.map(|end| end.join().unwrap()))
    });
    assert!(ends[0] >= until, "{:?} too early", until - ends[0]);
    assert!(ends[1] < believed, "nothing was shown: its server was not deposed when it answered");
}

/// Waits until a waiter is granted, and asks for nothing: that would renew it.
fn granted_at(client: &Client, wait: &Claim) -> Instant {
    wait_for("a grant", || client.is_granted(wait.owner).then(Instant::now))
}

#[test]
fn a_renewal_that_waited_for_a_deposed_leader_does_not_count() {
    let cluster = EtcdCluster::start(VERSION);
    let is_shown = (0..ROUNDS_MAX).any(|round| {
        let lasts = answered_by_a_deposed_leader(&cluster, &claim(&format!("round {round}")));
        cluster.wait_until_serving();
        lasts.is_some_and(|lasts| lasts < Duration::from_secs(58))
    });
    assert!(is_shown, "nothing was shown: the leader heard of the new one before it answered");
}

/// How long a lease lasts from a renewal that was sent to a leader that was suspended and deposed. `None` if it was not answered.
fn answered_by_a_deposed_leader(cluster: &EtcdCluster, claim: &Claim) -> Option<Duration> {
    let old = cluster.leader();
    let proxy = Proxy::start(cluster.server(old).port());
    let client = Client::new(&format!("etcd://127.0.0.1:{}", proxy.port()));
    let lease = client.take(claim);
    client.renew_until(&lease).unwrap();
    cluster.server(old).stop();
    cluster.cut(old);
    let leader = cluster.leader();
    // Long enough to tell a lease that begins now from one that began with the new leader.
    thread::sleep(Duration::from_millis(4500));
    proxy.set(Fault::Delay(Duration::from_millis(50)));
    let sent = Instant::now();
    let renewed = thread::scope(|scope| {
        let renewed = scope.spawn(|| client.renew_until(&lease));
        // The renewal is there when the server goes on. The transaction comes after it has heard of the new leader.
        thread::sleep(Duration::from_millis(70));
        proxy.set(Fault::Delay(Duration::from_millis(150)));
        cluster.server(old).resume();
        thread::sleep(Duration::from_millis(20));
        cluster.heal(old);
        renewed.join().unwrap()
    });
    proxy.heal();
    let ends = cluster.ends(leader, &format!("leasehold/{}/", claim.name));
    let until = renewed.ok()?;
    assert!(until <= ends, "{:?} too long", until - ends);
    Some(until - sent)
}

#[test]
fn leases_that_are_renewed_at_the_new_leader_are_not_ended_by_the_old_one() {
    let cluster = EtcdCluster::start(VERSION);
    (0..ROUNDS_MAX).for_each(|round| renew_elsewhere(&cluster, &format!("{round} ")));
}

/// Renews leases while the old leader is suspended, for longer than they last, and looks whether they are there after it goes on.
fn renew_elsewhere(cluster: &EtcdCluster, beginning: &str) {
    let old = cluster.leader();
    let [new, _] = cluster.others(old).map(|number| cluster.server(number));
    let client = Client::new(&new.url());
    let claims = (0..50).map(|number| lasting(claim(&format!("{beginning}{number}")), Duration::from_secs(2)));
    let leases: Vec<_> = claims.map(|claim| client.take(&claim)).collect();
    cluster.server(old).stop();
    let stopped = Instant::now();
    let mut until = stopped;
    while stopped.elapsed() < Duration::from_secs(5) {
        let asked = Instant::now();
        let told = client.store.renew(&leases, SOON).unwrap_or_default();
        let lasts = told
            .iter()
            .map(|told| if let Renewed::Renewed { valid_for, .. } = told { *valid_for } else { Duration::ZERO });
        until = lasts.min().map_or(until, |lasts| asked + lasts);
    }
    cluster.server(old).resume();
    thread::sleep(Duration::from_millis(300));
    let left = count(new, &format!("leasehold/{beginning}"));
    if Instant::now() < until {
        assert_eq!(left, leases.len(), "they were to last for {:?} more", until - Instant::now());
    }
    cluster.wait_until_serving();
}
