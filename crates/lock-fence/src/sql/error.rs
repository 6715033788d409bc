//! What the checks in SQL answer when nothing was written.

use lock_core::Invalid;

use crate::Refused;

/// Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// A later holder has raised the fence.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No row has the key.
    #[error("the table {table} has no row with this key; insert it first")]
    NoRow {
        /// The table.
        table: String,
    },
    /// The fences are missing from the schema.
    #[error("{missing}; run this statement once: {statement}")]
    NoFence {
        /// What is missing.
        missing: String,
        /// The statement that adds it.
        statement: String,
    },
    /// What is stored is neither 0 nor a token, so it cannot be compared with one.
    #[error("the fence in {place} is {found}, which is neither 0 nor a fencing token; repair it: {statement}")]
    BadFence {
        /// Where it is stored.
        place: String,
        /// What is there.
        found: String,
        /// The statement that makes a new one of it.
        statement: String,
    },
    /// What was passed in cannot be a part of the statement.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The database failed.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
}
