//! The requests about the node itself: whether it votes, and in which deployment.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Membership, NodeState, Record, Recording, RunId, Told};
use lock_core::{Certainty, FencingToken, Released};
use test_support::{RedisOptions, RedisServer};

use super::{
    ADDRESS, BOTH, EPOCH, OTHER_EPOCH, Voter, acquire, fence, granted, install, lease, mark, membership, record,
    tombstone, view,
};
use crate::support::{SOON, claim};

/// In microseconds.
const SECOND: u64 = 1_000_000;

#[test]
fn a_new_node_abstains_until_its_epoch_is_installed() {
    for (facade, connect) in BOTH {
        let server = RedisServer::start();
        let node = connect(&server.url());
        let ask = |ask: &Ask| node.ask(ask, SOON);
        let new = view(ask(&Ask::Look));
        assert_eq!((new.state, new.counter, new.longest), (NodeState::Forgetful, 0, Duration::ZERO), "{facade}");
        assert_eq!((new.membership, new.evicts), (None, None));
        let (RunId(run), claim) = (new.run, claim("job"));
        assert!(server.command::<String>(&["INFO", "server"]).contains(&format!("run_id:{run}")));
        assert_eq!(ask(&acquire(&claim, 1, EPOCH)).unwrap(), Told::Abstains);
        assert_eq!(ask(&fence(&[lease(&claim, 9)], EPOCH)).unwrap(), Told::Abstains);
        assert_eq!(view(ask(&install(EPOCH))).state, NodeState::Forgetful, "{facade}: nobody marked it");
        assert_eq!(server.command::<u64>(&["DBSIZE"]), 0, "{facade}: something was written");

        for epoch in [EPOCH, OTHER_EPOCH] {
            let NodeState::Abstaining { epoch, .. } = view(ask(&mark(epoch))).state else { panic!("{facade}") };
            assert_eq!(epoch, EPOCH, "the first who marks decides");
        }
        let waiting = view(ask(&install(OTHER_EPOCH))).state;
        assert!(matches!(waiting, NodeState::Abstaining { epoch: EPOCH, .. }), "{facade}: {waiting:?}");
        assert_eq!(ask(&acquire(&claim, 1, EPOCH)).unwrap(), Told::Abstains);
        let installed = view(ask(&install(EPOCH)));
        assert_eq!((installed.state, installed.longest), (NodeState::Voting(EPOCH), Duration::from_secs(7)));
        assert_eq!(installed.membership, Some(membership()));
        assert!(installed.counter > new.clock.0 && installed.counter <= installed.clock.0, "raised to the clock");
        assert_eq!(ask(&acquire(&claim, 1, OTHER_EPOCH)).unwrap(), Told::Abstains);
        granted(ask(&acquire(&claim, 1, EPOCH)));
    }
}

#[test]
fn it_says_how_long_it_has_abstained() {
    let server = RedisServer::start();
    for (facade, connect) in BOTH {
        server.command::<()>(&["FLUSHALL"]);
        let node = connect(&server.url());
        node.ask(&mark(EPOCH), SOON).unwrap();
        let since: u64 = server.command(&["HGET", "leasehold:node", "since"]);
        server.command::<()>(&["HSET", "leasehold:node", "since", &(since - 60 * SECOND).to_string()]);
        let abstaining = view(node.ask(&mark(OTHER_EPOCH), SOON)).state;
        let NodeState::Abstaining { epoch: EPOCH, since } = abstaining else { panic!("{facade}: {abstaining:?}") };
        assert!((60..80).contains(&since.as_secs()), "{since:?}");
    }
}

#[test]
fn late_requests_do_not_change_who_votes() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        voter.take("job");
        let before = voter.view();
        let late_install = Ask::Install {
            moves: 0,
            epoch: EPOCH,
            counter: FencingToken::MAX.get(),
            longest: Duration::from_secs(900),
            membership: membership().into(),
        };
        for late in [mark(EPOCH), mark(OTHER_EPOCH), install(EPOCH), late_install, install(OTHER_EPOCH)] {
            let after = view(voter.ask(&late));
            assert_eq!((after.state, after.counter), (before.state, before.counter), "{facade}: {late:?}");
            assert_eq!((after.longest, after.membership), (before.longest, before.membership.clone()));
        }
    }
}

#[test]
fn installing_lowers_neither_the_counter_nor_the_longest_ttl() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let ahead = voter.clock() + 3600 * SECOND;
        voter.set("fence", ahead);
        voter.set("longest", 60_000);
        voter.server.command::<()>(&["HDEL", "leasehold:node", "seal"]);
        voter.begin(OTHER_EPOCH);
        let view = voter.view();
        assert_eq!((view.counter, view.longest), (ahead, Duration::from_secs(60)), "{facade}");
    }
}

#[test]
fn the_last_epoch_that_began_at_a_member_is_recorded_once() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let recorded = |recording, seconds| match voter.ask(&record(recording, Duration::from_secs(seconds))) {
            Ok(Told::Records(answers)) => answers[0],
            other => panic!("{facade}: {other:?}"),
        };
        let begins = Recording::Begins(OTHER_EPOCH);
        assert_eq!(recorded(Recording::Nothing, 600), None, "{facade}");
        assert_eq!(recorded(begins, 600), Some(Record { epoch: OTHER_EPOCH, age: Duration::ZERO }), "{facade}");
        let key = "leasehold:seen:the-second-node:7001";
        let kept = || voter.value(key).unwrap().strip_prefix("0000000000000002 ").unwrap().parse::<u64>().unwrap();
        let put = |at: u64| {
            voter.server.command::<()>(&["SET", key, &format!("0000000000000002 {at}"), "KEEPTTL"]);
        };
        assert!((500_000..=600_000).contains(&voter.left(key)));
        let at = kept();
        put(at - 60 * SECOND);
        let age = recorded(begins, 6000).unwrap().age.as_secs();
        assert!((60..80).contains(&age), "{facade}: {age}");
        assert!(voter.left(key) <= 600_000, "{facade}: its first record decides how long it is kept");
        put(at + 3600 * SECOND);
        let looked = recorded(Recording::Nothing, 600);
        assert_eq!(
            looked,
            Some(Record { epoch: OTHER_EPOCH, age: Duration::ZERO }),
            "{facade}: a clock that was set back"
        );
        assert!(kept() > at + 3500 * SECOND, "{facade}: a look changes nothing");
        assert_eq!(recorded(begins, 600).unwrap().age, Duration::ZERO, "{facade}");
        assert!((at..at + 60 * SECOND).contains(&kept()), "{facade}: it begins anew, by the clock as it is now");
        assert!(recorded(Recording::BeginsAnew(OTHER_EPOCH), 600).is_some() && kept() < at + 60 * SECOND, "{facade}");
        assert_eq!(recorded(Recording::Begins(EPOCH), 600).unwrap().epoch, EPOCH, "{facade}: the last writer wins");
        assert_eq!(recorded(Recording::Nothing, 600).unwrap().epoch, EPOCH, "{facade}");
    }
}

#[test]
fn a_mark_names_its_deployment() {
    for (facade, connect) in BOTH {
        let server = RedisServer::start();
        let node = connect(&server.url());
        let other = Membership { members: vec![ADDRESS.into()], max_ttl: Duration::from_secs(9) };
        let marking = Ask::Mark { epoch: EPOCH, membership: other.clone().into() };
        let marked = view(node.ask(&marking, SOON));
        assert_eq!((marked.membership, marked.marked_for.as_ref()), (None, Some(&other)), "{facade}");
        let again = view(node.ask(&mark(OTHER_EPOCH), SOON));
        assert_eq!(again.marked_for, Some(other), "{facade}: the first mark stays");
        let installed = view(node.ask(&install(EPOCH), SOON));
        assert_eq!((installed.membership, installed.marked_for), (Some(membership()), None), "{facade}");
    }
}

#[test]
fn a_node_that_moves_abstains_and_still_releases() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let (job, held) = voter.take("job");
        let mut elsewhere = membership();
        elsewhere.members.pop();
        let (to, predecessor) = (elsewhere.clone().into(), membership().into());
        let seen = Some(membership().into());
        let moving = Ask::Move { epoch: OTHER_EPOCH, seen, membership: to, predecessor, moves: 1 };
        let moved = view(voter.ask(&moving));
        assert_eq!(moved.predecessor, Some(membership()), "{facade}");
        assert!(matches!(moved.state, NodeState::Abstaining { epoch: OTHER_EPOCH, .. }), "{facade}: {moved:?}");
        assert_eq!((moved.membership.as_ref(), moved.counter), (Some(&elsewhere), held.tokens.high().get()));
        assert_eq!(voter.acquire(&job, 1).unwrap(), Told::Abstains);
        assert_eq!(voter.ask(&fence(&[held], EPOCH)).unwrap(), Told::Abstains);
        assert_eq!(voter.release(&job, Certainty::Answered), Released::Released, "{facade}");
        let given_up = claim("job");
        assert_eq!(voter.release(&given_up, Certainty::Unknown), Released::NotHeld);
        assert!(voter.left(&tombstone(&given_up)) > 0);
        let installed = view(voter.ask(&install(EPOCH)));
        assert!(matches!(installed.state, NodeState::Abstaining { epoch: OTHER_EPOCH, .. }), "{facade}");
        assert_eq!(view(voter.ask(&install(OTHER_EPOCH))).state, NodeState::Voting(OTHER_EPOCH));
        assert_eq!(view(voter.ask(&moving)).state, NodeState::Voting(OTHER_EPOCH), "{facade}: a late duplicate");
    }
}

#[test]
fn a_move_marks_a_node_that_knew_a_deployment_and_forgot() {
    for (facade, connect) in BOTH {
        let mut elsewhere = membership();
        elsewhere.members.pop();
        let moving = |epoch| {
            let (seen, predecessor) = (Some(membership().into()), membership().into());
            Ask::Move { epoch, seen, membership: elsewhere.clone().into(), predecessor, moves: 1 }
        };
        let marked_for = |voter: &Voter, ask: &Ask| view(voter.ask(ask)).marked_for;
        let forget = |voter: &Voter| {
            voter.server.command::<()>(&["HSET", "leasehold:node", "seal", "another-run:0000000000000001"]);
        };
        let voter = Voter::start(connect);
        assert_eq!(marked_for(&voter, &moving(OTHER_EPOCH)), None, "{facade}: it remembers");
        assert_eq!(marked_for(&voter, &moving(EPOCH)), None, "{facade}: it remembers since it was moved");
        let voter = Voter::start(connect);
        forget(&voter);
        assert_eq!(marked_for(&voter, &moving(OTHER_EPOCH)), Some(elsewhere.clone()), "{facade}: it forgot");
        assert_eq!(marked_for(&voter, &install(OTHER_EPOCH)), None, "{facade}: it votes");
        let voter = Voter::start(connect);
        forget(&voter);
        assert_eq!(marked_for(&voter, &mark(EPOCH)), Some(membership()), "{facade}");
        assert_eq!(marked_for(&voter, &moving(OTHER_EPOCH)), Some(membership()), "{facade}: the mark stays");
        voter.server.command::<()>(&["FLUSHALL"]);
        view(voter.ask(&mark(EPOCH)));
        assert_eq!(marked_for(&voter, &moving(OTHER_EPOCH)), None, "{facade}: it knew no deployment");
    }
}

/// What was seen is the deployment of the node, or the one that marked it if it knows none.
#[test]
fn a_move_that_finds_another_deployment_changes_nothing() {
    let [elsewhere, there] =
        ["127.0.0.1:1", "127.0.0.1:2"].map(|one| Membership::new(vec![one.into()], membership().max_ttl));
    let longer = Membership { max_ttl: membership().max_ttl * 2, ..membership() };
    let moving = |epoch, seen: Option<&Membership>, to: &Membership| {
        let (seen, membership) = (seen.cloned().map(Arc::new), Arc::new(to.clone()));
        Ask::Move { epoch, seen, membership, predecessor: self::membership().into(), moves: 1 }
    };
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let (job, _) = voter.take("job");
        for seen in [None, Some(&elsewhere), Some(&longer)] {
            let found = view(voter.ask(&moving(OTHER_EPOCH, seen, &there)));
            assert_eq!(
                (found.state, found.membership),
                (NodeState::Voting(EPOCH), Some(membership())),
                "{facade}: {seen:?}"
            );
        }
        // One that was sent before another one took effect.
        let late = moving(EPOCH, Some(&membership()), &there);
        view(voter.ask(&moving(OTHER_EPOCH, Some(&membership()), &elsewhere)));
        view(voter.ask(&install(OTHER_EPOCH)));
        voter.server.command::<()>(&["HSET", "leasehold:node", "members", &elsewhere.members[0]]);
        let found = view(voter.ask(&late));
        assert_eq!(
            (found.state, found.membership.as_ref()),
            (NodeState::Voting(OTHER_EPOCH), Some(&elsewhere)),
            "{facade}"
        );
        assert_eq!(voter.release(&job, Certainty::Answered), Released::Released, "{facade}");
        for (mark_it, seen, moves) in [
            (false, None, true),
            (false, Some(&elsewhere), false),
            (true, None, false),
            (true, Some(&membership()), true),
        ] {
            voter.server.command::<()>(&["FLUSHALL"]);
            if mark_it {
                view(voter.ask(&mark(EPOCH)));
            }
            let found = view(voter.ask(&moving(OTHER_EPOCH, seen, &there))).membership;
            assert_eq!(found.is_some(), moves, "{facade}: marked {mark_it}, seen {seen:?}");
        }
    }
}

#[test]
fn a_node_that_may_drop_locks_reports_its_policy() {
    let evicting = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    for (arguments, evicts) in [(&evicting[..], Some("allkeys-lru")), (&evicting[..2], None), (&evicting[2..], None)] {
        for (facade, connect) in BOTH {
            let server = RedisServer::start_with(RedisOptions::default().arguments(arguments));
            let view = view(connect(&server.url()).ask(&Ask::Look, SOON));
            assert_eq!(view.evicts.as_deref(), evicts, "{facade}: {arguments:?}");
        }
    }
}

/// The deployment is the one that was seen, because it was moved away and back meanwhile.
#[test]
fn a_move_that_a_later_one_overtook_changes_nothing() {
    let moving = |epoch, moves| {
        let (membership, predecessor) = (Arc::new(membership()), Arc::new(membership()));
        Ask::Move { epoch, seen: Some(Arc::clone(&membership)), membership, predecessor, moves }
    };
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        assert_eq!(view(voter.ask(&moving(OTHER_EPOCH, 10))).moves, 10, "{facade}");
        let install = view(voter.ask(&install(OTHER_EPOCH)));
        assert_eq!((install.moves, install.votes()), (10, true), "{facade}: an installation lowers nothing");
        // As numbers, not as text.
        let late = view(voter.ask(&moving(EPOCH, 9)));
        assert_eq!((late.moves, late.votes()), (10, true), "{facade}");
        let again = view(voter.ask(&moving(EPOCH, 10)));
        assert_eq!((again.moves, again.votes()), (10, false), "{facade}");
    }
}
