//! Idle connections for threads: taken off the stack, put back, or made.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::{Client, Connection, RedisResult, Value};

use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, connecting, has_forgotten_the_script, server_of, tuned};
use crate::failure::Failure;
use crate::wire::{Call, greeting, verification};

/// How many connections are kept while nobody uses them. Chosen: what a busy program uses at once.
const IDLE_MAX: usize = 8;
/// The shortest timeout of a socket: none at all would wait for ever.
const SOCKET_TIMEOUT_MIN: Duration = Duration::from_millis(1);

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

/// Connections to one server, each of which verified the counter.
pub(crate) struct Stack {
    client: Client,
    idle: Mutex<Vec<Connection>>,
}

impl Stack {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, idle: Mutex::new(Vec::new()) }
    }

    /// Other connections to the same server.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.client.clone())
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The connection that was used last, or a new one.
    pub(crate) fn checkout(&self, span: Span) -> Result<Connection, Failure> {
        let idle = self.idle().pop();
        match idle {
            Some(connection) => Ok(connection),
            None => connect(&self.client, span),
        }
    }

    /// Puts a connection back that is still in step, or closes it where enough are idle.
    pub(crate) fn put_back(&self, connection: Connection) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    /// Closes all idle connections: where one broke, the others most likely broke with it.
    pub(crate) fn clear(&self) {
        let broken = std::mem::take(&mut *self.idle());
        drop(broken);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(client: &Client, span: Span) -> Result<Connection, Failure> {
    let span = span.at_most(CONNECT_WITHIN);
    let (server, left) = (server_of(client), span.left());
    if left.is_zero() {
        return Err(Failure::no_connection(&server, span.within));
    }
    let failed = |error| classify(connecting(&server, span.within), &error);
    let mut connection = tuned(client)?.get_connection_with_timeout(left).map_err(failed)?;
    bound(&connection, span).map_err(failed)?;
    let greeted = greeting().query(&mut connection).map_err(failed)?;
    evaluate(&mut connection, &verification(greeted)?, span).map_err(failed)?;
    Ok(connection)
}

/// Runs a call; where the server has forgotten the script, on the same connection once more.
pub(crate) fn evaluate(connection: &mut Connection, call: &Call, span: Span) -> RedisResult<Value> {
    bound(connection, span)?;
    match (call.command.query(connection), call.script) {
        (Err(error), Some(script)) if has_forgotten_the_script(&error) => {
            bound(connection, span)?;
            script.load(connection)?;
            bound(connection, span)?;
            call.command.query(connection)
        }
        (outcome, _) => outcome,
    }
}

/// Makes the socket give up when the time is over: by itself it waits for ever.
fn bound(connection: &Connection, span: Span) -> RedisResult<()> {
    let left = Some(span.left().max(SOCKET_TIMEOUT_MIN));
    connection.set_read_timeout(left)?;
    connection.set_write_timeout(left)
}
