//! One tokio connection that is made again when it broke.
//!
//! Not redis-rs' connection manager: that one sends the commands that wait as soon as it is connected again, and no
//! command of a user's may leave before the counter was verified.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Client, RedisResult, Value};
use tokio::time::timeout;

use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, connecting, has_forgotten_the_script, server_of, tuned};
use crate::failure::Failure;
use crate::wire::{Call, greeting, verification};

/// How many requests may wait for the socket. Chosen: more than a busy client has tasks, so that none waits to wait.
const QUEUE: usize = 1024;
/// How many further timeouts a connection may be silent after the first before it is replaced.
const SILENT_TIMEOUTS: u32 = 2;

/// A connection to one server, made when first needed and again whenever it broke.
pub(crate) struct Link {
    client: Client,
    state: Arc<Mutex<State>>,
}

enum State {
    Down,
    /// One attempt at a time, which all who need a connection wait for.
    Connecting(Attempt),
    Up(Live),
}

type Attempt = Shared<BoxFuture<'static, Result<Live, Failure>>>;

/// A connection that verified the counter.
#[derive(Clone)]
pub(crate) struct Live {
    connection: MultiplexedConnection,
    silence: Arc<Silence>,
}

/// Since when a connection has answered nothing.
struct Silence {
    opened: Instant,
    /// Milliseconds after `opened` plus one; 0 while answers come.
    since: AtomicU64,
}

/// Whether a silent connection may still be of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Left,
    Over,
}

impl Link {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, state: Arc::new(Mutex::new(State::Down)) }
    }

    /// Another connection to the same server.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.client.clone())
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The connection, as soon as there is one.
    pub(crate) async fn live(&self) -> Result<Live, Failure> {
        let attempt = match &mut *lock(&self.state) {
            State::Up(live) => return Ok(live.clone()),
            State::Connecting(attempt) => attempt.clone(),
            down @ State::Down => {
                let attempt = self.attempt();
                *down = State::Connecting(attempt.clone());
                attempt
            }
        };
        let outcome = attempt.clone().await;
        let mut state = lock(&self.state);
        // The task says itself how it ended, unless its runtime ended first.
        if matches!(&*state, State::Connecting(current) if current.ptr_eq(&attempt)) {
            *state = State::Down;
        }
        outcome
    }

    /// Connects in a task of its own, so that no caller's deadline undoes the work of the others.
    fn attempt(&self) -> Attempt {
        let (client, state) = (self.client.clone(), Arc::clone(&self.state));
        let task = tokio::spawn(async move {
            let outcome = timeout(CONNECT_WITHIN, connect(&client)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(Failure::no_connection(&server_of(&client), CONNECT_WITHIN)));
            *lock(&state) = outcome.as_ref().map_or(State::Down, |live| State::Up(live.clone()));
            outcome
        });
        async { task.await.unwrap_or_else(|_| Err(Failure::runtime_gone())) }.boxed().shared()
    }

    /// Gives this connection up; the next request makes another.
    pub(crate) fn drop_connection(&self, broken: &Live) {
        let mut state = lock(&self.state);
        if matches!(&*state, State::Up(live) if Arc::ptr_eq(&live.silence, &broken.silence)) {
            *state = State::Down;
        }
    }
}

impl Live {
    pub(crate) fn connection(&mut self) -> &mut MultiplexedConnection {
        &mut self.connection
    }

    pub(crate) fn db(&self) -> i64 {
        self.connection.get_db()
    }

    /// The server answered something.
    pub(crate) fn answered(&self) {
        if self.silence.since.load(Ordering::Relaxed) != 0 {
            self.silence.since.store(0, Ordering::Relaxed);
        }
    }

    /// A request timed out. The connection is kept at first: its replies stay in step, and a release sent on it follows
    /// the acquire that it undoes.
    pub(crate) fn timed_out(&self, within: Duration) -> Patience {
        let now = u64::try_from(self.silence.opened.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        match self.silence.since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Patience::Left,
            Err(since) if Duration::from_millis(now.saturating_sub(since)) < within * SILENT_TIMEOUTS => Patience::Left,
            Err(_) => Patience::Over,
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn connect(client: &Client) -> Result<Live, Failure> {
    let server = server_of(client);
    let failed = |error| classify(connecting(&server, CONNECT_WITHIN), &error);
    // Our own deadlines stand round every call, so the library's would only blur who gave up.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUE);
    let client = tuned(client)?;
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.map_err(failed)?;
    let greeted = greeting().query_async(&mut connection).await.map_err(failed)?;
    evaluate(&mut connection, &verification(greeted)?).await.map_err(failed)?;
    Ok(Live { connection, silence: Arc::new(Silence { opened: Instant::now(), since: AtomicU64::new(0) }) })
}

/// Runs a call; where the server has forgotten the script, on the same connection once more.
pub(crate) async fn evaluate(connection: &mut (impl ConnectionLike + Send), call: &Call) -> RedisResult<Value> {
    match (call.command.query_async(connection).await, call.script) {
        (Err(error), Some(script)) if has_forgotten_the_script(&error) => {
            script.load_async(connection).await?;
            call.command.query_async(connection).await
        }
        (outcome, _) => outcome,
    }
}
