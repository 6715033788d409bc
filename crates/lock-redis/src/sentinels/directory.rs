//! The primary as a directory with one server.

use std::sync::Arc;

use lock_core::{EventSink, Listeners};

use super::primary::Primary;
use super::watch;
use crate::address::Address;
use crate::directory::Directory;
use crate::failure::Failure;
use crate::hash_slot::HashSlot;
use crate::span::Span;

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
            watch::ask_all(&self);
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
