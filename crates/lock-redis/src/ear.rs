//! The thread that hears what the server tells, over a connection of its own.
//!
//! It starts when a waiter first has to wait: who never waits pays for no thread and no connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use redis::{Client, Connection, ProtocolVersion, RedisResult};

use crate::connect::{CONNECT_WITHIN, speaking, tuned};
use crate::inbox::{Inbox, Subscription};
use crate::stack::bound;

/// How long the thread may outlive its client.
const BREATH: Duration = Duration::from_secs(1);
/// How long after a subscription ended the next one is tried; meanwhile waiters have to ask. It doubles up to the second
/// one while none can be made: most likely the right to subscribe is missing.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Has an inbox listened to as soon as it is needed.
pub(crate) struct Ear {
    client: Client,
    inbox: Arc<Inbox>,
    started: AtomicBool,
}

impl Ear {
    pub(crate) fn new(client: Client, inbox: Arc<Inbox>) -> Self {
        Self { client, inbox, started: AtomicBool::new(false) }
    }

    pub(crate) fn is_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// Somebody waits. The first to do so opens the inbox, within a time limit; from then on the thread sees to it.
    pub(crate) fn needed(&self, within: Duration) {
        // Nobody waits for the first one: who comes meanwhile is asked to ask again.
        if self.started.swap(true, Ordering::Relaxed) {
            return;
        }
        self.spawn(Some(open(&self.client, &self.inbox, within)));
    }

    /// Somebody would like to hear, and does not wait for that.
    pub(crate) fn wished_for(&self) {
        if !self.started.swap(true, Ordering::Relaxed) {
            self.spawn(None);
        }
    }

    fn spawn(&self, opened: Option<Opened>) {
        let subscription =
            opened.as_ref().and_then(|opened| opened.as_ref().ok()).map(|(_, subscription)| *subscription);
        let (client, inbox) = (self.client.clone(), Arc::downgrade(&self.inbox));
        let thread = thread::Builder::new().name("leasehold-ear".into());
        // Without the thread, waiters have to ask.
        if let (Err(_), Some(subscription)) = (thread.spawn(move || hear(opened, &client, &inbox)), subscription) {
            self.inbox.closed(subscription);
        }
    }
}

/// A connection that is for nothing else any more.
type Opened = RedisResult<(Connection, Subscription)>;

/// Listens for as long as there is anybody to tell.
fn hear(opened: Option<Opened>, client: &Client, whom: &Weak<Inbox>) {
    let (mut next, mut pause) = (opened, PAUSES.0);
    while let Some(inbox) = whom.upgrade() {
        let opened = next.take().unwrap_or_else(|| open(client, &inbox, CONNECT_WITHIN));
        drop(inbox);
        // Why none could be made does not matter: whoever waits asks, and hears what is wrong.
        pause = match opened {
            Ok((connection, subscription)) => {
                listen(connection, subscription, whom);
                PAUSES.0
            }
            Err(_) => PAUSES.1.min(pause * 2),
        };
        thread::sleep(pause);
    }
}

fn open(client: &Client, inbox: &Inbox, within: Duration) -> Opened {
    let client = speaking(&tuned(client)?, ProtocolVersion::RESP2)?;
    let mut connection = client.get_connection_with_timeout(within)?;
    bound(&connection, within)?;
    let subscription = inbox.subscribing();
    redis::cmd("SUBSCRIBE").arg(inbox.channel()).exec(&mut connection)?;
    bound(&connection, BREATH)?;
    inbox.opened(subscription);
    Ok((connection, subscription))
}

fn listen(mut connection: Connection, subscription: Subscription, whom: &Weak<Inbox>) {
    let mut messages = connection.as_pubsub();
    loop {
        let message = messages.get_message();
        let Some(inbox) = whom.upgrade() else { return };
        match message {
            Ok(message) => inbox.receive(message.get_payload_bytes()),
            Err(error) if error.is_timeout() && inbox.is_opened_by(subscription) => {}
            Err(_) => return inbox.closed(subscription),
        }
    }
}
