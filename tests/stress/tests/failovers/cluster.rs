//! A primary of a cluster is cut off from all other servers, together with a client.

use std::thread;
use std::time::Duration;

use stress::cast::{Cast, HOT};
use stress::crew::{Crew, Link, Post};
use stress::double::{doubly_held, longest_pause};
use stress::history::now;
use stress::part::Facade;
use stress::run::await_that;
use test_support::bounds::within_at_most;
use test_support::{Bus, Cluster, Fault};

use crate::{BARE, PLAY, Setting, crew, ground, is_over, judge, one_holder, post, since, turns_of};

const DWELL: Setting = "failover=dwell&max_ttl=6s";
const ACKNOWLEDGED: Setting = "failover=dwell&max_ttl=6s&replicas=1";

/// The workers. The first is cut off with the old primary, and has the lock then.
const INSIDE: usize = 0;
const OUTSIDE: usize = 1;

/// How long nobody is granted anything that is not acknowledged.
const IN_VAIN: Duration = Duration::from_secs(1);

/// The old primary and its replica, and what is between the servers.
struct Sides<'a> {
    cluster: &'a Cluster,
    bus: Bus,
    old: usize,
    replica: usize,
}

#[test]
fn a_primary_of_a_cluster_that_is_cut_off_with_its_client_lends_twice_without_a_dwell() {
    is_cut_off(BARE);
}

#[test]
fn a_primary_of_a_cluster_that_is_cut_off_with_its_client_lends_once_with_a_dwell() {
    is_cut_off(DWELL);
}

#[test]
fn a_primary_of_a_cluster_that_is_cut_off_with_its_client_lends_once_with_acknowledgements() {
    is_cut_off(ACKNOWLEDGED);
}

fn is_cut_off(setting: Setting) {
    let (cluster, bus) = Cluster::start_apart();
    within_at_most(PLAY, setting, || plays(&cluster, bus, setting));
}

fn plays(cluster: &Cluster, bus: Bus, setting: Setting) {
    let old = cluster.primary_of(cluster.hash_slot_of(HOT));
    let sides = Sides { cluster, bus, old, replica: cluster.replica_of(old) };
    let crew = authors(&sides, setting);
    let begun = now();
    sides.part(&crew);
    sides.wait_for_another_primary(setting, begun);
    if setting == ACKNOWLEDGED {
        gets_nothing(&crew, &sides);
    }
    await_that("the author outside has the lock", || !turns_of(&crew, OUTSIDE).is_empty());
    await_that("the author inside has lost it", || is_over(&crew, INSIDE));
    println!("{setting}: without a holder for {:.1?}", longest_pause(&crew.turns(), HOT, begun));
    if setting == BARE {
        assert!(doubly_held(&crew.turns()) > Duration::ZERO, "nobody had the lock twice");
        assert!(crew.register.refused() > 0, "no late write was refused");
    }
    let problems = if setting == BARE { Vec::new() } else { one_holder(&crew) };
    judge(crew, setting, problems);
}

/// The first author has the lock, and the replica does not know it unless it had to acknowledge it.
fn authors(sides: &Sides<'_>, setting: Setting) -> Crew {
    let cluster = sides.cluster;
    let mut crew = crew(ground(), &cluster.url().replace(BARE, setting), Vec::new());
    if setting != ACKNOWLEDGED {
        cluster.cut_replica_of(sides.old);
    }
    crew.join(author(Facade::Async, cluster, setting));
    await_that("the author inside has the lock", || !turns_of(&crew, INSIDE).is_empty());
    crew.join(author(Facade::Blocking, cluster, setting));
    crew
}

/// It reaches each server through a proxy of its own.
fn author(facade: Facade, cluster: &Cluster, setting: Setting) -> Post {
    let detour = cluster.detour();
    Post { proxies: detour.proxies, ..post(facade, &detour.url.replace(BARE, setting), Cast::Author) }
}

/// Nobody has the lock until the old primary is the replica of the new one.
fn gets_nothing(crew: &Crew, sides: &Sides<'_>) {
    await_that("the author inside has lost it", || is_over(crew, INSIDE));
    thread::sleep(IN_VAIN);
    assert_eq!(turns_of(crew, OUTSIDE), [], "granted without an acknowledgement");
    sides.bus.heal();
}

impl Sides<'_> {
    /// Begins the partition.
    fn part(&self, crew: &Crew) {
        let others = (0..self.cluster.servers.len()).filter(|server| *server != self.old);
        let links = others.map(|server| Link { worker: INSIDE, server }).collect::<Vec<_>>();
        crew.begin_fault(&links, Fault::Refuse);
        crew.begin_fault(&[Link { worker: OUTSIDE, server: self.old }], Fault::Refuse);
        self.cluster.notice_soon();
        self.bus.cut_off(&self.cluster.servers[self.old]);
        self.cluster.cut_replica_of(self.old);
    }

    fn wait_for_another_primary(&self, setting: Setting, begun: u64) {
        let (mut stopped, mut replaced) = (None, None);
        await_that("the old primary takes no requests, and its replica does", || {
            let cluster = self.cluster;
            stopped = stopped.or_else(|| (!cluster.takes_requests(self.old)).then(|| since(begun)));
            replaced = replaced.or_else(|| {
                (cluster.is_primary(self.replica) && cluster.takes_requests(self.replica)).then(|| since(begun))
            });
            stopped.is_some() && replaced.is_some()
        });
        println!(
            "{setting}: the old primary stopped after {stopped:.1?}, and another one took requests after {replaced:.1?}"
        );
    }
}
