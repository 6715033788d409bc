//! Moves in which nodes lose their data, or come back with older data.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, BlockingQuorumNode as _, Epoch, Membership, View};
use lock_core::{Answer, ErrorKind};
use lock_memory::faults::Fault;
use lock_memory::node::{MemoryNode, NodeStore};
use lock_redlock::blocking::Redlock;
use lock_redlock::quorum::Purpose;

use crate::support::{MAX_TTL, Node, Rig, WITHIN, acquire, claim, granted, votes, watch};

const AWAY: Fault = Fault::Refused(ErrorKind::Unreachable);

fn list(nodes: &[usize]) -> Arc<Membership> {
    Arc::new(Membership::new(nodes.iter().map(|node| format!("node-{node}")).collect(), MAX_TTL))
}

fn take_over(client: &Redlock<Node>, from: &Arc<Membership>) {
    client.pass(Purpose::TakeOver(Arc::clone(from)), WITHIN).unwrap();
}

fn move_to(client: &Redlock<Node>, to: &Arc<Membership>) -> Result<Vec<bool>, String> {
    let report = client.pass(Purpose::Move(Arc::clone(to)), WITHIN).map_err(|error| error.to_string())?;
    Ok(report.nodes.iter().map(|node| node.view.as_ref().is_ok_and(|view| is_in(view, to))).collect())
}

fn is_in(view: &View, list: &Membership) -> bool {
    view.membership.as_ref() == Some(list)
}

fn view(node: &MemoryNode) -> View {
    node.store().view(node.clock(), &node.run())
}

/// What is left of a move that reached only these nodes.
fn reached(rig: &Rig, from: &Arc<Membership>, to: &Arc<Membership>, nodes: &[usize]) {
    for node in nodes {
        let epoch = Epoch::from_random(300 + u64::try_from(*node).unwrap());
        let (membership, predecessor) = (Arc::clone(to), Arc::clone(from));
        let seen = from.members.contains(&format!("node-{node}")).then(|| Arc::clone(from));
        rig.nodes[*node].ask(&Ask::Move { epoch, seen, membership, predecessor, moves: 1 }, WITHIN).unwrap();
    }
}

fn grants(client: &Redlock<Node>, owner: u8) -> bool {
    matches!(acquire(client, &claim(owner)), Ok(Answer::Granted { .. }))
}

/// Clients of all these lists come and go for long enough. How many of the lists grant then?
fn settled(rig: &Rig, lists: &[&[usize]]) -> usize {
    let clients: Vec<_> = lists.iter().map(|list| rig.client_of(list)).collect();
    for _ in 0..6 {
        clients.iter().for_each(|client| _ = client.pass(Purpose::Watch, WITHIN));
        rig.clock.advance(MAX_TTL * 6);
    }
    clients.iter().zip(1..).filter(|(client, owner)| grants(client, *owner)).count()
}

fn put_back_older(node: &MemoryNode, before: NodeStore) {
    node.put_back(before);
    node.restart();
}

/// Three nodes became five without the third one, and a client of the five has a lock. Then the first one restarts with data
/// from before the move.
fn put_back_after_a_move() -> (Rig, Rig, Redlock<Node>) {
    let old = Rig::founded(3);
    granted(acquire(&old.connected(), &claim(9)));
    old.clock.advance(MAX_TTL * 2);
    let before = old.nodes[0].store();
    let new = old.with_more(2);
    old.faults[2].fail_everything(AWAY);
    move_to(&old.client(), &new.membership()).unwrap();
    let client = new.client();
    take_over(&client, &old.membership());
    old.clock.advance(MAX_TTL + Duration::from_secs(2));
    watch(&client);
    granted(acquire(&client, &claim(1)));
    old.faults[2].heal_everything();
    put_back_older(&new.nodes[0], before);
    (old, new, client)
}

#[test]
fn a_node_with_data_from_before_the_move_does_not_undo_it() {
    let (old, new, client) = put_back_after_a_move();
    let stale = old.client();
    for round in 0..5 {
        _ = stale.pass(Purpose::Watch, WITHIN);
        assert!(!grants(&stale, 2), "two holders in round {round}");
        old.clock.advance(Duration::from_secs(20));
    }
    // The old command is the way out, and so is any client of the new list.
    assert_eq!(move_to(&stale, &new.membership()), Ok(vec![true; 3]));
    old.clock.advance(MAX_TTL * 2);
    watch(&client);
    old.clock.advance(MAX_TTL * 2);
    assert_eq!(votes(&watch(&client)), [true; 5]);
}

#[test]
fn a_second_move_does_not_take_a_node_with_data_from_before_the_first() {
    let (old, new, client) = put_back_after_a_move();
    let all = new.with_more(1);
    let refused = move_to(&old.client(), &list(&[0, 2, 5])).unwrap_err();
    assert!(refused.contains("belongs to a deployment of other nodes"), "{refused}");
    let third = all.client_of(&[0, 2, 5]);
    _ = third.pass(Purpose::TakeOver(old.membership()), WITHIN);
    old.clock.advance(MAX_TTL * 6);
    _ = third.pass(Purpose::Watch, WITHIN);
    assert!(!grants(&third, 3) && grants(&client, 2), "one list grants");
}

/// Moves a deployment of three to five nodes and then to six, while its last node is away.
fn moved_twice_without_the_last(old: &Rig) -> Rig {
    let five = old.with_more(2);
    let six = five.with_more(1);
    old.faults[2].fail_everything(AWAY);
    for (from, to) in [(old, &five), (&five, &six)] {
        move_to(&from.client(), &to.membership()).unwrap();
        take_over(&to.client(), &from.membership());
        old.clock.advance(MAX_TTL * 2);
        watch(&to.client());
    }
    old.faults[2].heal_everything();
    six
}

/// The stranger does not name the old list as the one before its own, which is a later one all the same.
#[test]
fn a_node_with_data_from_before_two_moves_does_not_undo_them() {
    let old = Rig::founded(3);
    let before = old.nodes[0].store();
    let six = moved_twice_without_the_last(&old);
    put_back_older(&old.nodes[0], before);
    let (stale, client) = (old.client(), six.client_of(&[1, 3, 4, 5, 0, 2]));
    for _ in 0..5 {
        _ = stale.pass(Purpose::Watch, WITHIN);
        old.clock.advance(MAX_TTL * 2);
        assert!(!grants(&stale, 2), "two lists grant");
    }
    watch(&client);
    assert!(grants(&client, 3));
}

/// All nodes that a move did not reach restart with their data. They are not what they look like after a move that succeeded.
#[test]
fn nodes_that_restart_after_an_interrupted_move_wait_until_it_is_repeated() {
    let old = Rig::founded(3);
    let new = old.with_more(2);
    reached(&new, &old.membership(), &new.membership(), &[0]);
    new.nodes[1..3].iter().for_each(MemoryNode::restart);
    assert_eq!(settled(&new, &[&[0, 1, 2], &[0, 1, 2, 3, 4]]), 0);
    assert_eq!(move_to(&old.client(), &new.membership()), Ok(vec![true; 3]));
    take_over(&new.client(), &old.membership());
    assert_eq!(settled(&new, &[&[0, 1, 2], &[0, 1, 2, 3, 4]]), 1);
}

/// Half of four nodes are moved away and back again. The others still vote in the list of four, and know nothing of leases that
/// were granted meanwhile.
#[test]
fn nodes_that_vote_from_an_earlier_time_do_not_shorten_the_wait_after_a_move() {
    let four = Rig::founded(4);
    let all = four.with_more(1);
    let (away, back) = (list(&[0, 1, 4]), four.membership());
    (2..4).for_each(|node| all.faults[node].fail_everything(AWAY));
    move_to(&four.client(), &away).unwrap();
    let there = all.client_of(&[0, 1, 4]);
    take_over(&there, &back);
    all.clock.advance(MAX_TTL * 6);
    watch(&there);
    (2..4).for_each(|node| all.faults[node].heal_everything());
    all.faults[1].fail_everything(AWAY);
    granted(acquire(&all.client_of(&[0, 1, 4]), &claim(1)).or_else(|_| {
        let client = all.client_of(&[0, 1, 4]);
        watch(&client);
        acquire(&client, &claim(1))
    }));
    all.faults[1].heal_everything();
    all.nodes[0].forget();
    move_to(&all.client_of(&[0, 1, 4]), &back).unwrap();
    let client = four.client();
    take_over(&client, &away);
    all.clock.advance(Duration::from_millis(2100));
    watch(&client);
    assert!(!grants(&client, 2), "two holders, 2.1 s after a lease of 30 s");
    all.clock.advance(MAX_TTL);
    watch(&client);
    assert!(grants(&client, 2));
}

/// A dead node is replaced. During the wait a kept one restarts empty, or dies.
#[test]
fn a_move_that_succeeded_survives_the_loss_of_a_kept_node() {
    for is_empty in [true, false] {
        let old = Rig::founded(3);
        let new = old.with_more(1);
        let to = list(&[0, 1, 3]);
        new.faults[2].fail_everything(AWAY);
        move_to(&old.client(), &to).unwrap();
        take_over(&new.client_of(&[0, 1, 3]), &old.membership());
        old.clock.advance(MAX_TTL / 2);
        new.nodes[1].forget();
        if !is_empty {
            new.faults[1].fail_everything(AWAY);
        }
        let client = new.client_of(&[0, 1, 3]);
        let report = watch(&client);
        assert!(report.unfinished_move.is_none(), "{report:?}");
        assert!(!grants(&client, 1), "the old leases may last");
        old.clock.advance(MAX_TTL + Duration::from_secs(2));
        assert_eq!(votes(&watch(&client)), [true, is_empty, true]);
        assert!(grants(&client, 1));
        // The old list has a node that comes back, and nothing else.
        new.faults[2].heal_everything();
        old.clock.advance(MAX_TTL * 6);
        assert_eq!(settled(&new, &[&[0, 1, 2]]), 0);
    }
}

/// The command, run again, takes the blank node along although its look at the old nodes finds too few.
#[test]
fn a_takeover_takes_blank_and_left_nodes_where_a_new_node_shows_that_the_move_was_decided() {
    let old = Rig::founded(3);
    let new = old.with_more(2);
    let to = list(&[0, 1, 2, 3, 4]);
    old.faults[2].fail_everything(AWAY);
    move_to(&old.client(), &to).unwrap();
    new.faults[4].fail_everything(AWAY);
    take_over(&new.client(), &old.membership());
    (0..2).for_each(|node| new.nodes[node].forget());
    new.faults[4].heal_everything();
    old.faults[2].heal_everything();
    assert!(move_to(&old.client(), &to).is_err());
    take_over(&new.client(), &old.membership());
    assert!(new.nodes.iter().all(|node| is_in(&view(node), &to)), "{:?}", new.nodes);
    assert_eq!(settled(&new, &[&[0, 1, 2], &[0, 1, 2, 3, 4]]), 1);
}

/// A new node that never voted was away while the deployment was moved back. It shows nothing of the second move to its list.
#[test]
fn a_new_node_from_an_earlier_move_shows_nothing() {
    let old = Rig::founded(3);
    let new = old.with_more(2);
    let (from, to) = (old.membership(), new.membership());
    move_to(&old.client(), &to).unwrap();
    take_over(&new.client(), &from);
    new.faults[3].fail_everything(AWAY);
    old.clock.advance(MAX_TTL * 2);
    watch(&new.client());
    // The other new one votes, and stays as it is.
    new.faults[4].fail_everything(AWAY);
    move_to(&new.client(), &from).unwrap();
    take_over(&old.client(), &to);
    old.clock.advance(MAX_TTL * 2);
    watch(&old.client());
    old.clock.advance(MAX_TTL * 2);
    assert_eq!(votes(&watch(&old.client())), [true; 3]);
    let ask = |moves| {
        let (membership, predecessor) = (Arc::clone(&to), Arc::clone(&from));
        Ask::Move { epoch: Epoch::from_random(400), seen: Some(Arc::clone(&from)), membership, predecessor, moves }
    };
    // The first command's request arrives late.
    new.nodes[0].ask(&ask(1), WITHIN).unwrap();
    assert!(is_in(&view(&new.nodes[0]), &from), "it changes nothing");
    new.nodes[0].ask(&ask(3), WITHIN).unwrap();
    (3..5).for_each(|node| new.faults[node].heal_everything());
    (1..3).for_each(|node| new.faults[node].fail_everything(AWAY));
    let stray = new.client();
    _ = stray.pass(Purpose::Watch, WITHIN);
    old.clock.advance(MAX_TTL * 6);
    let report = watch(&stray);
    assert_eq!(report.unfinished_move.as_ref(), Some(&*from), "the second and third still grant");
    assert!(!grants(&stray, 1));
    (1..3).for_each(|node| new.faults[node].heal_everything());
    assert_eq!(settled(&new, &[&[0, 1, 2], &[0, 1, 2, 3, 4]]), 1);
}

/// As an earlier version left it: a node that was replaced since names no predecessor. All restart with their data.
#[test]
fn nodes_count_as_moved_whether_or_not_they_name_the_list_before() {
    let old = Rig::founded(3);
    let new = old.with_more(1);
    let (from, to) = (old.membership(), list(&[0, 1, 3]));
    reached(&new, &from, &to, &[0, 3]);
    new.nodes[1].forget();
    let (epoch, longest) = (Epoch::from_random(77), Duration::from_secs(30));
    new.nodes[1].ask(&Ask::Mark { epoch, membership: Arc::clone(&to) }, WITHIN).unwrap();
    let install = Ask::Install { epoch, counter: 1, longest, moves: 0, membership: Arc::clone(&to) };
    new.nodes[1].ask(&install, WITHIN).unwrap();
    new.faults[2].fail_everything(AWAY);
    // The new one is away, too.
    new.faults[3].fail_everything(AWAY);
    [0, 1].iter().for_each(|node| new.nodes[*node].restart());
    assert_eq!(settled(&new, &[&[0, 1, 3]]), 1);
}

/// Two moves crossed and the last node lost its data, or one move was interrupted and the others lost theirs. Each list may have
/// voted, so none does.
#[test]
fn where_nothing_shows_which_list_follows_none_grants() {
    let (first, second): (&[usize], &[usize]) = (&[0, 1, 2, 3], &[0, 1, 2, 4]);
    for (moves, lost) in [(&[(first, 0), (second, 1)][..], &[2][..]), (&[(first, 0)], &[1, 2])] {
        let old = Rig::founded(3);
        let new = old.with_more(2);
        moves.iter().for_each(|(to, node)| reached(&new, &old.membership(), &list(to), &[*node]));
        lost.iter().for_each(|node| new.nodes[*node].forget());
        for _ in 0..3 {
            for (from, to) in [(&[0, 1, 2][..], first), (&[0, 1, 2], second), (first, second), (second, first)] {
                _ = move_to(&new.client_of(from), &list(to));
                _ = new.client_of(to).pass(Purpose::TakeOver(list(from)), WITHIN);
                _ = new.client_of(to).pass(Purpose::Init, WITHIN);
            }
            assert_eq!(settled(&new, &[&[0, 1, 2], first, second]), 0, "{moves:?}");
        }
        // The last resort: all clients stop, the leases expire, and every node of every list is emptied.
        new.nodes.iter().for_each(MemoryNode::forget);
        assert!(new.client_of(first).pass(Purpose::Init, WITHIN).is_ok());
        assert_eq!(settled(&new, &[first]), 1);
    }
}

/// It was away through two moves, and names a list of which no other node knows.
#[test]
fn a_node_that_missed_two_moves_is_fetched_by_a_move_from_its_list() {
    let old = Rig::founded(3);
    let six = moved_twice_without_the_last(&old);
    let client = six.client();
    assert_eq!(votes(&watch(&client)), [true, true, false, true, true, true]);
    assert!(is_in(&view(&old.nodes[2]), &old.membership()), "nobody knows where it belongs");
    assert_eq!(move_to(&old.client(), &six.membership()), Ok(vec![true; 3]));
    watch(&client);
    old.clock.advance(MAX_TTL * 2);
    watch(&client);
    assert_eq!(votes(&watch(&client)), [true; 6]);
}
