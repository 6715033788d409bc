//! The thread that receives the server's messages, over its own connection.
//!
//! It starts when a waiter first has to wait, or a lease has lasted for half a second: a program that never waits and holds its locks
//! only briefly pays for no thread and no connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use redis::{Client, Connection, ProtocolVersion, RedisResult};

use crate::channel::{Channel, Subscription};
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, bound, connecting, speaking, tuned};
use crate::failure::Failure;
use crate::span::Span;
use crate::target::Target;

/// How long the thread may outlive its client.
const BREATH: Duration = Duration::from_secs(1);
/// How long after the end of a subscription the next one is tried; meanwhile waiters poll. It doubles up to the second
/// value while none can be made: most likely the permission to subscribe is missing.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

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
        if self.started.swap(true, Ordering::Relaxed) {
            return;
        }
        self.spawn(Some(open(&self.target, &self.channel, within)));
    }

    /// A claim or a holder wants to be notified, but does not wait for the subscription.
    pub(crate) fn wished_for(&self) {
        if !self.started.swap(true, Ordering::Relaxed) {
            self.spawn(None);
        }
    }

    fn spawn(&self, opened: Option<Result<Opened, Failure>>) {
        let subscription = opened.as_ref().and_then(|opened| opened.as_ref().ok()).map(|opened| opened.subscription);
        let (target, channel) = (self.target.clone(), Arc::downgrade(&self.channel));
        let thread = thread::Builder::new().name("leasehold-push".into());
        // Without the thread, waiters poll.
        if let (Err(_), Some(subscription)) = (thread.spawn(move || hear(opened, &target, &channel)), subscription) {
            self.channel.closed(subscription);
        }
    }
}

/// A connection that is used for nothing else from now on.
struct Opened {
    connection: Connection,
    subscription: Subscription,
}

/// Listens for as long as there are listeners.
fn hear(opened: Option<Result<Opened, Failure>>, target: &Target, whom: &Weak<Channel>) {
    let (mut next, mut pause) = (opened, PAUSES.0);
    while let Some(channel) = whom.upgrade() {
        let opened = next.take().unwrap_or_else(|| open(target, &channel, CONNECT_WITHIN));
        drop(channel);
        // The reason for a failure does not matter here: waiters poll, and get the error.
        pause = match opened {
            Ok(opened) => {
                listen(opened, whom);
                PAUSES.0
            }
            Err(_) => PAUSES.1.min(pause * 2),
        };
        thread::sleep(pause);
    }
}

fn open(target: &Target, channel: &Channel, within: Duration) -> Result<Opened, Failure> {
    target.confirm(Span::from_now(within))?;
    let failed = |error| classify(connecting(channel.name(), within), &error);
    let subscription = channel.subscribing();
    let connection = subscribe(&target.client, channel, within).map_err(failed)?;
    channel.opened(subscription);
    Ok(Opened { connection, subscription })
}

fn subscribe(client: &Client, channel: &Channel, within: Duration) -> RedisResult<Connection> {
    let client = speaking(&tuned(client)?, ProtocolVersion::RESP2)?;
    let mut connection = client.get_connection_with_timeout(within)?;
    bound(&connection, within)?;
    redis::cmd("SUBSCRIBE").arg(channel.name()).exec(&mut connection)?;
    // If it may not, holders learn of a revocation when they renew. A broken connection shows soon.
    _ = redis::cmd("SUBSCRIBE").arg(Channel::ALL).exec(&mut connection);
    bound(&connection, BREATH)?;
    Ok(connection)
}

fn listen(Opened { mut connection, subscription }: Opened, whom: &Weak<Channel>) {
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
