//! What either lock does in trouble: the scenes of the tests, as they went in this run.

use std::fmt::Display;
use std::future::Future;

use anyhow::Result;
use test_support::PostgresServer;
use tokio::runtime::Runtime;

use crate::scenes::{Late, TTL, WATCHED, ours, theirs};

/// Plays all scenes, and returns the table.
pub(crate) fn all() -> Result<String> {
    let (runtime, mut servers) = (Runtime::new()?, [PostgresServer::start(), PostgresServer::start()]);
    let rows = runtime.block_on(rows(&mut servers))?;
    let lines = [format!("Leases of {TTL:?}, watched for {WATCHED:?}."), String::new()];
    let heads = ["| | leasehold | `PgAdvisoryLock` |".to_owned(), "|---|---|---|".to_owned()];
    Ok(lines.into_iter().chain(heads).chain(rows).collect::<Vec<_>>().join("\n"))
}

/// The servers are ours and theirs: the sessions of one must not be ended with those of the other.
async fn rows([server, another]: &mut [PostgresServer; 2]) -> Result<Vec<String>> {
    // First, while nobody else is connected.
    let what = "connections for eight locks that are held";
    let connections = both(what, ours::eight_held(server), theirs::eight_held(another)).await?;
    let what = "the server crashes and comes back";
    let crashed = both(what, ours::server_killed(server), theirs::server_killed(another)).await?;
    let what = "`pg_terminate_backend` ends the session";
    let ended = both(what, ours::session_killed(server), ended(another)).await?;
    let died = both("the program of the holder dies", ours::died(server), theirs::died(another)).await?;
    let mut rows = vec![connections, crashed, ended, died];
    rows.extend(guards(server, another).await?);
    let what = "lease expiry: the network of the holder fails silently";
    rows.push(both(what, ours::cut_off(server), theirs::cut_off(another)).await?);
    rows.push(both("fencing token", tokens(server), said("none")).await?);
    let what = "a holder writes that has lost the lock to another one";
    rows.push(both(what, ours::late_write(server), theirs::late_write(another)).await?);
    Ok(rows)
}

/// What a program may do to its guard.
async fn guards(server: &PostgresServer, another: &PostgresServer) -> Result<[String; 5]> {
    let what = "`leak` gives the connection back to the pool with the lock; another task of the program tries";
    let leaked = both(what, ours::same_program(server), theirs::leaked_into_the_pool(another)).await?;
    let what = "the guard is dropped, and its connection goes back to the pool";
    let pooled = both(what, ours::dropped(server), theirs::dropped_into_the_pool(another)).await?;
    let what = "the guard is dropped, and its connection stays with the program, unused";
    let kept = both(what, said("has no such connection"), theirs::dropped_by_itself(another)).await?;
    let forgotten = both("the guard is forgotten", ours::forgotten(server), theirs::forgotten(another)).await?;
    let what = "the same, with `max_hold` of a second";
    let limited = both(what, ours::forgotten_with_a_limit(server), said("nothing like it")).await?;
    Ok([leaked, pooled, kept, forgotten, limited])
}

async fn ended(server: &PostgresServer) -> Result<String> {
    let (outcome, statement) = theirs::session_killed(server).await?;
    let statement = match statement {
        Late::Refused => "the next statement fails",
        Late::Written => "the next statement succeeds",
    };
    Ok(format!("{outcome}; {statement}"))
}

async fn tokens(server: &PostgresServer) -> Result<String> {
    let [first, second] = ours::tokens(server).await?;
    Ok(format!("{first}, then {second}"))
}

async fn said(what: &'static str) -> Result<&'static str> {
    Ok(what)
}

/// One row; both locks are in the same trouble at the same time.
async fn both<A: Display, B: Display>(
    what: &str,
    ours: impl Future<Output = Result<A>>,
    theirs: impl Future<Output = Result<B>>,
) -> Result<String> {
    let (ours, theirs) = tokio::try_join!(ours, theirs)?;
    Ok(format!("| {what} | {ours} | {theirs} |"))
}
