//! The thread that learns from a sentinel when the primary moves.
//!
//! It is a thread for clients of tokio, too. The user's runtime may be stalled, or end before the client.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use redis::Connection;

use super::primary::Primary;
use crate::config::Servers;
use crate::connect::{CONNECT_WITHIN, bound};
use crate::span::Span;
use crate::subscription::{BREATH, keep_listening, subscribed};

/// The longest pause while no subscription can be made, and while none is at a sentinel that names a primary.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// How often a sentinel is asked although it has announced nothing: a subscription can end unnoticed, and a sentinel can be
/// cut off from the others. Chosen: a short connection in five seconds costs a sentinel nothing.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// The primary of these sentinels, which is watched from now on.
pub(crate) fn watched(servers: Servers) -> Arc<Primary> {
    let primary = Arc::new(Primary::new(servers));
    start(&primary);
    primary
}

/// Watches the primary until the last connection to it is gone. Without the thread, a new primary is found when the old one
/// fails.
fn start(primary: &Arc<Primary>) {
    let primary = Arc::downgrade(primary);
    let thread = thread::Builder::new().name("leasehold-watch".into());
    _ = thread.spawn(move || watch(&primary));
}

/// Subscribes at one sentinel after another.
fn watch(whom: &Weak<Primary>) {
    let mut turns = 0..;
    let open = |primary: &Primary| {
        let number = primary.in_turn().nth(turns.next()? % primary.servers.guides.len())?;
        let span = Span::from_now(CONNECT_WITHIN);
        let connection = subscribed(primary.servers.guides.get(number)?, "+switch-master", span).ok()?;
        bound(&connection, BREATH).ok()?;
        Some((connection, number))
    };
    keep_listening(whom, PAUSE_MAX, open, |(connection, number)| listen(connection, number, whom));
}

/// Waits for announcements. Ends with the connection, with the client, and once the sentinel names no primary. Whether it ever did.
fn listen(mut connection: Connection, node: usize, whom: &Weak<Primary>) -> bool {
    let mut messages = connection.as_pubsub();
    // What was announced before the subscription was missed.
    let (mut ask_at, mut turns) = (Instant::now(), 0..);
    loop {
        let message = (Instant::now() < ask_at).then(|| messages.get_message());
        let Some(primary) = whom.upgrade() else { return true };
        let ask = |number| primary.ask(number, Span::from_now(CONNECT_WITHIN));
        match message {
            // The others in turn, too: this one may be cut off from them.
            None => {
                let turn = turns.next().unwrap_or_default();
                let number = (node + turn) % primary.servers.guides.len();
                if ask(number).is_err() && number == node {
                    return turn > 0;
                }
                ask_at = Instant::now() + ASK_EVERY;
            }
            // The name of the primary comes first.
            Some(Ok(message)) if is_about(message.get_payload_bytes(), &primary.servers.master) => _ = ask(node),
            Some(Ok(_)) => {}
            Some(Err(error)) if error.is_timeout() => {}
            Some(Err(_)) => return true,
        }
    }
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
