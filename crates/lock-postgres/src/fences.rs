//! Transactions of the user's own that are fenced by a lock.

use lock_host::Proof;
use tokio_postgres::types::Type;

use crate::PostgresConfig;

/// Why a fenced transaction did not begin. Nothing was changed.
pub type FenceError = lock_sql::FenceError<tokio_postgres::Error>;

/// The code with which the server refuses a token.
const REFUSED: &str = "LH001";

/// Begins transactions that are fenced by a lock: until such a transaction ends, nobody else gets the lock, even if its lease expires. So what is
/// read in it is still so when it commits.
///
/// The rows that the lock protects have to be in the database of the locks. The transaction may have any isolation level.
#[derive(Clone, Debug)]
pub struct Fences {
    config: PostgresConfig,
    statement: String,
}

impl Fences {
    /// Fences for the locks of a configuration.
    pub fn new(config: &PostgresConfig) -> Self {
        Self { statement: format!("SELECT {}.fence($1, $2)", config.quoted_schema()), config: config.clone() }
    }

    /// Begins a transaction, and fences it. The guard stays borrowed until the transaction ends, so the lock is not released before then.
    ///
    /// Waits for transactions of earlier turns under the same lease, and for a first transaction of the same turn.
    ///
    /// # Errors
    /// `Refused` if the lock is no longer held; `Database` if the server fails.
    ///
    /// # Cancel safety
    /// Can be dropped at any point: the transaction is rolled back.
    pub async fn begin<'a>(
        &self,
        client: &'a mut tokio_postgres::Client,
        guard: &'a Proof,
    ) -> Result<tokio_postgres::Transaction<'a>, FenceError> {
        let transaction = client.transaction().await.map_err(FenceError::Database)?;
        let (key, token) = self.arguments(guard);
        let fenced = transaction.query_typed(&self.statement, &[(&key, Type::TEXT), (&token, Type::INT8)]).await;
        fenced.map_err(|error| failed(guard, error))?;
        Ok(transaction)
    }

    /// The same for plain threads.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin).
    #[cfg(feature = "postgres")]
    pub fn begin_blocking<'a>(
        &self,
        client: &'a mut postgres::Client,
        guard: &'a Proof,
    ) -> Result<postgres::Transaction<'a>, FenceError> {
        let mut transaction = client.transaction().map_err(FenceError::Database)?;
        let (key, token) = self.arguments(guard);
        let fenced = transaction.query_typed(&self.statement, &[(&key, Type::TEXT), (&token, Type::INT8)]);
        fenced.map_err(|error| failed(guard, error))?;
        Ok(transaction)
    }

    fn arguments(&self, guard: &Proof) -> (String, i64) {
        (self.config.address.prefix().key(guard.name().as_str()), guard.fencing_token().get().cast_signed())
    }
}

fn failed(guard: &Proof, error: tokio_postgres::Error) -> FenceError {
    match error.code() {
        Some(code) if code.code() == REFUSED => FenceError::refused(guard),
        _ => FenceError::Database(error),
    }
}
