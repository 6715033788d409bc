//! A fence as it is stored.

use lock_core::FencingToken;
use rusqlite::types::{FromSql, FromSqlResult, Value, ValueRef};

use super::SqlError;
use crate::Refused;

/// What a database has in the place of a fence.
pub(super) struct Fence(Value);

impl Fence {
    /// Whether a holder with this token may pass. `bad` makes an error of anything that is neither 0 nor a token.
    pub(super) fn allows(&self, token: FencingToken, bad: impl FnOnce(String) -> SqlError) -> Result<(), SqlError> {
        let highest = match &self.0 {
            Value::Integer(0) => return Ok(()),
            Value::Integer(number) => FencingToken::try_from(*number).map_err(|_| number.to_string()),
            Value::Null => Err("NULL".to_owned()),
            Value::Real(_) => Err("a real number (the column needs an integer type)".to_owned()),
            Value::Text(_) => Err("a text (the column needs an integer type)".to_owned()),
            Value::Blob(_) => Err("a blob".to_owned()),
        };
        match highest {
            Ok(highest) if highest > token => Err(Refused { token, highest }.into()),
            Ok(_) => Ok(()),
            Err(found) => Err(bad(found)),
        }
    }
}

impl FromSql for Fence {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Value::column_result(value).map(Self)
    }
}
