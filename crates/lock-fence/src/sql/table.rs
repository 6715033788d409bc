//! The fences in a table of their own.

use lock_core::{FencingToken, WriteToken};
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::SqlError;
use super::fence::Fence;

/// A table of fences, one for each resource: for writes of several statements, inserts and deletes.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use lock_core as leasehold;
/// # use lock_fence as fence;
/// use fence::sql::FenceTable;
/// # let token = leasehold::WriteToken::of_writer(leasehold::FencingToken::new(34)?);
///
/// let mut db = rusqlite::Connection::open_in_memory()?;
/// db.execute_batch("CREATE TABLE payment (id INTEGER PRIMARY KEY, amount INTEGER)")?;
/// db.execute_batch(FenceTable::CREATE)?; // once
///
/// let transaction = db.transaction()?;
/// FenceTable::raise(&transaction, "invoice:42", token)?; // guard.write_token(): first, before anything is read
/// transaction.execute("INSERT INTO payment (amount) VALUES (50)", ())?;
/// transaction.commit()?;
/// # Ok(())
/// # }
/// ```
///
/// The name of a resource can be any text. The permits of a semaphore need a resource for each slot, such as `gpu/3`.
#[derive(Clone, Copy, Debug)]
pub struct FenceTable;

/// One statement, so no other connection can come between the comparison and the change.
const RAISE: &str = "INSERT INTO leasehold_fence (resource, token) VALUES (?1, ?2) \
    ON CONFLICT (resource) DO UPDATE SET token = excluded.token \
    WHERE leasehold_fence.token BETWEEN 0 AND excluded.token";

impl FenceTable {
    /// The statement that creates the table, unless it exists.
    pub const CREATE: &str =
        "CREATE TABLE IF NOT EXISTS leasehold_fence (resource VARCHAR(700) PRIMARY KEY, token BIGINT NOT NULL)";

    /// Notes the token for what the transaction reads and writes, unless the resource has seen a higher one. From then on until the
    /// transaction ends, no other one gets past this for any resource of the file.
    ///
    /// Make it the first statement, **before you read** what you will change: until then, an earlier holder can still write. If the
    /// work reads before this transaction, for instance because it asks somebody else in between, commit one that only raises
    /// first. One that is rolled back raises nothing.
    ///
    /// # Errors
    /// `Refused` if a later holder has raised the fence: roll the transaction back, as dropping it does. `NoFence`, `BadFence` and `Sql` as
    /// they say. Nothing was noted.
    ///
    /// # Blocking
    /// For as long as another connection writes, at most the busy timeout of the connection.
    pub fn raise(transaction: &Transaction<'_>, resource: &str, token: WriteToken) -> Result<(), SqlError> {
        let raised = transaction.execute(RAISE, (resource, i64::from(token)));
        if raised.map_err(|error| named(transaction, error))? == 1 {
            return Ok(());
        }
        Self::check_read(transaction, resource, token.into())?;
        // A trigger keeps the row from being written.
        Err(rusqlite::Error::StatementChangedRows(0).into())
    }

    /// Checks for a reader that no later holder has raised the fence: the resource has seen no token that is higher. Notes nothing, so
    /// a reader never shuts out a writer. Read in the same transaction.
    ///
    /// # Errors
    /// As [`raise`](Self::raise).
    pub fn check_read(transaction: &Transaction<'_>, resource: &str, token: FencingToken) -> Result<(), SqlError> {
        let select = "SELECT token FROM leasehold_fence WHERE resource = ?1";
        let fence = transaction.query_row(select, [resource], |row| row.get::<_, Fence>(0)).optional();
        let Some(fence) = fence.map_err(|error| named(transaction, error))? else { return Ok(()) };
        fence.allows(token, |found| SqlError::BadFence {
            place: format!("leasehold_fence for {resource:?}"),
            found,
            statement: "UPDATE leasehold_fence SET token = 0 WHERE resource = ?".to_owned(),
        })
    }
}

/// Adds what to do, if the database failed because the table is missing.
fn named(db: &Connection, error: rusqlite::Error) -> SqlError {
    match db.table_exists(None, "leasehold_fence") {
        Ok(false) => SqlError::NoFence {
            missing: "there is no table leasehold_fence".to_owned(),
            statement: FenceTable::CREATE.to_owned(),
        },
        _ => error.into(),
    }
}
