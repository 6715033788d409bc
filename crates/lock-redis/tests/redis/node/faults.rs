//! Nodes that stop, are full, or cannot be reached; requests that arrive late.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, NodeState, Record, Recording, Told};
use lock_core::{Certainty, Claim, Effect, ErrorKind, Fenced, Queueing, Released};
use test_support::{AfterDrop, Fault, Proxy, RedisOptions, RedisServer};

use super::{
    ADDRESS, BOTH, EPOCH, OTHER_EPOCH, Voter, acquire, fence, granted, install, lease, mark, membership, record,
    release, tombstone, view,
};
use crate::breaks::fail_over_under;
use crate::faults::{evaluations, exists};
use crate::support::{SHORT, SOON, claim, eventually};

#[test]
fn a_stopped_node_means_unknown_and_the_release_undoes_the_acquire() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let job = claim("job");
        voter.server.stop();
        let error = voter.node.ask(&acquire(&job, 1, EPOCH), SHORT).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown), "{facade}: {error}");
        let first = voter.node.ask(&release(&job, Certainty::Unknown), SHORT).unwrap_err();
        voter.server.resume();
        if first.effect() == Effect::None {
            voter.release(&job, Certainty::Unknown);
        }
        eventually("the release is run", || exists(&voter.server, &tombstone(&job)));
        assert!(!exists(&voter.server, "job"), "{facade}: the acquire outlived its release");
    }
}

#[test]
fn a_late_claim_leaves_nothing_if_it_waits_behind_its_release_at_a_stopped_node() {
    for (facade, connect) in BOTH {
        let near = Voter::start(connect);
        let proxy = Proxy::start(near.server.port());
        let far = connect(&near.server.url_at(proxy.port()));
        far.ask(&Ask::Look, SOON).unwrap();
        let (job, before) = (claim("job"), evaluations(&near.server));
        proxy.set(Fault::Hold);
        let error = far.ask(&acquire(&job, 1, EPOCH), SHORT).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown), "{facade}: {error}");
        assert!(proxy.fired() > 0, "nothing was held back");
        near.server.stop();
        let error = near.node.ask(&release(&job, Certainty::Unknown), SHORT).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown), "{facade}: {error}");
        proxy.heal();
        near.server.resume();
        eventually("both are run", || evaluations(&near.server) >= before + 2);
        assert!(exists(&near.server, &tombstone(&job)), "{facade}: the release was not run");
        assert!(!exists(&near.server, "job"), "{facade}: the ghost took the lock");
    }
}

#[test]
fn a_release_whose_connection_breaks_did_it_unless_another_server_answers() {
    for (facade, connect) in BOTH {
        let (mut near, heir) = (Voter::start(connect), RedisServer::start());
        let proxy = Proxy::start(near.server.port());
        let far = connect(&near.server.url_at(proxy.port()));
        let job = claim("job");
        let give_up = || far.ask(&release(&job, Certainty::Answered), 4 * SOON).unwrap();
        granted(far.ask(&acquire(&job, 1, EPOCH), SOON));
        proxy.set(Fault::CutOneReply);
        assert_eq!((give_up(), proxy.fired()), (Told::Released(Released::Released), 1), "{facade}");
        let wish = near.clock();
        granted(far.ask(&acquire(&job, wish, EPOCH), SOON));
        let released = fail_over_under(&proxy, &mut near.server, &heir, give_up);
        assert_eq!(released, Told::Released(Released::NotHeld), "{facade}: the first try never arrived");
    }
}

#[test]
fn a_lost_reply_is_unknown_and_asking_again_finds_the_grant() {
    for (after, kind) in [(AfterDrop::Cut, ErrorKind::Unreachable), (AfterDrop::Keep, ErrorKind::Timeout)] {
        for (facade, connect) in BOTH {
            let near = Voter::start(connect);
            let proxy = Proxy::start(near.server.port());
            let far = connect(&near.server.url_at(proxy.port()));
            far.ask(&Ask::Look, SOON).unwrap();
            let job = claim("job");
            proxy.set(Fault::DropReplies(after));
            let error = far.ask(&acquire(&job, 1, EPOCH), SHORT).unwrap_err();
            assert_eq!((error.kind(), error.effect()), (kind, Effect::Unknown), "{facade}: {error}");
            assert!(proxy.fired() > 0, "no reply was dropped");
            let counter = near.counter();
            proxy.cut();
            proxy.heal();
            eventually("the node is connected to again", || far.ask(&Ask::Look, SOON));
            assert_eq!(granted(far.ask(&acquire(&job, near.clock(), EPOCH), SOON)).0, counter, "{facade}");
            assert_eq!(near.counter(), counter);
        }
    }
}

#[test]
fn a_connection_that_stays_silent_is_replaced() {
    for (facade, connect) in BOTH {
        let near = Voter::start(connect);
        let proxy = Proxy::start(near.server.port());
        let far = connect(&near.server.url_at(proxy.port()));
        far.ask(&Ask::Look, SOON).unwrap();
        proxy.set(Fault::DropReplies(AfterDrop::Keep));
        for _ in 0..6 {
            assert!(far.ask(&Ask::Look, SHORT).unwrap_err().kind().is_transient(), "{facade}");
        }
        assert!(proxy.fired() > 0);
        proxy.heal();
        eventually("another connection is used", || far.ask(&Ask::Look, SHORT));
    }
}

#[test]
fn a_full_node_grants_nothing_and_takes_the_rest() {
    for (facade, connect) in BOTH {
        let voter =
            Voter::start_with(connect, RedisOptions::default().arguments(&["--maxmemory-policy", "noeviction"]));
        let (job, held) = voter.take("job");
        let higher = lease(&job, held.tokens.high().get() + 5);
        voter.server.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        let error = voter.acquire(&claim("another"), voter.clock()).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{facade}: {error}");
        assert!(error.to_string().contains(ADDRESS), "{error}");
        assert!(matches!(voter.acquire(&claim("job"), 1), Ok(Told::Held { .. })), "{facade}");
        assert_eq!(granted(voter.acquire(&job, 1)).0, held.tokens.high().get());
        assert_eq!(voter.fence(&[higher]), [Fenced::Acknowledged], "{facade}");
        assert_eq!(voter.counter(), held.tokens.high().get() + 5);
        assert_eq!(voter.release(&job, Certainty::Unknown), Released::Released);
        let never = claim("never");
        assert_eq!(voter.release(&never, Certainty::Unknown), Released::NotHeld);
        assert!(exists(&voter.server, &tombstone(&never)), "{facade}: no tombstone in a full server");
        for recording in [Recording::Begins(EPOCH), Recording::Begins(OTHER_EPOCH)] {
            let Ok(Told::Records(recorded)) = voter.ask(&record(recording, Duration::from_secs(600))) else {
                panic!("{facade}")
            };
            assert!(
                matches!(recorded[..], [Some(Record { epoch, .. })] if recording == Recording::Begins(epoch)),
                "{facade}"
            );
        }
        voter.server.command::<()>(&["HDEL", "leasehold:node", "seal"]);
        let marked = view(voter.ask(&mark(OTHER_EPOCH))).state;
        assert!(matches!(marked, NodeState::Abstaining { epoch: OTHER_EPOCH, .. }), "{facade}: {marked:?}");
        assert_eq!(view(voter.ask(&install(OTHER_EPOCH))).state, NodeState::Voting(OTHER_EPOCH), "{facade}");
    }
}

#[test]
fn a_damaged_node_is_an_error_and_no_lock_of_another_kind() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        voter.server.command::<()>(&["SET", "leasehold:node", "damaged"]);
        for ask in [acquire(&claim("job"), 1, EPOCH), Ask::Look, mark(EPOCH)] {
            assert_eq!(voter.ask(&ask).unwrap_err().kind(), ErrorKind::Protocol, "{facade}: {ask:?}");
        }
        assert!(!exists(&voter.server, "job"));
    }
}

#[test]
fn nothing_is_connected_before_the_first_request_and_errors_name_the_node() {
    for (facade, connect) in BOTH {
        let mut server = RedisServer::start_with(RedisOptions::default().require_password("sesame"));
        let node = connect(&server.url());
        assert!(!format!("{node:?}").contains("sesame"));
        assert_eq!(node.address(), ADDRESS);
        server.kill();
        for _ in 0..2 {
            let error = node.ask(&Ask::Look, SOON).unwrap_err();
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::None), "{facade}: {error}");
            let text = error.to_string();
            assert!(text.contains(ADDRESS) && !text.contains("sesame"), "{text}");
        }
        server.restart_empty();
        assert_eq!(view(node.ask(&Ask::Look, SOON)).state, NodeState::Forgetful, "{facade}");
        let wrong = connect(&format!("redis://:opensaysme@127.0.0.1:{}", server.port()));
        let error = wrong.ask(&Ask::Look, Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{facade}: {error}");
        assert!(error.to_string().contains(ADDRESS) && !format!("{error:?}").contains("opensaysme"), "{error}");
    }
}

#[test]
fn the_rights_that_are_listed_are_enough() {
    let server = RedisServer::start();
    let rights = "+@scripting +@pubsub +info +time +get +mget +set +del +exists +pexpire +pttl +lpop +rpush +lpos +hget \
                  +hmget +hset +hdel";
    let mut words = vec!["ACL", "SETUSER", "minimal", "on", ">pw", "resetkeys", "~shop:*", "~leasehold:*"];
    words.extend(["resetchannels", "&leasehold:inbox:*", "-@all"]);
    words.extend(rights.split(' '));
    server.command::<()>(&words);
    for (facade, connect) in BOTH {
        server.command::<()>(&["FLUSHALL"]);
        let node = connect(&format!("redis://minimal:pw@127.0.0.1:{}?prefix=shop", server.port()));
        let ask = |ask: &Ask| node.ask(ask, SOON).unwrap_or_else(|error| panic!("{facade}: {ask:?}: {error}"));
        let job = claim("job");
        ask(&Ask::Look);
        ask(&mark(EPOCH));
        ask(&record(Recording::Begins(EPOCH), Duration::from_secs(9)));
        ask(&install(EPOCH));
        let token = granted(Ok(ask(&acquire(&job, 1, EPOCH)))).0;
        ask(&fence(&[lease(&job, token + 1)], EPOCH));
        ask(&acquire(&Claim { queueing: Queueing::Wanted, ..claim("job") }, 1, EPOCH));
        assert_eq!(ask(&release(&job, Certainty::Unknown)), Told::Released(Released::Released));
        let [seen, to, predecessor] = [(); 3].map(|()| Arc::new(membership()));
        ask(&Ask::Move { epoch: OTHER_EPOCH, seen: Some(seen), membership: to, predecessor, moves: 1 });
    }
}
