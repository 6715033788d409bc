//! Clients of a node in this process: async and blocking clients, hints, restarts and faults.

use std::sync::Mutex;

use lock_core::node::{AsyncQuorumNode, BlockingQuorumNode, QuorumNode};
use lock_core::{Effect, ErrorKind, EventSink, Operation, StoreEvent};
use lock_host::ManualClock;
use lock_memory::faults::{Asked, Fault, Faults, Faulty};
use lock_memory::node::MemoryNode;

use super::*;

fn manual() -> (ManualClock, MemoryNode) {
    let clock = ManualClock::new();
    let node = MemoryNode::new("one", Arc::new(clock.clone()));
    install_at(&node, EPOCH);
    (clock, node)
}

fn install_at(node: &MemoryNode, epoch: Epoch) {
    told(node, &mark(epoch));
    told(node, &install(epoch, 0));
}

fn told(node: &impl BlockingQuorumNode, ask: &Ask) -> Told {
    node.ask(ask, TTL).unwrap()
}

fn view(node: &MemoryNode) -> View {
    let Told::View(view) = told(node, &Ask::Look) else { panic!("not a view") };
    *view
}

fn release(byte: u8) -> Ask {
    Ask::Release(Arc::new(release_of(byte)))
}

/// Another client of the node, and the free locks that it is notified of.
fn listener(node: &MemoryNode) -> (MemoryNode, Arc<Mutex<Vec<String>>>) {
    let (client, heard) = (node.clone(), Arc::new(Mutex::new(Vec::new())));
    let keep = Arc::clone(&heard);
    client.listen(EventSink::new(move |event| {
        let StoreEvent::Freed { name } = event else { panic!("not a hint of a free lock: {event:?}") };
        keep.lock().unwrap().push(name.to_string());
    }));
    (client, heard)
}

fn count(heard: &Mutex<Vec<String>>) -> usize {
    heard.lock().unwrap().len()
}

#[tokio::test]
async fn async_and_blocking_clients_meet_at_one_node() {
    let (clock, node) = manual();
    let other = AsyncQuorumNode::for_keeper(&node);
    let granted = AsyncQuorumNode::ask(&other, &acquire(claim(1), 1), TTL).await.unwrap();
    assert!(matches!(granted, Told::Granted { .. }));
    let keeper = BlockingQuorumNode::for_keeper(&node);
    assert!(matches!(told(&keeper, &acquire(claim(2), 1)), Told::Held { .. }));
    clock.advance(TTL);
    assert!(matches!(told(&node, &acquire(claim(2), 1)), Told::Granted { .. }));
    assert_eq!((node.address(), other.address()), ("one", "one"));
}

#[test]
fn the_first_waiter_is_notified_of_a_release_once() {
    let (_, node) = manual();
    let ((first, first_heard), (second, second_heard)) = (listener(&node), listener(&node));
    told(&node, &acquire(claim(1), 1));
    for (client, byte) in [(&first, 2), (&second, 3), (&first, 2)] {
        told(client, &acquire(claim(byte), 1));
    }
    told(&second, &release(9));
    assert_eq!((count(&first_heard), count(&second_heard)), (0, 0), "nothing was released");
    told(&node, &release(1));
    assert_eq!((first_heard.lock().unwrap().clone(), count(&second_heard)), (vec!["invoice:42".to_owned()], 0));
    told(&first, &acquire(claim(2), 1));
    told(&first, &release(2));
    assert_eq!((count(&first_heard), count(&second_heard)), (1, 1));
    told(&node, &acquire(claim(1), 1));
    told(&node, &release(1));
    assert_eq!((count(&first_heard), count(&second_heard)), (1, 1), "nobody waits any more");
}

#[test]
fn a_client_that_does_not_wait_has_left_or_has_no_sink_is_skipped() {
    let (_, node) = manual();
    let (unwilling, deaf) = (listener(&node), node.clone());
    let (gone, waiting) = (listener(&node), listener(&node));
    told(&node, &acquire(claim(1), 1));
    told(&unwilling.0, &acquire(try_claim(2), 1));
    told(&deaf, &acquire(claim(3), 1));
    told(&gone.0, &acquire(claim(4), 1));
    told(&waiting.0, &acquire(claim(5), 1));
    drop(gone.0);
    told(&node, &release(1));
    assert_eq!((count(&unwilling.1), count(&gone.1), count(&waiting.1)), (0, 0, 1));
}

#[test]
fn a_client_that_stopped_asking_is_not_notified() {
    let (clock, node) = manual();
    let ((stopped, stopped_heard), (asking, asking_heard)) = (listener(&node), listener(&node));
    told(&node, &acquire(claim(1), 1));
    told(&stopped, &acquire(claim(2), 1));
    told(&asking, &acquire(claim(3), 1));
    clock.advance(seconds(9));
    told(&asking, &acquire(claim(3), 1));
    clock.advance(seconds(1));
    told(&node, &release(1));
    assert_eq!((count(&stopped_heard), count(&asking_heard)), (0, 1));
}

#[test]
fn a_sink_may_ask_the_node_and_own_a_client_of_it() {
    let (_, node) = manual();
    let (client, looker) = (node.clone(), node.clone());
    client.listen(EventSink::new(move |_| drop(view(&looker))));
    told(&node, &acquire(claim(1), 1));
    told(&client, &acquire(claim(2), 1));
    told(&node, &release(1));
    drop(client);
    assert!(matches!(view(&node).state, NodeState::Voting(_)));
}

#[test]
fn a_node_that_loses_its_data_stays_the_same_run() {
    let (_, node) = manual();
    told(&node, &acquire(claim(1), 1));
    let before = view(&node);
    node.forget();
    let after = view(&node);
    assert_eq!((after.state, after.counter, &after.run), (NodeState::Forgetful, 0, &before.run));
    assert_eq!(node.store().holds(node.clock()).count(), 0);
}

#[test]
fn a_node_restarts_as_another_run_with_all_its_data() {
    let (_, node) = manual();
    told(&node, &acquire(claim(1), 1));
    let before = (node.run(), node.store().counter());
    node.restart();
    assert_eq!(view(&node).state, NodeState::Forgetful);
    assert_ne!(node.run(), before.0);
    assert_eq!((node.store().counter(), node.store().holds(node.clock()).count()), (before.1, 1));
}

#[test]
fn a_node_that_goes_back_to_earlier_data_votes_as_before() {
    let (_, node) = manual();
    let earlier = node.store();
    told(&node, &acquire(claim(1), 1));
    node.put_back(earlier);
    assert!(matches!(told(&node, &acquire(claim(2), 1)), Told::Granted { .. }));
}

#[test]
fn two_addresses_of_one_node_answer_as_one_run() {
    let (_, node) = manual();
    let alias = node.listed_as("two");
    assert_eq!((alias.address(), view(&alias).run), ("two", view(&node).run));
    assert_ne!(MemoryNode::new("two", Arc::new(ManualClock::new())).run(), node.run());
}

#[test]
fn a_faulty_node_is_down_until_it_is_healed() {
    let (_, node) = manual();
    let faults = Faults::new();
    let member = Faulty::new(node.clone(), &faults);
    let keeper = BlockingQuorumNode::for_keeper(&member);
    faults.fail_everything(Fault::Refused(ErrorKind::Unreachable));
    for ask in [acquire(claim(1), 1), fence([]), release(1), Ask::Look, mark(EPOCH)] {
        for client in [&member, &keeper] {
            let error = BlockingQuorumNode::ask(client, &ask, TTL).unwrap_err();
            assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::None), "{ask:?}");
        }
    }
    assert_eq!(node.store().holds(node.clock()).count(), 0);
    faults.fail_all(Operation::Acquire, Fault::LostReply);
    faults.heal_everything();
    assert!(matches!(told(&member, &acquire(claim(1), 1)), Told::Granted { .. }));
    assert_eq!(member.address(), "one");
}

#[tokio::test]
async fn a_faulty_node_times_out_with_or_without_effect() {
    for (fault, holds) in [(Fault::LostReply, 1), (Fault::Refused(ErrorKind::Timeout), 0)] {
        let (_, node) = manual();
        let faults = Faults::new();
        let member = AsyncQuorumNode::for_keeper(&Faulty::new(node.clone(), &faults));
        faults.fail_next(Operation::Acquire, fault);
        let error = AsyncQuorumNode::ask(&member, &acquire(claim(1), 1), TTL).await.unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));
        assert_eq!(node.store().holds(node.clock()).count(), holds);
    }
}

#[test]
fn requests_to_a_faulty_node_are_counted_and_recorded() {
    let (_, node) = manual();
    let faults = Faults::new();
    let member = Faulty::new(node, &faults);
    let record = record("two", LATER_EPOCH, TTL);
    for ask in [acquire(claim(1), 1), fence([lease(1, 1, 1)]), release(1), Ask::Look, mark(EPOCH), record] {
        told(&member, &ask);
    }
    let counted = [Operation::Acquire, Operation::Fence, Operation::Release, Operation::Inspect, Operation::Connect];
    assert_eq!(counted.map(|operation| faults.ran(operation)), [1, 1, 1, 1, 2]);
    let expected = [Asked::Acquire(owner(1)), Asked::Fence(vec![owner(1)]), Asked::Release(owner(1))];
    assert_eq!(faults.asked(), expected);
}

#[test]
fn hints_pass_through_a_faulty_node() {
    let (_, node) = manual();
    let heard = Arc::new(Mutex::new(0));
    let member = Faulty::new(node.clone(), &Faults::new());
    let keep = Arc::clone(&heard);
    member.listen(EventSink::new(move |_| *keep.lock().unwrap() += 1));
    told(&node, &acquire(claim(1), 1));
    told(&member, &acquire(claim(2), 1));
    told(&node, &release(1));
    assert_eq!(*heard.lock().unwrap(), 1);
}
