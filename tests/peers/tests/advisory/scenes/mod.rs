//! Trouble that a lock may get into, and what comes of it: with leasehold in `ours`, with sqlx's advisory lock in `theirs`.

pub mod ours;
pub mod theirs;

use std::fmt::{Display, Formatter, Result as Written};
use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::Result;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{Connection, query};
use test_support::{Fault, PostgresServer, Proxy};
use tokio::time::{sleep, timeout};

/// How long our leases last. Chosen: long enough to be renewed over a restart of the server on a busy machine.
pub const TTL: Duration = Duration::from_secs(6);
/// For how long each scene is watched: longer than a lease lasts.
pub const WATCHED: Duration = Duration::from_secs(9);
/// How often somebody else tries.
const EVERY: Duration = Duration::from_millis(10);

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// After what time the holder was told that it has lost the lock, without asking the server.
    pub told: Option<Duration>,
    /// After what time somebody else was let in.
    pub second: Option<Duration>,
}

impl Display for Outcome {
    fn fmt(&self, out: &mut Formatter<'_>) -> Written {
        match (self.told, self.second) {
            (None, None) => write!(out, "still held after {WATCHED:?}"),
            (Some(told), None) => write!(out, "the holder is told after {}, and nobody is let in", shown(told)),
            (None, Some(second)) => {
                write!(out, "another one is let in after {}, and the holder is not told", shown(second))
            }
            (Some(told), Some(second)) => {
                write!(out, "the holder is told after {}, another one is let in after {}", shown(told), shown(second))
            }
        }
    }
}

/// After what time somebody else got a lock whose holder has gone or does not want it any more.
#[derive(Debug)]
pub struct Freed(pub Option<Duration>);

impl Display for Freed {
    fn fmt(&self, out: &mut Formatter<'_>) -> Written {
        match self.0 {
            None => write!(out, "still held after {WATCHED:?}"),
            Some(time) => write!(out, "free after {}", shown(time)),
        }
    }
}

fn shown(time: Duration) -> String {
    match time.as_millis() {
        0 => "less than 1 ms".to_owned(),
        millis @ ..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// What became of a statement of a holder that has lost the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// It failed.
    Refused,
    /// It took effect.
    Written,
}

impl Late {
    fn of<T>(outcome: Result<T, sqlx::Error>) -> Self {
        outcome.map_or(Self::Refused, |_| Self::Written)
    }
}

impl Display for Late {
    fn fmt(&self, out: &mut Formatter<'_>) -> Written {
        out.write_str(match self {
            Self::Refused => "refused",
            Self::Written => "accepted",
        })
    }
}

/// Watches a holder, which is `told` at some time or never, while somebody else tries to get in.
async fn watch(told: impl Future, attempt: impl AsyncFnMut() -> Result<bool>) -> Result<Outcome> {
    let begun = Instant::now();
    let told = async { timeout(WATCHED, told).await.ok().map(|_| begun.elapsed()) };
    let (told, freed) = tokio::join!(told, freed(attempt));
    Ok(Outcome { told, second: freed?.0 })
}

/// When somebody who tries again and again gets in.
async fn freed(mut attempt: impl AsyncFnMut() -> Result<bool>) -> Result<Freed> {
    let begun = Instant::now();
    while begun.elapsed() < WATCHED {
        if attempt().await? {
            return Ok(Freed(Some(begun.elapsed())));
        }
        sleep(EVERY).await;
    }
    Ok(Freed(None))
}

/// Ends the sessions of all clients, as an administrator would.
fn kill_sessions(server: &PostgresServer) {
    server.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    );
}

/// Makes the client of a proxy look dead to the server: its connections are closed, and it does not come back.
fn bury(proxy: &Proxy) {
    proxy.set(Fault::Refuse);
    proxy.cut();
}

/// How many connections clients have.
fn connections(server: &PostgresServer) -> Result<u32> {
    let count =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    Ok(server.psql(count).parse()?)
}

/// The application's own connection, which is not that of a lock, with something to write to.
async fn application(server: &PostgresServer) -> Result<PgConnection> {
    let mut db = PgConnection::connect(&server.url()).await?;
    query("CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)").execute(&mut db).await?;
    query("INSERT INTO account VALUES (1, 0)").execute(&mut db).await?;
    Ok(db)
}

/// A pool as small as it can be, so that the next task gets the connection of the last one.
async fn pool(server: &PostgresServer) -> Result<PgPool> {
    let options = sqlx::postgres::PgPoolOptions::new().max_connections(1);
    Ok(options.connect(&server.url()).await?)
}
