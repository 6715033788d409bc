//! Clients that take turns while their servers are killed, suspended and cut off.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lock_core::OnUnavailable;
use test_support::bounds::wait_for;
use test_support::{EtcdCluster, Fault, Proxy};

use crate::VERSION;
use crate::history::History;
use crate::support::{count, facade, server};

const CLIENTS: usize = 6;
/// Longer than leaders are away, because an old leader has leases ended that it takes for ended. See the test of leaders that are deposed.
const TTL: Duration = Duration::from_secs(4);
/// Shorter than that.
const SHORT_TTL: Duration = Duration::from_secs(2);
/// How long faults are injected, unless the environment says otherwise.
const STORM: Duration = Duration::from_secs(12);
/// How long there are none between two of them.
const CALM: Duration = Duration::from_millis(700);

/// A client, and its way to the servers.
struct Client {
    locks: lock_blocking::Client,
    proxies: [Proxy; 3],
    /// Whether its turns last until this ends.
    is_deaf: AtomicBool,
}

impl Client {
    fn new(cluster: &EtcdCluster) -> Self {
        let proxies = [0, 1, 2].map(|number| Proxy::start(cluster.server(number).port()));
        let hosts: Vec<_> = proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect();
        Self { locks: facade(&format!("etcd://{}", hosts.join(","))), proxies, is_deaf: AtomicBool::new(false) }
    }

    /// Takes one turn. Some last so long that they need renewals.
    fn take_turn(&self, history: &History, ttl: Duration) {
        let lock = self.locks.mutex("number").ttl(ttl).wait(10 * TTL).on_unavailable(OnUnavailable::Wait);
        let Ok(guard) = lock.acquire() else { return };
        let lasts = if fastrand::u8(..20) == 0 { ttl / 2 } else { Duration::from_millis(20) };
        let (token, read, until) = (guard.fencing_token().get(), history.begin(&guard), Instant::now() + lasts);
        while Instant::now() < until || self.is_deaf.load(Ordering::SeqCst) {
            history.go_on(&guard);
            thread::sleep(Duration::from_millis(10));
        }
        history.end(token, read);
    }

    /// Hears nothing from now on.
    fn deafen(&self) {
        self.proxies.iter().for_each(|proxy| proxy.set(Fault::Hold));
    }

    fn heal(&self) {
        self.proxies.iter().for_each(Proxy::heal);
        self.is_deaf.store(false, Ordering::SeqCst);
    }
}

/// What is done to the leader, or to clients.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Kill,
    Stop,
    Cut,
    /// As before, and then it goes on before it has found the others.
    StopAndCut,
    /// Half of the clients hear nothing for longer than a lease lasts.
    Deafen,
}

impl Trouble {
    const ALL: [Self; 5] = [Self::StopAndCut, Self::Deafen, Self::Kill, Self::Stop, Self::Cut];

    fn strike(self, cluster: &mut EtcdCluster, clients: &[Client]) {
        let leader = cluster.leader();
        let (deaf, _) = clients.split_at(CLIENTS / 2);
        match self {
            Self::Kill => cluster.server_mut(leader).kill(),
            Self::Stop => cluster.server(leader).stop(),
            Self::Cut => cluster.cut(leader),
            Self::StopAndCut => {
                cluster.server(leader).stop();
                cluster.cut(leader);
            }
            Self::Deafen => {
                deaf.iter().for_each(|client| client.is_deaf.store(true, Ordering::SeqCst));
                // Then one of them holds, or waits before the others.
                thread::sleep(CALM);
                deaf.iter().for_each(Client::deafen);
                thread::sleep(TTL);
            }
        }
        // Longer than an election.
        thread::sleep(Duration::from_millis(fastrand::u64(1500..2500)));
        match self {
            Self::Kill => cluster.server_mut(leader).restart_with_data(),
            Self::Stop => cluster.server(leader).resume(),
            Self::Cut => cluster.heal(leader),
            Self::StopAndCut => {
                cluster.server(leader).resume();
                thread::sleep(Duration::from_millis(500));
                cluster.heal(leader);
            }
            Self::Deafen => deaf.iter().for_each(Client::heal),
        }
    }
}

#[test]
fn nobody_else_holds_before_a_deadline_and_no_update_is_lost() {
    take_turns(TTL);
}

#[test]
fn the_same_with_leases_that_are_shorter_than_leaders_are_away() {
    take_turns(SHORT_TTL);
}

fn take_turns(ttl: Duration) {
    let storm = env::var("LEASEHOLD_STRESS_SECONDS").map_or(STORM, |text| Duration::from_secs(text.parse().unwrap()));
    let mut cluster = EtcdCluster::start(VERSION);
    let (history, is_over) = (History::default(), AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS).map(|_| Client::new(&cluster)).collect();
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    client.take_turn(&history, ttl);
                }
            });
        }
        let until = Instant::now() + storm;
        for trouble in Trouble::ALL.into_iter().cycle() {
            let before = history.turns();
            trouble.strike(&mut cluster, &clients);
            cluster.wait_until_serving();
            wait_for("turns go on", || history.turns() > before);
            thread::sleep(CALM);
            if Instant::now() > until {
                break;
            }
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(history.problems(), [""; 0], "{history:?}");
    drop(clients);
    wait_for("the end of all entries", || count(cluster.server(0), "leasehold/number/") == 0);
}

#[test]
fn a_client_that_does_not_look_whether_it_holds_is_found() {
    let (server, history) = (server(), History::default());
    let proxy = Proxy::start(server.port());
    let (blind, other) = (facade(&format!("etcd://127.0.0.1:{}", proxy.port())), facade(&server.url()));
    let guard = blind.mutex("blind").ttl(SHORT_TTL).acquire().unwrap();
    let read = history.begin(&guard);
    proxy.set(Fault::Hold);
    let next = other.mutex("blind").acquire().unwrap();
    history.believe(&guard, Instant::now() + TTL);
    let later = history.begin(&next);
    history.end(next.fencing_token().get(), later);
    history.end(guard.fencing_token().get(), read);
    assert_eq!((history.turns(), history.problems().len()), (1, 1), "{history:?}");
    proxy.heal();
}
