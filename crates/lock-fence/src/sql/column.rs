//! A fence in each row.

use std::fmt::Write;

use lock_core::{FencingToken, Invalid, WriteToken};
use rusqlite::{Connection, OptionalExtension, ToSql, params_from_iter};

use super::SqlError;
use super::fence::Fence;
use super::identifier::Identifier;

/// A column and its value: to be written, or to find a row by.
pub type Value<'a> = (&'a str, &'a dyn ToSql);

/// A table whose rows have a fence each: the highest token that it was raised to or written with.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use lock_core as leasehold;
/// # use lock_fence as fence;
/// use fence::sql::{FenceColumn, SqlError};
/// # let [paused, token] = [33, 34].map(|number| leasehold::FencingToken::new(number).unwrap());
/// # let write_token = leasehold::WriteToken::of_writer(token);
///
/// let db = rusqlite::Connection::open_in_memory()?;
/// db.execute_batch("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO account VALUES (1, 0)")?;
///
/// let accounts = FenceColumn::new("account", "fence")?;
/// db.execute_batch(&accounts.add_column())?; // once
///
/// accounts.raise(&db, write_token, &[("id", &1)])?; // guard.write_token(): before anything is read
/// let balance: i64 = db.query_row("SELECT balance FROM account WHERE id = 1", (), |row| row.get(0))?;
/// accounts.update(&db, token, &[("balance", &(balance + 50))], &[("id", &1)])?; // token = guard.fencing_token()
/// let late = accounts.update(&db, paused, &[("balance", &0)], &[("id", &1)]);
/// assert!(matches!(late, Err(SqlError::Refused(refused)) if refused.highest == token));
/// # Ok(())
/// # }
/// ```
///
/// A deleted row takes its fence with it: an earlier holder could write to a new row with that key. Mark rows as deleted, or
/// use a [`FenceTable`](super::FenceTable).
#[derive(Clone, Debug)]
pub struct FenceColumn {
    table: Identifier,
    column: Identifier,
}

impl FenceColumn {
    /// This column of this table. Nothing is asked of the database.
    ///
    /// # Errors
    /// `Invalid` if a name is empty or contains a zero byte. Any other name is quoted.
    pub fn new(table: &str, column: &str) -> Result<Self, Invalid> {
        Ok(Self { table: Identifier::new(table)?, column: Identifier::new(column)? })
    }

    /// The statement that adds the column to the table.
    pub fn add_column(&self) -> String {
        format!("ALTER TABLE {} ADD COLUMN {} BIGINT NOT NULL DEFAULT 0", self.table, self.column)
    }

    /// Sets the fence of the rows with this key to the token of a new holder, in one statement, if none of them has seen a higher
    /// one. Returns how many rows there are, at least one.
    ///
    /// Do this **before you read** what you will change: until then, an earlier holder can still write, and what it writes between
    /// your read and your write is lost. Outside of a transaction, it commits by itself. Inside of one, make it the first
    /// statement, and read in that transaction or after its commit; if it is rolled back, the fence is not raised.
    ///
    /// # Errors
    /// As [`update`](Self::update). Read nothing, and stop.
    ///
    /// # Blocking
    /// As [`update`](Self::update).
    pub fn raise(&self, db: &Connection, token: WriteToken, key: &[Value<'_>]) -> Result<usize, SqlError> {
        self.update(db, token.into(), &[], key)
    }

    /// Sets columns of the rows with this key, and their fence to the token, in one statement, if none of them has seen a
    /// higher token. Returns how many rows there are.
    ///
    /// Works inside a transaction of the caller's, too.
    ///
    /// # Errors
    /// Nothing was written. `Refused` if a later holder has raised the fence; `NoRow`, `NoFence`, `BadFence` as they say; `Invalid` for an
    /// empty key; `Sql` if the database failed.
    ///
    /// # Blocking
    /// For as long as another connection writes, at most the busy timeout of the connection.
    pub fn update(
        &self,
        db: &Connection,
        token: FencingToken,
        set: &[Value<'_>],
        key: &[Value<'_>],
    ) -> Result<usize, SqlError> {
        let statement = self.update_statement(set, key)?;
        let number = i64::from(token);
        let values = set.iter().map(|(_, value)| *value);
        let values = values.chain([&number as &dyn ToSql]).chain(key.iter().map(|(_, value)| *value));
        let values: Vec<_> = values.collect();
        // A reason that is gone when it is asked for has just passed, unless a trigger keeps rows from being written.
        for _ in 0..2 {
            match self.named(db, db.execute(&statement, values.as_slice()))? {
                0 => self.check_read(db, token, key)?,
                changed => return Ok(changed),
            }
        }
        Err(rusqlite::Error::StatementChangedRows(0).into())
    }

    /// Checks for a reader that no later holder has raised the fence: no row with this key has seen a token that is higher. Changes
    /// nothing, so a reader never shuts out a writer. Read in the same transaction.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn check_read(&self, db: &Connection, token: FencingToken, key: &[Value<'_>]) -> Result<(), SqlError> {
        let Self { table, column } = self;
        let (found_by, sound) = (self.found_by(key, 1)?, self.sound());
        let worst = format!(
            "SELECT {table}.{column} FROM {table} WHERE {found_by} ORDER BY {sound}, {table}.{column} DESC LIMIT 1"
        );
        let values = params_from_iter(key.iter().map(|(_, value)| *value));
        let fence: Option<Fence> = self.named(db, db.query_row(&worst, values, |row| row.get(0)).optional())?;
        let fence = fence.ok_or_else(|| SqlError::NoRow { table: table.name().to_owned() })?;
        fence.allows(token, |found| SqlError::BadFence {
            place: format!("{table}.{column}"),
            found,
            statement: format!("UPDATE {table} SET {column} = 0 WHERE {found_by}"),
        })
    }

    /// The check and the write as one statement. A column with its table cannot be taken for a text if it does not exist.
    fn update_statement(&self, set: &[Value<'_>], key: &[Value<'_>]) -> Result<String, SqlError> {
        let Self { table, column } = self;
        let mut written = String::new();
        for (number, (name, _)) in set.iter().enumerate() {
            if name.eq_ignore_ascii_case(column.name()) {
                return Err(
                    Invalid::new("column", name, "it is the fence, which the token is written to", "omit it").into()
                );
            }
            _ = write!(written, "{} = ?{}, ", Identifier::new(name)?, number + 1);
        }
        let token = set.len() + 1;
        let found = self.found_by(key, token + 1)?;
        Ok(format!(
            "UPDATE {table} SET {written}{column} = ?{token} WHERE {found} AND NOT EXISTS \
             (SELECT 1 FROM {table} WHERE {found} AND (NOT {sound} OR {table}.{column} > ?{token}))",
            sound = self.sound(),
        ))
    }

    /// Whether the fence of a row is 0 or a token. A text would be compared with tokens as a text.
    fn sound(&self) -> String {
        let fence = format!("{}.{}", self.table, self.column);
        format!("(typeof({fence}) = 'integer' AND {fence} BETWEEN 0 AND {})", FencingToken::MAX)
    }

    /// The condition that a row has this key; its values begin with this number.
    fn found_by(&self, key: &[Value<'_>], first: usize) -> Result<String, SqlError> {
        if key.is_empty() {
            return Err(Invalid::new("key", "", "it names no column", "name the columns that identify the row").into());
        }
        let equal = key
            .iter()
            .enumerate()
            .map(|(number, (name, _))| Ok(format!("{}.{} = ?{}", self.table, Identifier::new(name)?, first + number)));
        Ok(equal.collect::<Result<Vec<_>, Invalid>>()?.join(" AND "))
    }

    /// Adds what to do, if the database failed because the column is missing.
    fn named<T>(&self, db: &Connection, result: rusqlite::Result<T>) -> Result<T, SqlError> {
        let Self { table, column } = self;
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let columns = "SELECT coalesce(max(name = ?2 COLLATE NOCASE), 1) FROM pragma_table_info(?1)";
        let exists = db.query_row(columns, (table.name(), column.name()), |row| row.get(0));
        if exists.unwrap_or(true) {
            return Err(error.into());
        }
        let missing = format!("the table {table} has no column {column}");
        Err(SqlError::NoFence { missing, statement: self.add_column() })
    }
}
