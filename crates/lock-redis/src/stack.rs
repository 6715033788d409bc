//! Idle connections for threads: taken off the stack, put back, or made.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lock_core::Moment;
use lock_host::{Clock, HostClock};
use redis::{Client, Cmd, Connection, ProtocolVersion, RedisResult, Value};

use crate::channel::Channel;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, SOCKET_TIMEOUT_MIN, bound, connecting, server_of, speaking, tuned};
use crate::failure::Failure;
use crate::greeting::{Met, Role, again, greeting, meet};
use crate::listener::Listener;
use crate::peer::Peer;

/// How many idle connections are kept. Chosen: as many as a busy program uses at once.
const IDLE_MAX: usize = 8;
/// How long a connection may be idle and still be trusted: servers and proxies close connections that are idle for
/// long, and a server that became a replica and a primary again meanwhile has other data. Chosen: both take longer.
const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// The time that a request may take.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    until: Instant,
    pub(crate) within: Duration,
}

impl Span {
    pub(crate) fn from_now(within: Duration) -> Self {
        Self { until: Instant::now() + within, within }
    }

    /// The same with a limit on what is left of it.
    fn at_most(self, limit: Duration) -> Self {
        Self { until: self.until.min(Instant::now() + limit), within: self.within.min(limit) }
    }

    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// Connections to one server, which was greeted on each of them, and its counter verified.
pub(crate) struct Stack {
    client: Client,
    role: Role,
    idle: Mutex<Vec<Idle>>,
    listener: Option<Listener>,
}

/// A connection, and the present timeout of its socket: setting that costs two system calls.
pub(crate) struct Socket {
    connection: Connection,
    pub(crate) peer: Peer,
    patience: Duration,
}

/// A connection that nobody uses, and since when.
struct Idle {
    socket: Socket,
    since: Moment,
}

impl Stack {
    pub(crate) fn new(client: Client, role: Role) -> Self {
        Self { client, role, idle: Mutex::new(Vec::new()), listener: None }
    }

    /// Adds a listener for the server's messages.
    pub(crate) fn with_listener(self, channel: Option<Arc<Channel>>) -> Self {
        let listener = channel.map(|channel| Listener::new(self.client.clone(), channel));
        Self { listener, ..self }
    }

    /// Whether nobody has waited yet.
    pub(crate) fn hears_nothing(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| !listener.is_started())
    }

    /// Somebody waits to be told.
    pub(crate) fn listen(&self, span: Span) {
        if let Some(listener) = &self.listener {
            // The subscription takes two steps; then the claim has to be sent again.
            listener.needed((span.at_most(CONNECT_WITHIN).left() / 3).max(SOCKET_TIMEOUT_MIN));
        }
    }

    /// Somebody waits, and polls meanwhile.
    pub(crate) fn listen_in_time(&self) {
        if let Some(listener) = &self.listener {
            listener.wished_for();
        }
    }

    /// Other connections to the same server.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.client.clone(), self.role)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The connection that was used last, if it is still good, or a new one.
    pub(crate) fn checkout(&self, span: Span) -> Result<Socket, Failure> {
        let idle = self.idle().pop();
        if let Some(Idle { mut socket, since }) = idle {
            if HostClock.now() < since + TRUSTED_FOR || socket.is_still_good(span) {
                return Ok(socket);
            }
            self.clear();
        }
        connect(&self.client, self.role, span)
    }

    /// Puts back a connection that is still in step, or closes it if enough are idle.
    pub(crate) fn put_back(&self, socket: Socket) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(Idle { socket, since: HostClock.now() });
        }
    }

    /// Closes all idle connections: if one broke, the others most likely broke, too.
    pub(crate) fn clear(&self) {
        let broken = std::mem::take(&mut *self.idle());
        drop(broken);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(client: &Client, role: Role, span: Span) -> Result<Socket, Failure> {
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
    Ok(Socket { connection, peer, patience: Duration::ZERO })
}

impl Socket {
    /// Sends a command and waits for its answer until the time is over.
    pub(crate) fn ask(&mut self, command: &Cmd, span: Span) -> RedisResult<Value> {
        self.bound(span)?;
        command.query(&mut self.connection)
    }

    /// Whether the server is still there, with the history that the greeting found. Takes at most half of the time.
    fn is_still_good(&mut self, span: Span) -> bool {
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
