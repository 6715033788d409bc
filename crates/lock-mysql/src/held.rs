//! A connection that one request has: the client's own, or one of a pool of the user's.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lock_core::{BackendError, Effect};
use lock_sql::{Lent, Pool};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, IoError};
use tokio::time::timeout;

use crate::connect::Connector;
use crate::error;

/// How much later than its request ends an answer may come, before the connection is closed. Chosen: a busy server needs longer now and then,
/// and others may need the connection's place.
const LATE_BY: Duration = Duration::from_secs(1);
/// How long what is asked besides requests may take. Chosen: longer than any request.
const ASKED_WITHIN: Duration = Duration::from_secs(5);
/// The shortest limit of a server for the wait for a row lock, in seconds: with 0, it would not wait.
const LOCK_WAIT_MIN: u64 = 1;
/// A request that somebody has ended may have left its transaction open, with what it has locked.
const AFTER_A_FAILURE: &str = "ROLLBACK AND NO CHAIN NO RELEASE";

/// One connection.
pub struct Held {
    /// The client's own connections.
    own: Arc<Pool<Connector>>,
    origin: Origin,
}

pub(crate) enum Origin {
    /// The client's own. `None` while a task uses it.
    Own(Option<Lent<Connector>>),
    /// Goes back to its pool when it is dropped.
    Pool(Option<Conn>),
    /// The same, of a pool for threads.
    #[cfg(feature = "blocking")]
    Threads(Option<mysql::PooledConn>),
}

impl lock_sql::Connection for Held {
    async fn call(
        &mut self,
        function: &'static str,
        arguments: &str,
        within: Duration,
    ) -> Result<Option<String>, BackendError> {
        let statement = format!("{} CALL leasehold_{function}(_utf8mb4 {})", limits(within), literal(arguments));
        loop {
            match self.origin.query(&statement, within).await {
                Ok(answer) => return Ok(answer),
                Err(conflict) if error::is_conflict(&conflict) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }
}

impl Held {
    pub(crate) fn new(own: Arc<Pool<Connector>>, origin: Origin) -> Self {
        Self { own, origin }
    }

    /// Runs a statement that returns one text.
    pub(crate) async fn ask(&mut self, statement: &str) -> Result<Option<String>, BackendError> {
        self.origin.query(statement, ASKED_WITHIN).await.map_err(|error| self.failed(error))
    }

    fn failed(&mut self, failure: Error) -> BackendError {
        let is_elsewhere = error::is_without_tables(&failure) || error::is_read_only(&failure);
        if is_elsewhere {
            self.own.forget_tables();
        }
        if let Origin::Own(Some(lent)) = &mut self.origin {
            lent.is_busy |= is_elsewhere;
        }
        error::of(failure, Effect::Unknown)
    }
}

/// Limits of a request on MariaDB, which alone reads the comment. The server ends a request that waits for a row lock when nobody waits for its
/// answer any more: otherwise the next request of the same client would wait behind it. A request that computes is not ended. MariaDB may leave
/// out one statement of a procedure that `max_statement_time` ends, and commit the others, so that limit is lifted if the server has one. (MySQL
/// applies its limit to `SELECT` only.)
fn limits(within: Duration) -> String {
    let seconds = within.as_secs().max(LOCK_WAIT_MIN);
    format!("/*M! SET STATEMENT innodb_lock_wait_timeout={seconds}, max_statement_time=0 FOR */")
}

/// A text in a statement, whatever the mode of the server. A prepared statement would take another round trip.
fn literal(text: &str) -> String {
    text.bytes().fold("0x".to_owned(), |mut literal, byte| {
        literal.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')));
        literal
    })
}

impl Origin {
    async fn query(&mut self, statement: &str, within: Duration) -> Result<Option<String>, Error> {
        match self {
            Self::Own(place) => in_task(place, statement, within).await,
            Self::Pool(place) => in_task(place, statement, within).await,
            #[cfg(feature = "blocking")]
            Self::Threads(place) => on_thread(place, statement).await,
        }
    }
}

/// A connection that runs statements in a task.
trait Runs: Send + 'static {
    /// Runs a statement that nobody waits for any more after this time.
    fn run(&mut self, statement: &str, within: Duration) -> impl Future<Output = Result<Option<String>, Error>> + Send;
}

impl Runs for Conn {
    async fn run(&mut self, statement: &str, _within: Duration) -> Result<Option<String>, Error> {
        let answer = self.query_first(statement).await;
        if answer.as_ref().is_err_and(error::is_answer) {
            self.query_drop(AFTER_A_FAILURE).await?;
        }
        answer.map(Option::flatten)
    }
}

impl Runs for Lent<Connector> {
    async fn run(&mut self, statement: &str, within: Duration) -> Result<Option<String>, Error> {
        self.is_busy = true;
        let client = self.client().ok_or_else(nothing_lent)?;
        let late = |_| Err(Error::Io(IoError::Io(io::Error::from(io::ErrorKind::TimedOut))));
        let answer = timeout(within + LATE_BY, client.run(statement, within)).await.unwrap_or_else(late);
        self.is_busy = answer.as_ref().is_err_and(|failure| !error::is_answer(failure));
        answer
    }
}

/// Another task has the connection. Each request has one of its own, so this does not happen.
fn nothing_lent() -> Error {
    Error::Io(IoError::Io(io::Error::from(io::ErrorKind::NotConnected)))
}

/// In a task of its own, which reads the answer even if nobody waits for it any more. So the connection can be used again: a busy server that
/// had to accept a connection for each request that it answers late would be busier still.
async fn in_task<R: Runs>(place: &mut Option<R>, statement: &str, within: Duration) -> Result<Option<String>, Error> {
    let mut connection = place.take().ok_or_else(nothing_lent)?;
    let statement = statement.to_owned();
    let run = async move {
        let answer = connection.run(&statement, within).await;
        (connection, answer)
    };
    match tokio::spawn(run).await {
        Ok((connection, answer)) => {
            *place = Some(connection);
            answer
        }
        Err(failure) => Err(Error::Other(Box::new(failure))),
    }
}

#[cfg(feature = "blocking")]
async fn on_thread(place: &mut Option<mysql::PooledConn>, statement: &str) -> Result<Option<String>, Error> {
    let mut connection = place.take().ok_or_else(nothing_lent)?;
    let statement = statement.to_owned();
    let run = move || {
        let answer = mysql::prelude::Queryable::query_first(&mut connection, statement);
        if matches!(answer, Err(mysql::Error::MySqlError(_))) {
            _ = mysql::prelude::Queryable::query_drop(&mut connection, AFTER_A_FAILURE);
        }
        (connection, answer)
    };
    match tokio::task::spawn_blocking(run).await {
        Ok((connection, answer)) => {
            *place = Some(connection);
            answer.map(Option::flatten).map_err(error::of_threads)
        }
        Err(failure) => Err(Error::Other(Box::new(failure))),
    }
}
