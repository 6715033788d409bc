//! Nodes that become replicas and primaries again in one run, and nodes that only look like it.

use std::sync::Arc;

use lock_core::node::{Ask, NodeState, Told};
use lock_core::{Certainty, Effect, ErrorKind, Fenced, Released};
use test_support::{RedisServer, RedisVersion};

use super::{BOTH, Connect, EPOCH, OTHER_EPOCH, Voter, acquire, fence, granted, install, mark, membership, view};
use crate::promotions::{info, promote, replicate, server, server_of};
use crate::support::{SOON, claim, eventually};

impl Voter {
    fn on_a_primary(connect: Connect) -> Self {
        Self::on(server(), connect)
    }

    /// A node that does not vote yet.
    fn marked(connect: Connect) -> Self {
        let server = server();
        let node = connect(&server.url());
        node.ask(&mark(EPOCH), SOON).unwrap();
        Self { server, node, epoch: EPOCH }
    }

    /// Another server takes over, and the node returns with the data of that server. No client asks meanwhile.
    fn fail_back(&self, successor: &RedisServer, lost: impl FnOnce()) {
        let run = info(&self.server, "run_id:");
        replicate(successor, &self.server);
        promote(successor);
        eventually("the primary is alone", || info(&self.server, "connected_slaves:") == "0");
        lost();
        replicate(&self.server, successor);
        promote(&self.server);
        assert_eq!(info(&self.server, "run_id:"), run, "it is the same run");
    }

    /// Backs up, which names the history anew.
    fn back_up(&self) {
        let before = info(&self.server, "master_replid:");
        self.server.back_up();
        assert_ne!(info(&self.server, "master_replid:"), before, "the history has the old name");
    }

    fn incarnation(&self) -> String {
        format!("{}:{}", info(&self.server, "run_id:"), info(&self.server, "master_replid:"))
    }
}

#[test]
fn a_node_that_fails_back_within_one_run_does_not_vote() {
    for ((facade, connect), version) in BOTH.into_iter().zip([RedisVersion::Installed, RedisVersion::Oldest]) {
        let (voter, successor) = (Voter::on(server_of(version), connect), server_of(version));
        let (_, kept) = voter.take("job");
        let idle = connect(&voter.server.url());
        assert_eq!(view(idle.ask(&Ask::Look, SOON)).state, NodeState::Voting(EPOCH));
        let mut forgotten = None;
        voter.fail_back(&successor, || forgotten = Some(voter.take("another").1.tokens.high().get()));
        assert_eq!(voter.value("another"), None, "{facade}: nothing was lost");
        let newcomer = connect(&voter.server.url());
        for node in [&voter.node, &idle, &newcomer] {
            let another = claim("another");
            assert_eq!(node.ask(&acquire(&another, 1, EPOCH), SOON).unwrap(), Told::Abstains, "{facade}");
            let fenced = node.ask(&fence(std::slice::from_ref(&kept), EPOCH), SOON);
            assert_eq!(fenced.unwrap(), Told::Abstains, "{facade}");
            for ask in [Ask::Look, install(EPOCH)] {
                assert_eq!(view(node.ask(&ask, SOON)).state, NodeState::Forgetful, "{facade}: {ask:?}");
            }
        }
        voter.begin(OTHER_EPOCH);
        assert_eq!(voter.acquire(&claim("another"), 1).unwrap(), Told::Abstains, "{facade}: an earlier epoch");
        let now = granted(idle.ask(&acquire(&claim("another"), 1, OTHER_EPOCH), SOON)).0;
        assert!(Some(now) > forgotten, "{facade}: {now} is not above {forgotten:?}");
    }
}

#[test]
fn a_mark_from_before_a_fail_back_does_not_count_after_it() {
    for (facade, connect) in BOTH {
        let voter = Voter::marked(connect);
        voter.fail_back(&server(), || ());
        assert_eq!(view(voter.ask(&install(EPOCH))).state, NodeState::Forgetful, "{facade}");
        let marked = view(voter.ask(&mark(OTHER_EPOCH))).state;
        assert!(matches!(marked, NodeState::Abstaining { epoch: OTHER_EPOCH, .. }), "{facade}: {marked:?}");
        voter.fail_back(&server(), || ());
        let [to, predecessor] = [membership(), membership()].map(Arc::new);
        let moved =
            view(voter.ask(&Ask::Move { epoch: OTHER_EPOCH, seen: None, membership: to, predecessor, moves: 1 })).state;
        assert!(matches!(moved, NodeState::Abstaining { epoch: OTHER_EPOCH, .. }), "{facade}, not moved: {moved:?}");
    }
}

#[test]
fn a_backup_of_a_node_costs_neither_its_vote_nor_a_held_lock() {
    for (facade, connect) in BOTH {
        let voter = Voter::on_a_primary(connect);
        let (claim, held) = voter.take("job");
        voter.back_up();
        let newcomer = connect(&voter.server.url());
        for node in [&voter.node, &newcomer] {
            assert_eq!(view(node.ask(&Ask::Look, SOON)).state, NodeState::Voting(EPOCH), "{facade}");
            let told = node.ask(&fence(std::slice::from_ref(&held), EPOCH), SOON).unwrap();
            assert_eq!(told, Told::Fenced(vec![Fenced::Acknowledged]), "{facade}");
        }
        assert_eq!(voter.release(&claim, Certainty::Answered), Released::Released, "{facade}");
        voter.take("another");
        assert_eq!(voter.known("incarnation"), Some(voter.incarnation()), "{facade}: a grant renews it");
    }
}

#[test]
fn a_backup_while_a_node_abstains_costs_no_second_wait() {
    for (facade, connect) in BOTH {
        let voter = Voter::marked(connect);
        voter.back_up();
        let marked = view(voter.ask(&mark(OTHER_EPOCH))).state;
        assert!(matches!(marked, NodeState::Abstaining { epoch: EPOCH, .. }), "{facade}: {marked:?}");
        assert_eq!(view(voter.ask(&install(EPOCH))).state, NodeState::Voting(EPOCH), "{facade}");
    }
}

#[test]
fn a_seal_of_an_earlier_version_counts_until_the_first_grant_renews_it() {
    for (facade, connect) in BOTH {
        let voter = Voter::on_a_primary(connect);
        let (_, held) = voter.take("job");
        // What an earlier version leaves: none, or that of the run before, under a history with a predecessor.
        for left in [None, Some("another-run:and-its-history")] {
            voter.fail_back(&server(), || ());
            match left {
                None => voter.server.command::<()>(&["HDEL", "leasehold:node", "incarnation"]),
                Some(left) => voter.server.command::<()>(&["HSET", "leasehold:node", "incarnation", left]),
            }
            assert_eq!(voter.view().state, NodeState::Voting(EPOCH), "{facade}, {left:?}");
            assert_eq!(voter.fence(std::slice::from_ref(&held)), [Fenced::Acknowledged], "{facade}, {left:?}");
            assert_eq!(voter.known("incarnation").as_deref(), left, "{facade}");
            voter.take("another");
            assert_eq!(voter.known("incarnation"), Some(voter.incarnation()), "{facade}, {left:?}");
            voter.server.command::<()>(&["DEL", "another"]);
            voter.fail_back(&server(), || ());
            assert_eq!(voter.view().state, NodeState::Forgetful, "{facade}, {left:?}");
            voter.server.command::<()>(&["HSET", "leasehold:node", "incarnation", &voter.incarnation()]);
        }
    }
}

#[test]
fn a_former_primary_that_takes_writes_grants_nothing() {
    for (facade, connect) in BOTH {
        let (voter, primary) = (Voter::on_a_primary(connect), server());
        voter.server.command::<()>(&["CONFIG", "SET", "replica-read-only", "no"]);
        let seal = voter.known("seal").unwrap();
        // All that the next primary may have of it.
        primary.command::<()>(&["HSET", "leasehold:node", "seal", &seal, "fence", "1", "longest", "1"]);
        replicate(&voter.server, &primary);
        for ask in [acquire(&claim("job"), 1, EPOCH), mark(OTHER_EPOCH)] {
            let error = voter.ask(&ask).unwrap_err();
            assert_eq!(error.effect(), Effect::None, "{facade}: {error}");
        }
        let error = voter.ask(&Ask::Look).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{facade}: {error}");
        assert_eq!((voter.value("job"), voter.known("seal")), (None, Some(seal)), "{facade}");
    }
}
