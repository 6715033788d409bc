//! A connection that one request has: the client's own, or one of a pool of the user's.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind};
use lock_sql::{Lent, Pool};
#[cfg(feature = "deadpool")]
use tokio_postgres::types::ToSql;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

use crate::connect::Connector;
use crate::error;

/// A connection of an r2d2 pool, whatever its TLS is.
#[cfg(feature = "r2d2")]
pub(crate) type OnThread = Box<dyn std::ops::DerefMut<Target = postgres::Client> + Send>;

/// What ends a transaction that is open. Without the first step, the server would warn of one that is not.
#[cfg(any(feature = "deadpool", feature = "r2d2"))]
const END_OF_TRANSACTION: [&str; 2] = ["BEGIN", "ROLLBACK"];

/// One connection.
pub struct Held {
    /// The client's own connections.
    own: Arc<Pool<Connector>>,
    origin: Option<Origin>,
    is_busy: bool,
}

pub(crate) enum Origin {
    /// The client's own.
    Own(Lent<Connector>),
    /// Goes back to its pool when it is dropped.
    #[cfg(feature = "deadpool")]
    Deadpool(deadpool_postgres::Object),
    /// The same. `None` while a thread uses it.
    #[cfg(feature = "r2d2")]
    R2d2(Option<OnThread>),
}

impl lock_sql::Connection for Held {
    /// The functions themselves bound how long they wait.
    async fn call(
        &mut self,
        function: &'static str,
        arguments: &str,
        _within: Duration,
    ) -> Result<Option<String>, BackendError> {
        let statement = format!("SELECT {}.{function}($1::jsonb)::text", self.own.connector().config.quoted_schema());
        loop {
            match self.query(&statement, arguments).await {
                Ok(answer) => return Ok(answer),
                Err(conflict) if error::is_conflict(&conflict) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }
}

impl Held {
    pub(crate) fn new(own: Arc<Pool<Connector>>, origin: Origin) -> Self {
        Self { own, origin: Some(origin), is_busy: false }
    }

    /// Runs a statement with one text that returns one text.
    pub(crate) async fn ask(&mut self, statement: &str, text: &str) -> Result<Option<String>, BackendError> {
        self.query(statement, text).await.map_err(|error| self.failed(error))
    }

    async fn query(&mut self, statement: &str, text: &str) -> Result<Option<String>, Error> {
        let Some(origin) = &mut self.origin else { return Ok(None) };
        self.is_busy = true;
        let rows = origin.query(statement, text).await?;
        self.is_busy = false;
        Ok(rows.first().and_then(|row| row.get(0)))
    }

    fn failed(&mut self, error: Error) -> BackendError {
        let is_without_schema = error::is_without_schema(&error);
        if is_without_schema {
            self.own.forget_tables();
        }
        let error = error::of(error, Effect::Unknown);
        // Otherwise the server has answered, and waits for the next statement.
        self.is_busy = is_without_schema || error.kind() == ErrorKind::Unreachable;
        error
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        match self.origin.take() {
            Some(Origin::Own(mut lent)) => lent.is_busy = self.is_busy,
            // Something that was sent over it may still run.
            #[cfg(feature = "deadpool")]
            Some(Origin::Deadpool(client)) if self.is_busy || client.is_closed() => {
                drop(deadpool_postgres::Object::take(client));
            }
            // The others go back to their pools. A thread that has one ends its statement first.
            _ => {}
        }
    }
}

impl Origin {
    async fn query(&mut self, statement: &str, text: &str) -> Result<Vec<Row>, Error> {
        match self {
            Self::Own(lent) => match lent.client() {
                Some((client, _)) => client.query_typed(statement, &[(&text, Type::TEXT)]).await,
                None => Ok(Vec::new()),
            },
            #[cfg(feature = "deadpool")]
            Self::Deadpool(client) => {
                // Sent together. The user may have left a transaction open, which would take the answer back.
                let [begin, end] = END_OF_TRANSACTION.map(|step| client.batch_execute(step));
                let values: [(&(dyn ToSql + Sync), Type); 1] = [(&text, Type::TEXT)];
                let rows = client.query_typed(statement, &values);
                futures_util::future::join3(begin, end, rows).await.2
            }
            #[cfg(feature = "r2d2")]
            Self::R2d2(client) => on_thread(client, statement, text).await,
        }
    }
}

#[cfg(feature = "r2d2")]
async fn on_thread(place: &mut Option<OnThread>, statement: &str, text: &str) -> Result<Vec<Row>, Error> {
    let Some(mut client) = place.take() else { return Ok(Vec::new()) };
    let (statement, text) = (statement.to_owned(), text.to_owned());
    let run = move || {
        END_OF_TRANSACTION.iter().for_each(|step| _ = client.batch_execute(step));
        let rows = client.query_typed(&statement, &[(&text, Type::TEXT)]);
        (client, rows)
    };
    match tokio::task::spawn_blocking(run).await {
        Ok((client, rows)) => {
            *place = Some(client);
            rows
        }
        Err(failure) => std::panic::resume_unwind(failure.into_panic()),
    }
}
