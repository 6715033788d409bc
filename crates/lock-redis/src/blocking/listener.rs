//! The thread that receives the server's messages, over its own connection.
//!
//! It starts when a waiter first has to wait, or a lease has lasted for half a second: a program that never waits and holds its locks
//! only briefly pays for no thread and no connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use redis::{Connection, RedisResult};

use crate::channel::{Channel, Subscription};
use crate::connect::{CONNECT_WITHIN, bound};
use crate::span::Span;
use crate::subscription::{BREATH, keep_listening, subscribed};
use crate::target::Target;

/// The longest pause while no subscription can be made, and waiters poll: most likely the permission to subscribe is missing.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Listens to a channel as soon as that is needed.
pub(crate) struct Listener {
    target: Target,
    channel: Arc<Channel>,
    started: AtomicBool,
}

impl Listener {
    pub(crate) fn new(target: Target, channel: Arc<Channel>) -> Self {
        Self { target, channel, started: AtomicBool::new(false) }
    }

    pub(crate) fn is_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// Somebody waits. The first to do so opens the channel, within a time limit; from then on the thread sees to it.
    pub(crate) fn needed(&self, within: Duration) {
        // No one waits for the first subscription: waiters that arrive meanwhile are notified to ask again.
        if !self.started.swap(true, Ordering::Relaxed) {
            self.spawn(open(&self.target, &self.channel, within));
        }
    }

    /// A claim or a holder wants to be notified, but does not wait for the subscription.
    pub(crate) fn wished_for(&self) {
        if !self.started.swap(true, Ordering::Relaxed) {
            self.spawn(None);
        }
    }

    fn spawn(&self, opened: Option<Opened>) {
        let subscription = opened.as_ref().map(|(_, subscription)| *subscription);
        let (target, channel) = (self.target.clone(), Arc::downgrade(&self.channel));
        let thread = thread::Builder::new().name("leasehold-push".into());
        // Without the thread, waiters poll.
        if let (Err(_), Some(subscription)) = (thread.spawn(move || hear(opened, &target, &channel)), subscription) {
            self.channel.closed(subscription);
        }
    }
}

/// A connection that is used for nothing else from now on.
type Opened = (Connection, Subscription);

/// Listens for as long as there are listeners.
fn hear(mut opened: Option<Opened>, target: &Target, whom: &Weak<Channel>) {
    let open = |channel: &Channel| opened.take().or_else(|| open(target, channel, CONNECT_WITHIN));
    keep_listening(whom, PAUSE_MAX, open, |opened| {
        listen(opened, whom);
        true
    });
}

/// The reason for a failure does not matter here: waiters poll, and get the error.
fn open(target: &Target, channel: &Channel, within: Duration) -> Option<Opened> {
    target.confirm(Span::from_now(within)).ok()?;
    let subscription = channel.subscribing();
    let connection = subscribe(target, channel, within).ok()?;
    channel.opened(subscription);
    Some((connection, subscription))
}

fn subscribe(target: &Target, channel: &Channel, within: Duration) -> RedisResult<Connection> {
    let mut connection = subscribed(target.client.get_connection_info(), &channel.name, Span::from_now(within))?;
    // If it may not, holders learn of a revocation when they renew. A broken connection shows soon.
    _ = redis::cmd("SUBSCRIBE").arg(Channel::ALL).exec(&mut connection);
    bound(&connection, BREATH)?;
    Ok(connection)
}

fn listen((mut connection, subscription): Opened, whom: &Weak<Channel>) {
    let mut messages = connection.as_pubsub();
    loop {
        let message = messages.get_message();
        let Some(channel) = whom.upgrade() else { return };
        match message {
            Ok(message) => channel.receive(message.get_payload_bytes()),
            Err(error) if error.is_timeout() && channel.is_opened_by(subscription) => {}
            Err(_) => return channel.closed(subscription),
        }
    }
}
