//! The thread that learns from a sentinel when the primary moves.
//!
//! It is a thread for clients of tokio, too. The user's runtime may be stalled, or end before the client.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, RedisResult};

use crate::connect::{CONNECT_WITHIN, bound};
use crate::primary::Primary;
use crate::sentinel::connect;
use crate::span::Span;

/// How long the thread may outlive its client.
const BREATH: Duration = Duration::from_secs(1);
/// How long after the end of a subscription the next one is tried, at the next sentinel. It doubles up to the second value
/// while none can be made.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// How often a sentinel is asked although it has announced nothing: a subscription can end unnoticed, and a sentinel can be
/// cut off from the others. Chosen: a short connection in five seconds costs a sentinel nothing.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// Watches the primary until the last connection to it is gone. Without the thread, a new primary is found when the old one
/// fails.
pub(crate) fn start(primary: &Arc<Primary>) {
    let primary = Arc::downgrade(primary);
    let thread = thread::Builder::new().name("leasehold-watch".into());
    _ = thread.spawn(move || watch(&primary));
}

/// Subscribes at one sentinel after another.
fn watch(whom: &Weak<Primary>) {
    let mut pause = PAUSES.0;
    for turn in 0.. {
        let Some(primary) = whom.upgrade() else { return };
        let count = primary.sentinels.nodes.len();
        let Some(node) = primary.in_turn().nth(turn % count) else { return };
        let opened = subscribe(&primary, node);
        drop(primary);
        pause = match opened {
            Ok(connection) => {
                listen(connection, node, whom);
                PAUSES.0
            }
            Err(_) => PAUSES.1.min(pause * 2),
        };
        thread::sleep(pause);
    }
}

fn subscribe(primary: &Primary, node: usize) -> RedisResult<Connection> {
    let Some(sentinel) = primary.sentinels.nodes.get(node) else { return Err(std::io::Error::other("none").into()) };
    let mut connection = connect(sentinel, Span::from_now(CONNECT_WITHIN))?;
    redis::cmd("SUBSCRIBE").arg("+switch-master").exec(&mut connection)?;
    bound(&connection, BREATH)?;
    Ok(connection)
}

/// Waits for announcements. Ends with the connection, and with the client.
fn listen(mut connection: Connection, node: usize, whom: &Weak<Primary>) {
    let mut messages = connection.as_pubsub();
    // What was announced before the subscription was missed.
    let mut ask_at = Instant::now();
    for turn in 0.. {
        if Instant::now() >= ask_at {
            let Some(primary) = whom.upgrade() else { return };
            // The others in turn, too: this one may be cut off from them.
            let asked = (node + turn) % primary.sentinels.nodes.len();
            let answered = primary.ask(asked, Span::from_now(CONNECT_WITHIN));
            if asked == node && answered.is_err() {
                return;
            }
            ask_at = Instant::now() + ASK_EVERY;
        }
        while Instant::now() < ask_at {
            let message = messages.get_message();
            let Some(primary) = whom.upgrade() else { return };
            match message {
                // The name of the primary comes first.
                Ok(message) if is_about(message.get_payload_bytes(), &primary.sentinels.master) => {
                    _ = primary.ask(node, Span::from_now(CONNECT_WITHIN));
                }
                Ok(_) => {}
                Err(error) if error.is_timeout() => {}
                Err(_) => return,
            }
        }
    }
}

fn is_about(message: &[u8], master: &str) -> bool {
    message.strip_prefix(master.as_bytes()).is_some_and(|rest| rest.starts_with(b" "))
}
