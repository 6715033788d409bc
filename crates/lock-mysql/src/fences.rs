//! Transactions of the user's own that are fenced by a lock.

use lock_host::Proof;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, Transaction, TxOpts};

use crate::MysqlConfig;
#[cfg(feature = "blocking")]
use crate::error::of_threads;

/// Why a fenced transaction did not begin. Nothing was changed.
pub type FenceError = lock_sql::FenceError<Error>;

/// The SQLSTATE with which the server refuses a token.
const REFUSED: &str = "LH001";
/// With the first token of the lease, nothing is read before the lock is held.
const FENCE: &str = "CALL leasehold_fence_1(?, ?, ?)";

/// Begins transactions that are fenced by a lock: until such a transaction ends, nobody else gets the lock, even if its lease expires. So what is
/// read in it is still so when it commits.
///
/// The rows that the lock protects have to be on the server of the locks, and the connection's database has to be theirs. The transaction may
/// have any isolation level; at `SERIALIZABLE`, renewals wait for its end.
#[derive(Clone, Debug)]
pub struct Fences {
    config: MysqlConfig,
}

impl Fences {
    /// Fences for the locks of a configuration.
    pub fn new(config: &MysqlConfig) -> Self {
        Self { config: config.clone() }
    }

    /// Begins a transaction, and fences it. The guard stays borrowed until the transaction ends, so the lock is not released before then.
    ///
    /// Waits for other transactions that are fenced by the same lease, for as long as `innodb_lock_wait_timeout` says. End the transaction by
    /// `commit` or `rollback`: one that is dropped ends when its connection is used next.
    ///
    /// # Errors
    /// `Refused` if the lock is no longer held; `Database` if the server fails.
    ///
    /// # Cancel safety
    /// If it is dropped, drop the connection as well: its transaction may have begun, and ends with it.
    pub async fn begin<'a>(
        &self,
        connection: &'a mut Conn,
        guard: &'a Proof,
        options: TxOpts,
    ) -> Result<Transaction<'a>, FenceError> {
        if connection.is_disconnected() {
            return Err(FenceError::Database(DriverError::ConnectionClosed.into()));
        }
        let mut transaction = connection.start_transaction(options).await.map_err(FenceError::Database)?;
        match transaction.exec_drop(FENCE, self.arguments(guard)).await {
            Ok(()) => Ok(transaction),
            Err(failure) => {
                // It has failed already.
                drop(transaction.rollback().await);
                Err(failed(guard, failure))
            }
        }
    }

    /// The same for plain threads.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin).
    #[cfg(feature = "blocking")]
    pub fn begin_blocking<'a>(
        &self,
        connection: &'a mut mysql::Conn,
        guard: &'a Proof,
        options: mysql::TxOpts,
    ) -> Result<mysql::Transaction<'a>, FenceError> {
        let failed_here = |failure| FenceError::Database(of_threads(failure));
        let mut transaction = connection.start_transaction(options).map_err(failed_here)?;
        let fenced = mysql::prelude::Queryable::exec_drop(&mut transaction, FENCE, self.arguments(guard));
        // It is rolled back when it is dropped.
        fenced.map_err(|failure| failed(guard, of_threads(failure)))?;
        Ok(transaction)
    }

    fn arguments(&self, guard: &Proof) -> (String, u64, u64) {
        let low = Proof::hold(guard).lease().tokens.low().get();
        (self.config.address.prefix().key(guard.name().as_str()), low, guard.fencing_token().get())
    }
}

fn failed(guard: &Proof, failure: Error) -> FenceError {
    let is_refused = matches!(&failure, Error::Server(told) if told.state == REFUSED);
    if is_refused { FenceError::refused(guard) } else { FenceError::Database(failure) }
}
