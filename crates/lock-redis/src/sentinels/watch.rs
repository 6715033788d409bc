//! The thread that learns from a sentinel when the primary moves.
//!
//! It is a thread for clients of tokio, too. The user's runtime may be stalled, or end before the client.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, RedisResult};

use super::primary::Primary;
use crate::connect::{CONNECT_WITHIN, bound, for_one_question};
use crate::span::Span;

/// How long the thread may outlive its client.
const BREATH: Duration = Duration::from_secs(1);
/// How long after the end of a subscription the next one is tried, at the next sentinel. It doubles up to the second value
/// while none can be made, and while none is at a sentinel that names a primary.
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
        let count = primary.sentinels().len();
        let Some(node) = primary.in_turn().nth(turn % count).map(|(_, node)| node) else { return };
        let opened = subscribe(&primary, node);
        drop(primary);
        let was_of_use = opened.is_ok_and(|connection| listen(connection, node, whom));
        pause = if was_of_use { PAUSES.0 } else { PAUSES.1.min(pause * 2) };
        thread::sleep(pause);
    }
}

fn subscribe(primary: &Primary, node: usize) -> RedisResult<Connection> {
    let Some(sentinel) = primary.sentinels().get(node) else { return Err(std::io::Error::other("none").into()) };
    let mut connection = for_one_question(sentinel, Span::from_now(CONNECT_WITHIN))?;
    redis::cmd("SUBSCRIBE").arg("+switch-master").exec(&mut connection)?;
    bound(&connection, BREATH)?;
    Ok(connection)
}

/// Waits for announcements. Ends with the connection, with the client, and once the sentinel names no primary. Whether it ever did.
fn listen(mut connection: Connection, node: usize, whom: &Weak<Primary>) -> bool {
    let mut messages = connection.as_pubsub();
    // What was announced before the subscription was missed.
    let mut ask_at = Instant::now();
    for turn in 0.. {
        if Instant::now() >= ask_at {
            let Some(primary) = whom.upgrade() else { break };
            // The others in turn, too: this one may be cut off from them.
            let asked = (node + turn) % primary.sentinels().len();
            let answered = primary.ask(asked, Span::from_now(CONNECT_WITHIN));
            if asked == node && answered.is_err() {
                return turn > 0;
            }
            ask_at = Instant::now() + ASK_EVERY;
        }
        while Instant::now() < ask_at {
            let message = messages.get_message();
            let Some(primary) = whom.upgrade() else { return true };
            match message {
                // The name of the primary comes first.
                Ok(message) if is_about(message.get_payload_bytes(), primary.name()) => {
                    _ = primary.ask(node, Span::from_now(CONNECT_WITHIN));
                }
                Ok(_) => {}
                Err(error) if error.is_timeout() => {}
                Err(_) => return true,
            }
        }
    }
    true
}

fn is_about(message: &[u8], master: &str) -> bool {
    message.strip_prefix(master.as_bytes()).is_some_and(|rest| rest.starts_with(b" "))
}

#[cfg(test)]
mod tests {
    use redis::Client;
    use test_support::Sentinel;
    use test_support::sentinels::{MASTER, PASSWORDS, server, url_of};

    use super::*;
    use crate::RedisConfig;

    /// How long the sentinel is watched, and how many connections it may get. Without longer and longer pauses, there are about 45.
    const WATCHED_FOR: Duration = Duration::from_millis(2500);
    const CONNECTIONS_MAX: u64 = 20;

    #[test]
    fn a_sentinel_that_names_no_primary_any_more_is_left_alone_for_longer_and_longer() {
        let server = server(&[]);
        let sentinel = Sentinel::watching(&server);
        let url = format!("redis://:{}@127.0.0.1:{}", PASSWORDS.1, sentinel.port());
        let mut admin = Client::open(url).unwrap().get_connection().unwrap();
        redis::cmd("SENTINEL").arg("REMOVE").arg(MASTER).exec(&mut admin).unwrap();
        let mut connections = || -> u64 {
            let stats: String = redis::cmd("INFO").arg("stats").query(&mut admin).unwrap();
            let line = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap();
            line.trim().parse().unwrap()
        };
        let config = RedisConfig::from_url(&url_of(&[sentinel.port()])).unwrap();
        let primary = Arc::new(Primary::new(config.servers.clone()));
        let before = connections();
        start(&primary);
        thread::sleep(WATCHED_FOR);
        let made = connections() - before;
        assert!((1..=CONNECTIONS_MAX).contains(&made), "{made} connections");
    }
}
