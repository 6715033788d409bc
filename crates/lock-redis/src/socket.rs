//! One connection of a thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::Moment;
use lock_host::{Clock, HostClock};
use redis::{Client, Cmd, Connection, ProtocolVersion, RedisResult, Value};

use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, bound, connecting, server_of, speaking, tuned};
use crate::failure::Failure;
use crate::greeting::{Met, Role, again, greeting, meet};
use crate::peer::Peer;

/// The time that a request may take.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) until: Instant,
    pub(crate) within: Duration,
}

impl Span {
    pub(crate) fn from_now(within: Duration) -> Self {
        Self { until: Instant::now() + within, within }
    }

    /// The same with a limit on what is left of it.
    pub(crate) fn at_most(self, limit: Duration) -> Self {
        Self { until: self.until.min(Instant::now() + limit), within: self.within.min(limit) }
    }

    /// Whether somebody who waits until then waits hardly longer. A tenth is as exact as a socket's timeout.
    pub(crate) fn covers(&self, until: Instant) -> bool {
        until.saturating_duration_since(self.until) <= self.left() / 10
    }

    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// A connection, and the present timeout of its socket: setting that costs two system calls.
pub(crate) struct Socket {
    connection: Connection,
    pub(crate) peer: Arc<Peer>,
    patience: Duration,
    /// When it was used last.
    pub(crate) used_at: Moment,
}

/// Connects to a server and greets it.
pub(crate) fn connect(client: &Client, role: Role, span: Span) -> Result<Socket, Failure> {
    let span = span.at_most(CONNECT_WITHIN);
    let (server, left) = (server_of(client), span.left());
    if left.is_zero() {
        return Err(Failure::no_connection(&server, span.within));
    }
    let failed = |error| classify(connecting(&server, span.within), &error);
    // These connections carry no notifications.
    let client = tuned(client).and_then(|client| speaking(&client, ProtocolVersion::RESP2)).map_err(failed)?;
    // Connecting waits twice for a server that hangs: for the answers to the two commands in which the library
    // describes itself.
    let mut connection = client.get_connection_with_timeout(left / 2).map_err(failed)?;
    bound(&connection, span.left()).map_err(failed)?;
    let greeted = greeting(role).query(&mut connection).map_err(failed)?;
    let Met { peer, preparation } = meet(role, &server, greeted)?;
    if let Some(preparation) = preparation {
        bound(&connection, span.left()).map_err(failed)?;
        preparation.exec(&mut connection).map_err(failed)?;
    }
    Ok(Socket { connection, peer: Arc::new(peer), patience: Duration::ZERO, used_at: HostClock.now() })
}

impl Socket {
    /// Sends a command and waits for its answer until the time is over.
    pub(crate) fn ask(&mut self, command: &Cmd, span: Span) -> RedisResult<Value> {
        self.bound(span)?;
        command.query(&mut self.connection)
    }

    /// Sends several commands together.
    pub(crate) fn send(&mut self, packed: &[u8], span: Span) -> RedisResult<()> {
        self.bound(span)?;
        self.connection.send_packed_command(packed)
    }

    /// Waits for the next reply until the time is over. An error is the end of the connection; the server's own errors
    /// are replies.
    pub(crate) fn receive(&mut self, span: Span) -> RedisResult<Value> {
        self.bound(span)?;
        self.connection.recv_response()
    }

    /// Whether the server is still there, with the history that the greeting found. Takes at most half of the time.
    pub(crate) fn is_still_good(&mut self, span: Span) -> bool {
        let answer = self.ask(&again(), span.at_most(span.left() / 2));
        answer.is_ok_and(|answer| self.peer.is_still(answer))
    }

    /// Makes the socket give up when the time is over; otherwise it would wait forever. The present timeout is close
    /// enough if it differs by less than a tenth.
    fn bound(&mut self, span: Span) -> RedisResult<()> {
        let left = span.left();
        if self.patience.abs_diff(left) > left / 10 {
            bound(&self.connection, left)?;
            self.patience = left;
        }
        Ok(())
    }
}
