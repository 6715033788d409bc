//! Servers that forget, that are replaced by another server, or that belong to another deployment.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use lock_core::node::{Ask, NodeState, RunId, Told};
use lock_core::{Certainty, Effect, ErrorKind, Released};
use test_support::{RedisOptions, RedisServer};

use super::{ADDRESS, BOTH, EPOCH, Node, OTHER_EPOCH, Voter, acquire, fence, granted, install, mark, view};
use crate::support::{SOON, claim, eventually};

/// Asks until the client has connected to the node again.
fn look_again(node: &Node) -> lock_core::node::View {
    view(Ok(eventually("the node is found again", || node.ask(&Ask::Look, SOON))))
}

/// A way to lose data, and whether the locks are lost as well.
type Loss = (&'static str, fn(&mut RedisServer), Locks);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Locks {
    Kept,
    Lost,
}

const LOSSES: [Loss; 3] = [
    ("restarted with its data", RedisServer::restart_with_data, Locks::Kept),
    ("restarted empty", RedisServer::restart_empty, Locks::Lost),
    ("flushed", |server| server.command::<()>(&["FLUSHALL"]), Locks::Lost),
];

#[test]
fn a_node_that_may_have_forgotten_does_not_vote() {
    for (how, lose, locks) in LOSSES {
        for (facade, connect) in BOTH {
            let mut voter = Voter::start_with(connect, RedisOptions::default().append_only());
            let (job, held) = voter.take("job");
            let (before, token) = (voter.view(), held.tokens.high().get());
            lose(&mut voter.server);
            let seen = look_again(&voter.node);
            assert_eq!(seen.state, NodeState::Forgetful, "{how}, {facade}");
            assert_eq!(seen.run == before.run, how == "flushed");
            assert_eq!(voter.acquire(&claim("job"), 1).unwrap(), Told::Abstains, "{how}, {facade}");
            assert_eq!(voter.ask(&fence(&[held], EPOCH)).unwrap(), Told::Abstains, "{how}, {facade}");
            let kept = (locks == Locks::Kept).then_some((token, before.longest));
            assert_eq!((seen.counter, seen.longest), kept.unwrap_or_default(), "{how}, {facade}");
            let released = if locks == Locks::Kept { Released::Released } else { Released::NotHeld };
            assert_eq!(voter.release(&job, Certainty::Answered), released, "{how}, {facade}");

            voter.begin(OTHER_EPOCH);
            let late = claim("job");
            assert_eq!(voter.acquire(&late, 1).unwrap(), Told::Abstains, "{how}, {facade}: an earlier epoch");
            let now = granted(voter.ask(&acquire(&late, 1, OTHER_EPOCH))).0;
            assert!(now > token, "{how}, {facade}: {now} is not above {token}");
        }
    }
}

#[test]
fn a_mark_from_before_a_restart_does_not_count_after_it() {
    for (facade, connect) in BOTH {
        let mut server = RedisServer::start_with(RedisOptions::default().append_only());
        let node = connect(&server.url());
        node.ask(&mark(EPOCH), SOON).unwrap();
        server.restart_with_data();
        assert_eq!(look_again(&node).state, NodeState::Forgetful, "{facade}");
        assert_eq!(view(node.ask(&install(EPOCH), SOON)).state, NodeState::Forgetful, "{facade}");
        let marked = view(node.ask(&mark(OTHER_EPOCH), SOON)).state;
        assert!(matches!(marked, NodeState::Abstaining { epoch: OTHER_EPOCH, .. }), "{facade}: {marked:?}");
    }
}

#[test]
fn forgotten_scripts_are_loaded_again() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let flush = || voter.server.command::<()>(&["SCRIPT", "FLUSH"]);
        flush();
        let (job, held) = voter.take("job");
        flush();
        assert_eq!(voter.fence(&[held]), [lock_core::Fenced::Acknowledged], "{facade}");
        flush();
        assert_eq!(voter.release(&job, Certainty::Answered), Released::Released, "{facade}");
        flush();
        assert_eq!(voter.view().state, NodeState::Voting(EPOCH));
    }
}

/// A port behind which the server may become another.
struct Front {
    port: u16,
    server: Arc<AtomicU16>,
}

impl Front {
    fn of(server: &RedisServer) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let front = Self { port, server: Arc::new(AtomicU16::new(server.port())) };
        let behind = Arc::clone(&front.server);
        thread::spawn(move || {
            for client in listener.incoming() {
                let behind = (Ipv4Addr::LOCALHOST, behind.load(Ordering::SeqCst));
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(behind)) else { continue };
                for (mut from, mut to) in [(&client, &server), (&server, &client)]
                    .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
                {
                    thread::spawn(move || {
                        io::copy(&mut from, &mut to).ok();
                        to.shutdown(std::net::Shutdown::Both).ok();
                    });
                }
            }
        });
        front
    }

    fn lead_to(&self, server: &RedisServer) {
        self.server.store(server.port(), Ordering::SeqCst);
    }
}

#[test]
fn a_promoted_replica_does_not_pass_for_the_primary() {
    for (facade, connect) in BOTH {
        let (mut primary, replica) = (Voter::start(connect), RedisServer::start());
        let front = Front::of(&primary.server);
        let node = connect(&primary.server.url_at(front.port));
        replica.command::<()>(&["REPLICAOF", "127.0.0.1", &primary.server.port().to_string()]);
        let (_, held) = primary.take("job");
        eventually("the replica has the grant", || replica.command::<u8>(&["EXISTS", "job"]) == 1);
        let RunId(run) = view(node.ask(&Ask::Look, SOON)).run;
        assert!(replica.command::<String>(&["HGET", "leasehold:node", "seal"]).starts_with(&run));

        front.lead_to(&replica);
        primary.server.kill();
        eventually("the replica is refused", || {
            node.ask(&Ask::Look, SOON).is_err_and(|error| error.kind() == ErrorKind::Config)
        });
        replica.command::<()>(&["REPLICAOF", "NO", "ONE"]);
        let seen = look_again(&node);
        assert_eq!(seen.state, NodeState::Forgetful, "{facade}");
        assert_eq!(node.ask(&acquire(&claim("another"), 1, EPOCH), SOON).unwrap(), Told::Abstains, "{facade}");
        assert_eq!(node.ask(&fence(&[held], EPOCH), SOON).unwrap(), Told::Abstains, "{facade}");
        assert_eq!(replica.command::<u8>(&["EXISTS", "another"]), 0);
    }
}

#[test]
fn a_primary_that_becomes_a_replica_grants_nothing() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        voter.server.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
        let error = voter.acquire(&claim("job"), 1).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{facade}: {error}");
        let error = voter.acquire(&claim("job"), 1).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{facade}: {error}");
    }
}

#[test]
fn a_replica_and_a_node_of_a_cluster_are_refused() {
    let replica = RedisServer::start();
    replica.command::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    let cluster = RedisServer::start_with(RedisOptions::default().arguments(&["--cluster-enabled", "yes"]));
    for (server, told) in
        [(&replica, "is a replica; list a primary"), (&cluster, "belongs to a cluster; use standalone")]
    {
        for (facade, connect) in BOTH {
            let node = connect(&server.url());
            for ask in [Ask::Look, mark(EPOCH), acquire(&claim("job"), 1, EPOCH)] {
                let error = node.ask(&ask, SOON).unwrap_err();
                assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{facade}: {error}");
                let text = error.to_string();
                assert!(text.contains(told) && text.contains(ADDRESS), "{text}");
            }
        }
        assert_eq!(server.command::<u64>(&["DBSIZE"]), 0);
    }
}
