//! The primary as a directory with one server.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_core::{EventSink, Listeners};

use super::primary::Primary;
use super::watch;
use crate::address::Address;
use crate::connect::CONNECT_WITHIN;
use crate::directory::{Directory, in_background};
use crate::failure::Failure;
use crate::hash_slot::HashSlot;
use crate::span::Span;

/// How long all sentinels are left alone after they were asked because of a failure. Chosen: many requests fail together, and a
/// fail-over takes longer.
const ASKED_AGAIN_AFTER: Duration = Duration::from_millis(500);

impl Directory for Primary {
    fn primary_of(self: Arc<Self>, _hash_slot: HashSlot) -> Option<Arc<Address>> {
        self.address()
    }

    fn primaries(&self) -> Vec<Arc<Address>> {
        self.address().into_iter().collect()
    }

    fn knows(&self, address: &Arc<Address>) -> bool {
        self.address().is_some_and(|current| Arc::ptr_eq(&current, address))
    }

    fn has_replaced(&self, address: &Arc<Address>) -> bool {
        !self.knows(address)
    }

    fn confirm(&self, address: &Arc<Address>, span: Span) -> Result<(), Failure> {
        self.find(span)?;
        if self.knows(address) { Ok(()) } else { Err(Failure::moved()) }
    }

    fn refresh(&self, span: Span) -> Result<(), Failure> {
        self.find(span)
    }

    fn doubt(self: Arc<Self>, failure: &Failure) {
        if failure.may_be_of_an_old_primary() {
            in_background(&self, "leasehold-ask", |primary| &primary.asking_all, ask_all);
        }
    }

    fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    fn watch(self: Arc<Self>) {
        watch::start(&self);
    }

    fn follow(&self, client: EventSink) {
        self.clients.add(client);
    }
}

/// A request has failed as it may if the primary has moved. The sentinel that is watched may be cut off from the others.
fn ask_all(primary: &Primary) {
    primary.ask_all(Span::from_now(CONNECT_WITHIN));
    thread::sleep(ASKED_AGAIN_AFTER);
}
