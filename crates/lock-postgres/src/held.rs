//! A connection that one request has: the client's own, or one of a pool of the user's.

#[cfg(feature = "deadpool")]
use tokio_postgres::types::ToSql;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

/// A connection of an r2d2 pool, whatever its TLS is.
#[cfg(feature = "r2d2")]
pub(crate) type OnThread = Box<dyn std::ops::DerefMut<Target = postgres::Client> + Send>;

/// What ends a transaction that is open. Without the first step, the server would warn of one that is not.
#[cfg(any(feature = "deadpool", feature = "r2d2"))]
const END_OF_TRANSACTION: [&str; 2] = ["BEGIN", "ROLLBACK"];

/// One connection.
pub(crate) enum Held {
    /// The client's own.
    Own(Client),
    /// Goes back to its pool when it is dropped.
    #[cfg(feature = "deadpool")]
    Deadpool(deadpool_postgres::Object),
    /// The same. `None` while a thread uses it.
    #[cfg(feature = "r2d2")]
    R2d2(Option<OnThread>),
}

impl Held {
    /// Whether it is of no use any more.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Own(client) => client.is_closed(),
            #[cfg(feature = "deadpool")]
            Self::Deadpool(client) => client.is_closed(),
            #[cfg(feature = "r2d2")]
            Self::R2d2(client) => client.as_ref().is_none_or(|client| client.is_closed()),
        }
    }

    /// Runs a statement with one text.
    pub(crate) async fn query(&mut self, statement: &str, text: &str) -> Result<Vec<Row>, Error> {
        match self {
            Self::Own(client) => client.query_typed(statement, &[(&text, Type::TEXT)]).await,
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

    /// Closes it: something that was sent over it may still run.
    pub(crate) fn close(self) {
        match self {
            Self::Own(client) => drop(client),
            #[cfg(feature = "deadpool")]
            Self::Deadpool(client) => drop(deadpool_postgres::Object::take(client)),
            // Its thread ends the statement, and gives it back.
            #[cfg(feature = "r2d2")]
            Self::R2d2(client) => drop(client),
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
