//! Where the server notifies this client of locks that were handed over to its waiters.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_core::{
    EventSink, Lease, Listeners, LockName, Mode, Owner, Prefix, Slots, StoreEvent, Terms, TokenRange, Ttl,
};

use crate::requests::value::{mode_of, slots, token};

/// The client's own channel, which `docs/wire.md` calls its inbox, and its listeners.
#[derive(Debug)]
pub(crate) struct Channel {
    name: String,
    /// The subscription that is open; 0 while there is none.
    open: AtomicU64,
    subscriptions: AtomicU64,
    listeners: Listeners,
    prefix: Mutex<Prefix>,
    /// Whether a grant that is pushed only says that its owner should ask.
    needs_an_answer: AtomicBool,
}

/// A subscription that was opened. A later one is not closed by the end of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subscription(u64);

impl Channel {
    /// The address of a waiter that cannot be notified.
    pub(crate) const NONE: &str = "-";

    /// The channel of all clients, on which holders are notified that a lease was revoked: no store knows the inbox of a holder.
    pub(crate) const ALL: &str = "leasehold:inbox:all";

    /// A channel that no other client has.
    pub(crate) fn new() -> Option<Arc<Self>> {
        let name = format!("leasehold:inbox:{}", lock_host::new_owner().ok()?.to_wire());
        let (open, subscriptions) = (AtomicU64::new(0), AtomicU64::new(0));
        let (listeners, prefix) = (Listeners::default(), Mutex::default());
        let needs_an_answer = AtomicBool::new(false);
        Some(Arc::new(Self { name, open, subscriptions, listeners, prefix, needs_an_answer }))
    }

    /// The channel to subscribe to.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The address at which a waiter is notified now.
    pub(crate) fn address(&self) -> &str {
        if self.is_open() { &self.name } else { Self::NONE }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) != 0
    }

    /// A subscription begins to be made.
    pub(crate) fn subscribing(&self) -> Subscription {
        Subscription(self.subscriptions.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The subscription was confirmed. Waiters and holders must ask once more, because earlier messages were not received.
    pub(crate) fn opened(&self, subscription: Subscription) {
        self.open.store(subscription.0, Ordering::Release);
        self.recheck();
        self.listeners.deliver(&StoreEvent::RecheckHolds);
    }

    /// The subscription ended.
    pub(crate) fn closed(&self, subscription: Subscription) {
        let closed = self.open.compare_exchange(subscription.0, 0, Ordering::AcqRel, Ordering::Acquire);
        if closed.is_ok() {
            self.recheck();
        }
    }

    /// The server that was asked knows no subscription, so an open one leads to another server.
    pub(crate) fn unheard(&self) {
        if self.open.swap(0, Ordering::AcqRel) != 0 {
            self.recheck();
        }
    }

    /// Whether this subscription is the one that is open.
    pub(crate) fn is_opened_by(&self, subscription: Subscription) -> bool {
        self.open.load(Ordering::Acquire) == subscription.0
    }

    pub(crate) fn listen(&self, sink: EventSink) {
        self.listeners.add(sink);
    }

    pub(crate) fn set_prefix(&self, prefix: &Prefix) {
        *self.prefix() = prefix.clone();
    }

    /// From now on, a grant that is pushed does not count: no replica may have it yet. Its owner asks again.
    pub(crate) fn pushes_need_an_answer(&self) {
        self.needs_an_answer.store(true, Ordering::Relaxed);
    }

    /// Passes on a message. A message that is not understood is ignored.
    pub(crate) fn receive(&self, message: &[u8]) {
        let mut event = read(&self.prefix(), message);
        if let (Some(StoreEvent::Granted { valid_for, .. }), true) =
            (&mut event, self.needs_an_answer.load(Ordering::Relaxed))
        {
            *valid_for = Duration::ZERO;
        }
        if let Some(event) = event {
            self.listeners.deliver(&event);
        }
    }

    /// All waiters should ask again.
    fn recheck(&self) {
        self.listeners.deliver(&StoreEvent::RecheckAll);
    }

    fn prefix(&self) -> MutexGuard<'_, Prefix> {
        self.prefix.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(prefix: &Prefix, message: &[u8]) -> Option<StoreEvent> {
    match std::str::from_utf8(message).ok()?.split_once(' ')? {
        ("granted", told) => granted(prefix, told),
        ("shared", told) => shared(prefix, told),
        ("latch", key) => Some(StoreEvent::LatchChanged { name: prefix.name(key)? }),
        ("revoked", key) => Some(StoreEvent::Revoked { name: prefix.name(key)? }),
        ("freed" | "recheck", key) => Some(StoreEvent::Freed { name: prefix.name(key)? }),
        _ => None,
    }
}

/// Reads `OWNER LOW:HIGH TTL PLACE KEY`.
fn granted(prefix: &Prefix, told: &str) -> Option<StoreEvent> {
    let mut words = told.splitn(5, ' ');
    let grant = Grant::read(&mut words)?;
    Some(grant.event(prefix.name(words.next()?)?, Mode::Exclusive, Slots::NONE, false))
}

/// Reads `OWNER LOW:HIGH TTL PLACE LIMIT SLOTS WANTED KEY`; no slots are `-`.
fn shared(prefix: &Prefix, told: &str) -> Option<StoreEvent> {
    let mut words = told.splitn(8, ' ');
    let grant = Grant::read(&mut words)?;
    let limit = words.next()?.parse().ok()?;
    let slots = slots(Some(words.next()?).filter(|slots| *slots != "-").unwrap_or_default())?;
    let wanted = words.next()? != "0";
    let mode = mode_of(limit, slots.get().len().try_into().ok()?)?;
    Some(grant.event(prefix.name(words.next()?)?, mode, slots, wanted))
}

/// What every message about a hand-over begins with.
struct Grant {
    owner: Owner,
    tokens: TokenRange,
    ttl: Ttl,
    valid_for: Duration,
}

impl Grant {
    fn read<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Self> {
        let owner = words.next()?.parse().ok()?;
        let (low, high) = words.next()?.split_once(':')?;
        let tokens = TokenRange::new(token(low)?, token(high)?).ok()?;
        let millis = |digits: &str| digits.parse().ok().map(Duration::from_millis);
        let ttl = Ttl::new(millis(words.next()?)?).ok()?;
        Some(Self { owner, tokens, ttl, valid_for: millis(words.next()?)? })
    }

    fn event(self, name: LockName, mode: Mode, slots: Slots, wanted: bool) -> StoreEvent {
        let Self { owner, tokens, ttl, valid_for } = self;
        StoreEvent::Granted {
            lease: Lease { name, owner, tokens, terms: Terms { mode, ttl }, slots },
            valid_for,
            wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_and_the_rest_is_ignored() {
        let shop: Prefix = "shop".parse().unwrap();
        let owner = "ab".repeat(16);
        let granted = format!("granted {owner} 7:9 30000 10000 shop:an order");
        let Some(StoreEvent::Granted { lease, valid_for, .. }) = read(&shop, granted.as_bytes()) else {
            panic!("{granted}")
        };
        assert_eq!((lease.name.as_str(), lease.tokens.to_string().as_str()), ("an order", "7..9"));
        assert_eq!((lease.owner, lease.terms.ttl), (owner.parse().unwrap(), "30s".parse().unwrap()));
        assert_eq!(valid_for, Duration::from_secs(10));
        let permits = format!("shared {owner} 7:9 30000 10000 5 0,2,3 1 shop:an order");
        let Some(StoreEvent::Granted { lease, wanted: true, .. }) = read(&shop, permits.as_bytes()) else {
            panic!("{permits}")
        };
        assert_eq!((lease.terms.mode, lease.slots), (Mode::permits(3, 5).unwrap(), Slots::new([0, 2, 3])));
        let reader = format!("shared {owner} 7:7 30000 10000 2147483647 - 0 shop:an order");
        let Some(StoreEvent::Granted { lease, wanted: false, .. }) = read(&shop, reader.as_bytes()) else {
            panic!("{reader}")
        };
        assert_eq!((lease.name.as_str(), lease.terms.mode, lease.slots), ("an order", Mode::Shared, Slots::NONE));
        let freed = StoreEvent::Freed { name: "an order".parse().unwrap() };
        for hint in ["freed shop:an order", "recheck shop:an order"] {
            assert_eq!(read(&shop, hint.as_bytes()), Some(freed.clone()), "{hint}");
        }
        let revoked = StoreEvent::Revoked { name: "an order".parse().unwrap() };
        assert_eq!(read(&shop, b"revoked shop:an order"), Some(revoked));
        let changed = StoreEvent::LatchChanged { name: "an order".parse().unwrap() };
        assert_eq!(read(&shop, b"latch shop:an order"), Some(changed));
        for other in [
            "",
            "freed",
            "freed shed:an order",
            "granted",
            "revoked",
            &granted.replace("7:9", "9:7"),
            &granted.replace("shop:", "shed:"),
            &granted.replace(" 30000", " -1"),
            &granted.replace("granted ", "granted  "),
            &permits.replace("0,2,3", "-"),
            &permits.replace(" 5 ", " 2 "),
        ] {
            assert_eq!(read(&shop, other.as_bytes()), None, "{other}");
        }
        assert_eq!(read(&shop, b"\xff"), None);
    }

    #[test]
    fn the_end_of_an_earlier_subscription_leaves_the_later_one_open() {
        let channel = Channel::new().unwrap();
        let (first, second) = (channel.subscribing(), channel.subscribing());
        assert_eq!(channel.address(), "-");
        channel.opened(first);
        assert!(channel.is_open() && channel.is_opened_by(first) && !channel.is_opened_by(second));
        channel.opened(second);
        channel.closed(first);
        assert_eq!(channel.address(), channel.name());
        channel.closed(second);
        assert_eq!(channel.address(), "-");
        channel.opened(second);
        channel.unheard();
        assert!(!channel.is_open() && !channel.is_opened_by(second));
    }

    #[test]
    fn whoever_waits_asks_again_when_the_subscription_changes_and_who_holds_when_it_begins() {
        let (channel, told) = (Channel::new().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let heard = Arc::clone(&told);
        channel.listen(EventSink::new(move |event| heard.lock().unwrap().push(event)));
        let subscription = channel.subscribing();
        let asks = |change: &dyn Fn()| {
            change();
            std::mem::take(&mut *told.lock().unwrap())
        };
        assert_eq!(asks(&|| channel.unheard()), [], "nothing was open");
        assert_eq!(asks(&|| channel.opened(subscription)), [StoreEvent::RecheckAll, StoreEvent::RecheckHolds]);
        assert_eq!(asks(&|| channel.unheard()), [StoreEvent::RecheckAll]);
        assert_eq!(asks(&|| channel.closed(subscription)), [], "it has ended already");
        channel.set_prefix(&"shop".parse().unwrap());
        channel.receive(b"freed a");
        channel.receive(b"freed shop:a");
        assert_eq!(*told.lock().unwrap(), [StoreEvent::Freed { name: "a".parse().unwrap() }]);
    }
}
