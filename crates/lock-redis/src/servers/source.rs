//! Where the connections to a server come from.

use std::sync::Arc;

use lock_core::{Capabilities, Isolation, RequestOrder};

use crate::channel::Channel;
use crate::target::Target;

/// A client's own connections to one server.
pub(crate) trait Own: Send + Sync + 'static {
    /// What the user passes in instead: a connection or a pool.
    type Lender: ?Sized + Send + Sync;

    /// Whether they listen for notifications only once that is needed, and not whenever they are connected.
    const LISTEN_LATE: bool;

    /// Nothing is connected yet.
    fn new(target: Target, channel: Option<Arc<Channel>>) -> Self;

    /// Other connections to the same server, without notifications.
    fn another(&self) -> Self;

    /// Whether requests take effect in the order in which they were sent, also over the user's connections.
    fn order(lender: Option<&Self::Lender>) -> RequestOrder;

    /// A hash slot has left the server.
    fn forget_verified(&self);

    /// Whether those to the next primary have to listen for notifications as well.
    fn listens(&self) -> bool;

    /// Begins to listen for notifications, without waiting for that.
    fn listen_in_time(&self);
}

/// A client's own connections to a server, or the user's.
pub(crate) enum Source<O: Own> {
    Own(Arc<O>),
    /// The user's connections, and perhaps some of its own, on one of which waiters are notified.
    Lent(Arc<O::Lender>, Option<Arc<O>>),
}

impl<O: Own> Source<O> {
    /// Nothing is connected yet.
    pub(super) fn new(target: Target, channel: Option<Arc<Channel>>) -> Self {
        Self::Own(Arc::new(O::new(target, channel)))
    }

    /// Other connections of its own to the same server, or what was passed in.
    pub(super) fn another(&self) -> Self {
        self.own().map_or_else(|| self.clone(), |own| Self::Own(Arc::new(own.another())))
    }

    pub(crate) fn own(&self) -> Option<&Arc<O>> {
        match self {
            Self::Own(own) => Some(own),
            Self::Lent(_, own) => own.as_ref(),
        }
    }

    /// What these connections promise besides.
    pub(super) fn promise(&self, redis: Capabilities) -> Capabilities {
        let isolation = if self.own().is_some() { Isolation::Isolated } else { Isolation::Shared };
        let lender = if let Self::Lent(lender, _) = self { Some(&**lender) } else { None };
        redis.with_ordering(O::order(lender)).with_isolation(isolation)
    }

    /// Somebody waits or holds, and wants to be notified when to ask again.
    pub(crate) fn listen_in_time(&self) {
        if O::LISTEN_LATE || matches!(self, Self::Lent(..)) {
            self.own().into_iter().for_each(|own| own.listen_in_time());
        }
    }
}

impl<O: Own> Clone for Source<O> {
    fn clone(&self) -> Self {
        match self {
            Self::Own(own) => Self::Own(Arc::clone(own)),
            Self::Lent(lender, own) => Self::Lent(Arc::clone(lender), own.clone()),
        }
    }
}
