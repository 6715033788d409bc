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
    #[cfg_attr(not(any(feature = "async", feature = "r2d2")), expect(dead_code, reason = "there are none"))]
    /// The user's connections, and perhaps some of its own, on one of which waiters are notified.
    Lent(Arc<O::Lender>, Option<Arc<O>>),
}

impl<O: Own> Source<O> {
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
