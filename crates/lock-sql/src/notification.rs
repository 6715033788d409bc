//! What notifications say.

use std::time::Duration;

use lock_core::{FencingToken, Invalid, Lease, Limit, Slots, StoreEvent, Terms, TokenRange};
use lock_rules::poll::Waiter;
use serde::Deserialize;

/// What a notification says. Without a grant, the waiter should ask.
#[derive(Deserialize)]
pub(crate) struct Notification {
    pub(crate) tag: i64,
    pub(crate) grant: Option<Grant>,
}

/// What a waiter was granted.
#[derive(Deserialize)]
pub(crate) struct Grant {
    low: u64,
    high: u64,
    slots: Vec<u32>,
    /// The limit of a semaphore; 0 of a lock.
    lim: u32,
    /// In microseconds.
    lasts: u64,
    wanted: bool,
}

impl Grant {
    /// What a waiter holds by this grant.
    pub(crate) fn of(self, waiter: &Waiter) -> Result<StoreEvent, Invalid> {
        let grant = self;
        let Waiter { name, owner, terms, .. } = waiter.clone();
        let tokens = TokenRange::new(FencingToken::new(grant.low)?, FencingToken::new(grant.high)?)?;
        let slots = Slots::new(grant.slots);
        // The limit may have changed since it asked.
        let mode = Limit::new(grant.lim).map_or(terms.mode, |limit| terms.mode.under(limit));
        let terms = Terms { mode: mode.covering(&slots), ..terms };
        let lease = Lease { name, owner, tokens, slots, terms };
        Ok(StoreEvent::Granted { lease, valid_for: Duration::from_micros(grant.lasts), wanted: grant.wanted })
    }
}
