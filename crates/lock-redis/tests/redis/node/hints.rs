//! Hints that a lock was freed.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use lock_core::node::{BlockingQuorumNode, QuorumNode, Told};
use lock_core::{Certainty, Claim, EventSink, Queueing, StoreEvent};
use lock_redis::RedisConfig;
use lock_redis::node::{blocking, nonblocking};

use super::{ADDRESS, BOTH, EPOCH, Voter, acquire, bridged, on_threads, on_tokio};
use crate::support::{SOON, claim, eventually};

/// How long a hint may take.
const PATIENCE: Duration = Duration::from_secs(20);
const INBOXES: &str = "leasehold:{job}:i";

fn events(node: &dyn QuorumNode) -> Receiver<StoreEvent> {
    let (told, events) = channel();
    // Nobody holds here.
    let wanted = move |event| if event == StoreEvent::RecheckHolds { Ok(()) } else { told.send(event) };
    node.listen(EventSink::new(move |event| wanted(event).unwrap_or_default()));
    events
}

/// Waits for a hint, and ignores other events.
#[track_caller]
fn freed(events: &Receiver<StoreEvent>) -> String {
    loop {
        let event = events.recv_timeout(PATIENCE).unwrap();
        if let StoreEvent::Freed { name } = event {
            return name.as_str().to_owned();
        }
        assert_eq!(event, StoreEvent::RecheckAll);
    }
}

fn waiting(name: &str) -> Claim {
    Claim { queueing: Queueing::Wanted, ..claim(name) }
}

#[track_caller]
fn is_held(node: &dyn BlockingQuorumNode, claim: &Claim) {
    let told = node.ask(&acquire(claim, 1, EPOCH), SOON).unwrap();
    assert!(matches!(told, Told::Held { .. }), "{told:?}");
}

impl Voter {
    fn inboxes(&self) -> Vec<String> {
        self.server.command(&["LRANGE", INBOXES, "0", "-1"])
    }
}

#[test]
fn the_first_listener_is_notified_of_a_freed_lock() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let (job, _) = voter.take("job");
        let [first, second] = [(); 2].map(|()| on_tokio(&voter.server.url()));
        let (told_first, told_second) = (events(&*first), events(&*second));
        voter.server.command::<()>(&["RPUSH", INBOXES, "leasehold:inbox:of-somebody-dead"]);
        for node in [&first, &first, &second, &first] {
            is_held(&**node, &waiting("job"));
        }
        let inboxes = voter.inboxes();
        assert_eq!(inboxes.len(), 3, "{facade}: each once: {inboxes:?}");
        assert!((9_000..=10_000).contains(&voter.left(INBOXES)));
        voter.release(&job, Certainty::Answered);
        assert_eq!(freed(&told_first), "job", "{facade}");
        assert_eq!(voter.inboxes(), inboxes[2..], "{facade}: one is told, and the dead are gone");
        let (next, _) = voter.take("job");
        voter.release(&next, Certainty::Unknown);
        assert_eq!(freed(&told_second), "job", "{facade}");
        assert!(voter.inboxes().is_empty());
        // A release that ends no hold notifies nobody.
        let (holder, _) = voter.take("job");
        is_held(&*first, &waiting("job"));
        voter.release(&next, Certainty::Answered);
        assert_eq!(voter.inboxes().len(), 1, "{facade}");
        voter.release(&holder, Certainty::Answered);
        assert_eq!(freed(&told_first), "job");
    }
}

#[test]
fn threads_are_notified_as_well_once_one_of_them_had_to_wait() {
    let voter = Voter::start(on_threads);
    let node = on_threads(&voter.server.url());
    let told = events(&*node);
    let (job, _) = voter.take("job");
    is_held(&*node, &claim("job"));
    is_held(&*node, &waiting("job"));
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), StoreEvent::RecheckAll, "from now on it hears");
    assert!(voter.inboxes().is_empty(), "nobody was kept waiting for that");
    is_held(&*node, &waiting("job"));
    voter.release(&job, Certainty::Answered);
    assert_eq!(freed(&told), "job");
}

#[test]
fn hints_name_locks_without_the_prefix() {
    let voter = Voter::start(on_threads);
    let shop = on_tokio(&format!("{}?prefix=shop", voter.server.url()));
    let told = events(&*shop);
    let (job, _) = voter.take("shop:an order");
    is_held(&*shop, &waiting("an order"));
    voter.release(&job, Certainty::Answered);
    assert_eq!(freed(&told), "an order");
}

#[test]
fn a_client_without_a_channel_or_a_wish_to_wait_leaves_no_inbox() {
    let voter = Voter::start(on_threads);
    voter.take("job");
    is_held(&*on_threads(&voter.server.url()), &claim("job"));
    is_held(&*on_tokio(&voter.server.url()), &claim("job"));
    is_held(&*on_tokio(&format!("{}?protocol=resp2", voter.server.url())), &waiting("job"));
    let config = RedisConfig::from_url(&voter.server.url()).unwrap();
    is_held(&bridged(nonblocking::RedisNode::new(&config, ADDRESS).unwrap()).for_keeper(), &waiting("job"));
    is_held(&blocking::RedisNode::new(&config, ADDRESS).unwrap().for_keeper(), &waiting("job"));
    assert!(voter.inboxes().is_empty());
}

#[test]
fn a_damaged_list_of_inboxes_costs_only_the_hint() {
    for (facade, connect) in BOTH {
        let voter = Voter::start(connect);
        let (job, _) = voter.take("job");
        voter.server.command::<()>(&["SET", INBOXES, "damaged"]);
        is_held(&*on_tokio(&voter.server.url()), &waiting("job"));
        assert_eq!(voter.release(&job, Certainty::Answered), lock_core::Released::Released, "{facade}");
    }
}

#[test]
fn waiters_are_told_to_ask_again_after_a_reconnect() {
    let voter = Voter::start(on_threads);
    let node: Arc<dyn BlockingQuorumNode> = on_tokio(&voter.server.url());
    let (job, _) = voter.take("job");
    let told = events(&*node);
    is_held(&*node, &waiting("job"));
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), StoreEvent::RecheckAll, "connected");
    voter.server.command::<()>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), StoreEvent::RecheckAll, "cut");
    eventually("the node is asked again", || node.ask(&acquire(&waiting("job"), 1, EPOCH), SOON));
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), StoreEvent::RecheckAll, "connected again");
    voter.release(&job, Certainty::Answered);
    assert_eq!(freed(&told), "job");
}
