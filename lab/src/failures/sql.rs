//! Plain requests to PostgreSQL.

use postgres::error::DbError;
use postgres::{Client, Error, NoTls, SimpleQueryMessage};

use crate::shared::failure::{Exit, Failure};

/// A statement that takes as long has met a fault of the system.
const PATIENCE: &str = "SET statement_timeout = '30s'";

/// Connects to the database at this URL.
pub(super) fn connect(url: &str) -> Result<Client, Failure> {
    let mut client = Client::connect(url, NoTls).map_err(|error| unanswered(&error))?;
    ask(&mut client, PATIENCE).map_err(|error| unanswered(&error))?;
    Ok(client)
}

/// Sends statements, and returns the first value of the last row, or how many rows were changed.
pub(super) fn ask(client: &mut Client, statements: &str) -> Result<String, Error> {
    let answers = client.simple_query(statements)?;
    let text = |answer: &SimpleQueryMessage| {
        if let SimpleQueryMessage::Row(row) = answer { Some(row.get(0).unwrap_or_default().to_owned()) } else { None }
    };
    Ok(answers.iter().rev().find_map(text).unwrap_or_else(|| rows(&answers)))
}

fn rows(answers: &[SimpleQueryMessage]) -> String {
    let count =
        |answer: &SimpleQueryMessage| if let SimpleQueryMessage::CommandComplete(rows) = answer { *rows } else { 0 };
    match answers.iter().map(count).max().unwrap_or_default() {
        1 => "1 row".to_owned(),
        other => format!("{other} rows"),
    }
}

/// The server's error with its code, or the connection's.
pub(super) fn reason(error: &Error) -> String {
    let of_server = |error: &DbError| format!("{}: {}", error.code().code(), error.message());
    error.as_db_error().map_or_else(|| error.to_string(), of_server)
}

/// The database refused what it should not, or was not there.
pub(super) fn unanswered(error: &Error) -> Failure {
    let reason = reason(error);
    Failure::new(Exit::Unavailable, format!("the database of the scene fails: {reason}; play the scene again"))
}
