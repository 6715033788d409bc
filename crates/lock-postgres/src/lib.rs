//! The backend for PostgreSQL: locks beside the data that they protect, and fences inside the user's own transactions.
//!
//! Clients wait in one queue, first come, first served, and learn by notifications that their turn has come.
//!
//! # What is guaranteed
//! - A grant, a renewal and everything else that somebody may rely on reaches the disk before it is answered, whatever
//!   `synchronous_commit` is by default; and synchronous standbys, if there are any.
//! - A transaction that begins with `SELECT leasehold.fence(name, token)` keeps the lock from everybody else until it ends, even if the lease
//!   expires meanwhile. With a prefix, the name is `PREFIX:NAME`. Afterwards, the token of an earlier holder is refused with the code `LH001`.
//! - A client that stalls between two statements delays nobody: no lock of a row is held over a round trip.
//! - Notifications and listings have tokens and no owners. Roles that may run the functions are trusted with them.
//!
//! # What is not guaranteed
//! - Leases are timed by the server's clock. Set forward, it ends them early: two clients can hold one lock until the first one renews. Fences
//!   still hold.
//! - A fail-over to an asynchronous standby may lose the latest grants. Tokens then continue above the clock.
//! - A fenced transaction that stays open keeps the lock from everybody else. Set `idle_in_transaction_session_timeout`.
//!
//! # Fenced transactions
//! The call of `leasehold.fence(name, token)` is the first statement of a transaction, and outside of savepoints: a return to one ends the
//! fence. From then on, no other client is granted the lock. [`Fences`] makes the call, or any driver does:
//!
//! ```text
//! sqlx::query("SELECT leasehold.fence($1, $2)").bind("account:7").bind(i64::from(guard.fencing_token())).execute(&mut *transaction).await?;
//! diesel::sql_query("SELECT leasehold.fence($1, $2)").bind::<Text, _>("account:7").bind::<BigInt, _>(token).execute(&mut db)?;
//! ```
//!
//! - *Turns.* A process may pass its lease from one of its waiters to the next, each with a higher token. The fence of an earlier turn is
//!   refused once a later one was fenced.
//! - *Transactions with the same token* wait for the first of them to end. After that, they run in parallel.
//! - *Isolation.* Any level is possible. Under `REPEATABLE READ` and `SERIALIZABLE`, a fence that waited for another transaction under the same
//!   lease may fail with `40001`: run the transaction again.
//! - *Long transactions.* Renewals pass an open fence, so a transaction may take longer than the ttl. If the lease expires meanwhile, the guard
//!   reports a loss, and the transaction may still commit. Listings then show the lock with 0 s left: those among the hundred leases that
//!   expired last.
//! - *Releases.* While a fence is open, `release`, `downgrade`, `try_upgrade`, `give_back` and `adopt` wait for at most the operation timeout. Then
//!   they fail with `a transaction that is fenced by this lease is still open`, and a release is repeated in the background.
//! - *Idle transactions.* `idle_in_transaction_session_timeout` ends them; a statement that runs needs `statement_timeout`.
//! - *Not protected*: earlier reads, other transactions, other databases, and data that others change without a fence.
//!
//! # Connections
//! All have the `application_name` `leasehold`.
//!
//! | a client | connections |
//! |---|---|
//! | idle | one |
//! | with leases that were renewed | one more for renewals, until it is unused for 30 s |
//! | with a waiter | one more that listens, until nobody has waited for 10 s |
//! | with many requests at once | up to eight for requests, and up to eight for renewals, until they are unused for 30 s |
//!
//! Behind a pooler in transaction mode, a client finds out in two seconds that notifications do not arrive, and polls from the beginning. A
//! proxy that pins a session because of settings or `LISTEN` works, but saves no connections. Fenced transactions work with any pooler that
//! keeps a transaction on one connection.
//!
//! # TLS
//! `verify-ca` and `verify-full` mean `require`, and every mode but `disable` checks the certificate. With `sslrootcert`, `prefer` uses TLS
//! to this machine as well. A self-signed certificate as `sslrootcert` works only if it was made without `CA:TRUE`. A password file that other
//! users may read is ignored.
//!
//! # Standbys
//! Without the synchronous standby, each name that is requested leaves a connection that waits (`SyncRep`), even when its client has ended. These
//! grants are held until their ttl ends once the standby is back. `pg_cancel_backend`, or an empty `synchronous_standby_names`, confirms what
//! waits although no standby has it.
//!
//! # Errors with a second cause
//! - `schema "leasehold" already exists` (42P06): from a client, another program made the schema, so choose one by `schema=NAME`. From the script,
//!   the tables are there: do not drop them while locks are held; to add a role, run only the lines with `GRANT`.
//! - `canceling statement due to lock timeout` (55P03): requests of one name wait too long for each other. Check the disk, the age of
//!   transactions, and that a synchronous standby is connected.
//! - `the tables have layout`: a newer version made the tables. Layout 1 is the only one so far.
//! - `too many clients` (53300): raise `max_connections`, share a client within each process, or use a pooler.
//!
//! # Housekeeping
//! A lock that was unused for a day is deleted when others are made; its tokens continue from the clock. No untrusted role may have `CREATE` on
//! the database before the script has run: it could make a false schema `leasehold` first.

mod config;
mod connect;
mod described;
mod error;
mod examine;
mod fences;
mod held;
mod login;
mod schema;
mod source;

pub mod blocking;
pub mod nonblocking;

pub use config::PostgresConfig;
pub use fences::{FenceError, Fences};
pub use schema::setup;
