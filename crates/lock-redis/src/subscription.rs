//! Threads that receive a server's messages, over connections of their own.

use std::sync::Weak;
use std::thread;
use std::time::Duration;

use redis::{Connection, ConnectionInfo, RedisResult};

use crate::connect::plain;
use crate::span::Span;

/// How long such a thread may outlive its client.
pub(crate) const BREATH: Duration = Duration::from_secs(1);
/// How long after the end of a subscription the next one is made. It doubles while they are of no use.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes one subscription after another for as long as the client exists, and listens. Listening says whether it was of use.
pub(crate) fn keep_listening<C, S>(
    client: &Weak<C>,
    pause_max: Duration,
    mut open: impl FnMut(&C) -> Option<S>,
    listen: impl Fn(S) -> bool,
) {
    let mut pause = PAUSE;
    while let Some(client) = client.upgrade() {
        let opened = open(&client);
        drop(client);
        pause = if opened.is_some_and(&listen) { PAUSE } else { pause_max.min(pause * 2) };
        thread::sleep(pause);
    }
}

/// A connection that is used for nothing else from now on.
pub(crate) fn subscribed(server: &ConnectionInfo, channel: &str, span: Span) -> RedisResult<Connection> {
    let mut connection = plain(server, span)?;
    redis::cmd("SUBSCRIBE").arg(channel).exec(&mut connection)?;
    Ok(connection)
}
