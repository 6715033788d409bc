//! The grants of which a client is notified.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{Capabilities, Claim, EntriesEnd, EventSink, Lease, Owner, StoreEvent, Waiting};

use crate::{Bench, Verbs};

/// The grants that one client heard of, since it began to listen.
pub(super) struct Told {
    waiting: Waiting,
    /// Where entries end with a session, each waiter watches for itself, so grants are delivered in any order.
    entries_end: EntriesEnd,
    grants: Arc<Mutex<Vec<Lease>>>,
}

pub(super) fn grants_told(verbs: &Verbs) -> Told {
    let grants = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&grants);
    verbs.listen(EventSink::new(move |event| {
        if let StoreEvent::Granted { lease, .. } = event {
            sink.lock().unwrap().push(lease);
        }
    }));
    let Capabilities { waiting, entries_end, .. } = verbs.capabilities();
    Told { waiting, entries_end, grants }
}

impl Told {
    /// Waits until the grants of these claims have been heard, and no others; of none, if the store does not tell.
    #[track_caller]
    pub(super) fn are(&self, bench: &Bench, claims: &[&Claim]) {
        let owners = |claims: &[&Claim]| claims.iter().map(|claim| claim.owner).collect::<Vec<_>>();
        let expected = if self.waiting == Waiting::QueueWithPush { owners(claims) } else { Vec::new() };
        bench.until("those that are served are told", || self.owners().len() >= expected.len());
        bench.elapse(Duration::from_millis(50));
        match self.entries_end {
            EntriesEnd::WithTtl => assert_eq!(self.owners(), expected, "told in the order of the queue"),
            EntriesEnd::WithSession => {
                let told = self.owners();
                assert_eq!(told.len(), expected.len(), "told once");
                assert!(expected.iter().all(|owner| told.contains(owner)), "{told:?} and not {expected:?}");
            }
        }
    }

    fn owners(&self) -> Vec<Owner> {
        self.grants.lock().unwrap().iter().map(|lease| lease.owner).collect()
    }

    /// What was heard is what the store says when it is asked.
    #[track_caller]
    pub(super) fn agree_with(&self, leases: &[Lease]) {
        for heard in self.grants.lock().unwrap().iter() {
            let lease = leases.iter().find(|lease| lease.owner == heard.owner);
            assert_eq!(Some(heard), lease, "heard of another lease");
        }
    }
}
