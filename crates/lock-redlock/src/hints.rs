//! Hints from the nodes, combined: a lock is worth asking for once a majority has released it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use lock_core::node::QuorumNode;
use lock_core::{Delivery, EventSink, Lease, Listener, LockName, StoreEvent};

use crate::quorum::NodeId;

/// For how many locks hints are counted at a time. With more, counting starts over; waiters also ask without hints.
const COUNTED_MAX: usize = 1024;

/// For each lock, the nodes that sent a hint.
#[derive(Debug, Default)]
struct Counts(BTreeMap<LockName, BTreeSet<NodeId>>);

/// Passes the nodes' combined hints to `sink`.
pub(crate) fn listen<N: QuorumNode>(nodes: &[N], majority: usize, sink: &EventSink) {
    for (node, sink) in nodes.iter().zip(sinks(nodes.len(), majority, sink)) {
        node.listen(sink);
    }
}

/// One sink for each node. Together they pass hints to `sink`.
fn sinks(nodes: usize, majority: usize, sink: &EventSink) -> Vec<EventSink> {
    let counts = Arc::new(Mutex::new(Counts::default()));
    let one = |index| Part { node: NodeId(index), majority, counts: Arc::clone(&counts), sink: sink.clone() };
    (0..nodes).map(|index| EventSink::of(one(index))).collect()
}

/// The sink for one node's hints, which are counted together with those of the others.
struct Part {
    node: NodeId,
    majority: usize,
    counts: Arc<Mutex<Counts>>,
    sink: EventSink,
}

impl Listener for Part {
    fn deliver(&self, event: StoreEvent) -> Delivery {
        // A revocation that was missed is noticed by the next renewal.
        if event == StoreEvent::RecheckHolds {
            return Delivery::Taken;
        }
        if let StoreEvent::Freed { name } = &event {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            if !counts.freed(name, self.node, self.majority) {
                return Delivery::Taken;
            }
        }
        self.sink.deliver(event)
    }

    fn release_unknown(&self, lease: Lease) {
        self.sink.release_unknown(lease);
    }
}

impl Counts {
    /// Counts a hint. Returns whether a majority has sent one by now.
    fn freed(&mut self, name: &LockName, node: NodeId, majority: usize) -> bool {
        if !self.0.contains_key(name) && self.0.len() >= COUNTED_MAX {
            self.0.clear();
        }
        let told = self.0.entry(name.clone()).or_default();
        told.insert(node);
        let enough = told.len() >= majority;
        if enough {
            self.0.remove(name);
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_of_a_majority_is_one_hint() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let sinks = sinks(3, 2, &EventSink::new(move |event| heard.lock().unwrap().push(event)));
        let freed = || StoreEvent::Freed { name: "a".parse().unwrap() };
        for (node, count) in [(0, 0), (0, 0), (2, 1), (1, 1), (0, 2)] {
            sinks[node].deliver(freed());
            assert_eq!(told.lock().unwrap().len(), count, "{node}");
        }
        sinks[1].deliver(StoreEvent::RecheckAll);
        assert_eq!(told.lock().unwrap().last(), Some(&StoreEvent::RecheckAll));
    }

    #[test]
    fn counting_begins_anew_only_when_there_are_too_many_locks() {
        let name = |n: usize| format!("lock {n}").parse().unwrap();
        let mut counts = Counts::default();
        (0..COUNTED_MAX).for_each(|n| assert!(!counts.freed(&name(n), NodeId(0), 2)));
        assert!(counts.freed(&name(0), NodeId(1), 2), "all of them are counted");
        assert!(!counts.freed(&name(0), NodeId(0), 2));
        assert!(counts.freed(&name(1), NodeId(1), 2), "there was room for that one");
        (0..2).for_each(|n| assert!(!counts.freed(&name(COUNTED_MAX + n), NodeId(0), 2)));
        assert!(!counts.freed(&name(2), NodeId(1), 2), "one more than are counted");
    }
}
