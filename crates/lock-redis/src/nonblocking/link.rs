//! One tokio connection, which is replaced when it breaks.
//!
//! This is not redis-rs' connection manager, which sends waiting commands as soon as it has reconnected: no user
//! command may leave before the counter was verified.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use lock_core::RequestOrder;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::lender::Lender;
use super::live::{Live, connect_to};
use super::silence::Patience;
use crate::channel::Channel;
use crate::connect::CONNECT_WITHIN;
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::servers::Own;
use crate::span::Span;
use crate::target::Target;

/// A connection to one server, made when first needed and again whenever it has broken.
pub(crate) struct Link {
    target: Target,
    channel: Option<Arc<Channel>>,
    state: Arc<Mutex<State>>,
}

enum State {
    Down,
    /// One attempt at a time; all requests that need a connection wait for it.
    Connecting(Attempt),
    Up(Arc<Live>),
}

type Attempt = Shared<BoxFuture<'static, Result<Arc<Live>, Failure>>>;

/// A request that its caller drops when its time is over.
pub(crate) struct Unanswered<'a> {
    link: &'a Link,
    live: Arc<Live>,
    sent_at: Instant,
    /// `None` once it was answered.
    within: Option<Duration>,
}

impl Unanswered<'_> {
    /// The request was answered, or failed.
    pub(crate) fn end(mut self) {
        self.within = None;
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let Some(within) = self.within
            && self.sent_at.elapsed() >= within
            && self.live.silence.timed_out(within) == Patience::Over
        {
            self.link.drop_connection(&self.live);
        }
    }
}

impl Own for Link {
    type Lender = dyn Lender;
    const LISTEN_LATE: bool = false;

    fn new(target: Target, channel: Option<Arc<Channel>>) -> Self {
        Self { target, channel, state: Arc::new(Mutex::new(State::Down)) }
    }

    fn another(&self) -> Self {
        Self::new(self.target.clone(), None)
    }

    fn order(lender: Option<&dyn Lender>) -> RequestOrder {
        lender.map_or(RequestOrder::InOrder, Lender::order)
    }

    fn forget_verified(&self) {
        self.at_hand().iter().for_each(|live| live.server_info.forget_verified());
    }

    /// Every connection does.
    fn listens(&self) -> bool {
        false
    }

    fn listen_in_time(&self) {
        let mut state = lock(&self.state);
        let listens = match &*state {
            State::Up(live) => !live.silence.has_ended() && self.hears(live),
            // An attempt has an outcome here only if its runtime ended first.
            State::Connecting(attempt) => attempt.clone().now_or_never().is_none(),
            State::Down => false,
        };
        if !listens {
            *state = State::Connecting(self.attempt());
        }
    }
}

impl Link {
    /// The connection, if there is one now.
    pub(crate) fn at_hand(&self) -> Option<Arc<Live>> {
        match &*lock(&self.state) {
            State::Up(live) if !live.silence.has_ended() => Some(Arc::clone(live)),
            State::Down | State::Connecting(_) | State::Up(_) => None,
        }
    }

    /// Watches a request that is sent now over this connection, and that its caller drops after `within`.
    pub(crate) fn begin(&self, live: Arc<Live>, within: Duration) -> Unanswered<'_> {
        Unanswered { link: self, live, sent_at: Instant::now(), within: Some(within) }
    }

    /// The connection, as soon as there is one.
    pub(crate) async fn live(&self) -> Result<Arc<Live>, Failure> {
        let attempt = match &mut *lock(&self.state) {
            State::Up(live) if !live.silence.has_ended() => return Ok(Arc::clone(live)),
            State::Connecting(attempt) => attempt.clone(),
            down @ (State::Down | State::Up(_)) => {
                let attempt = self.attempt();
                *down = State::Connecting(attempt.clone());
                attempt
            }
        };
        Box::pin(self.made(attempt)).await
    }

    /// Whether messages arrive on this connection, or never can.
    fn hears(&self, live: &Live) -> bool {
        let (Some(channel), Some(subscription)) = (&self.channel, live.subscription) else { return true };
        channel.is_opened_by(subscription)
    }

    async fn made(&self, attempt: Attempt) -> Result<Arc<Live>, Failure> {
        let outcome = attempt.clone().await;
        let mut state = lock(&self.state);
        // The task says itself how it ended, unless its runtime ended first.
        if matches!(&*state, State::Connecting(current) if current.ptr_eq(&attempt)) {
            *state = State::Down;
        }
        outcome
    }

    /// Connects in a separate task, so that one caller's deadline does not undo the work of the others.
    fn attempt(&self) -> Attempt {
        let (target, channel, state) = (self.target.clone(), self.channel.clone(), Arc::clone(&self.state));
        let task = tokio::spawn(async move {
            let outcome = connect(target, channel.as_ref()).await.map(Arc::new);
            *lock(&state) = outcome.as_ref().map_or(State::Down, |live| State::Up(Arc::clone(live)));
            // Waiters that are notified to ask again find the connection in place.
            if let (Ok(live), Some(channel)) = (&outcome, &channel)
                && let Some(subscription) = live.subscription
            {
                channel.opened(subscription);
            }
            outcome
        });
        async { task.await.unwrap_or_else(|_| Err(Failure::runtime_gone())) }.boxed().shared()
    }

    /// Abandons this connection; the next request makes another.
    pub(crate) fn drop_connection(&self, broken: &Live) {
        let mut state = lock(&self.state);
        if matches!(&*state, State::Up(live) if Arc::ptr_eq(&live.silence, &broken.silence)) {
            *state = State::Down;
        }
        drop(state);
        if let (Some(subscription), Some(channel)) = (broken.subscription, &self.channel) {
            channel.closed(subscription);
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects to the server, if it is still the one to connect to.
async fn connect(target: Target, channel: Option<&Arc<Channel>>) -> Result<Live, Failure> {
    let (span, shown) = (Span::from_now(CONNECT_WITHIN), target.shown());
    let connected = timeout(CONNECT_WITHIN, async {
        if target.deployment == Deployment::Sentinels {
            let asked = target.clone();
            spawn_blocking(move || asked.confirm(span)).await.unwrap_or_else(|_| Err(Failure::runtime_gone()))?;
        }
        connect_to(&target, channel).await
    });
    connected.await.unwrap_or_else(|_| Err(Failure::no_connection(&shown, span.within)))
}
