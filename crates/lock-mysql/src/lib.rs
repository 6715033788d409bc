//! The backend for MySQL and MariaDB: locks beside the data that they protect, and fences inside the user's own transactions.
//!
//! Clients wait in one queue, first come, first served, and poll for their turn.
//!
//! # What is guaranteed
//! - A grant, a renewal and everything else that a client may rely on is on disk before it is answered, where
//!   `innodb_flush_log_at_trx_commit` is 1, as it is by default, and `sync_binlog` is 1 if there is a binary log.
//! - A transaction that begins with `CALL leasehold_fence(name, token)` keeps the lock from everybody else until it ends, even if the lease expires
//!   meanwhile. Afterwards, the token of an earlier holder is refused with the SQLSTATE `LH001`. `LH002` says that the transaction has read before it was
//!   fenced, and too early; `LH003` that there is none. With a prefix, the name is `PREFIX:NAME`.
//! - A client that stalls between two statements delays nobody: no lock of a row is held over a round trip.
//! - Listings have tokens and no owners. Accounts that may run the procedures are trusted with them.
//!
//! # What is not guaranteed
//! - Leases are timed by the server's clock. Set forward, it ends them early: two clients can hold one lock until the first one renews. Fences
//!   still hold.
//! - A fail-over to an asynchronous replica may lose the latest grants. Tokens then continue above the clock.
//! - A fence ends with its transaction: also with one that a statement commits by itself, such as `CREATE TABLE`, and with a return to a
//!   savepoint from before the fence.
//! - A fenced transaction that stays open keeps the lock from everybody else. Set `wait_timeout`, or `idle_transaction_timeout` on MariaDB.
//!
//! # Fenced transactions
//! The call of `leasehold_fence(name, token)` is the first statement of a transaction, and outside of savepoints. From then on, no other client
//! is granted the lock. [`Fences`] makes the call, or any driver does (the line for sqlx runs in `examples/drivers`; the one for diesel
//! has not been tried):
//!
//! ```text
//! sqlx::query("CALL leasehold_fence(?, ?)").bind("account:7").bind(i64::from(guard.fencing_token())).execute(&mut *transaction).await?;
//! diesel::sql_query("CALL leasehold_fence(?, ?)").bind::<Text, _>("account:7").bind::<BigInt, _>(token).execute(&mut db)?;
//! ```
//!
//! - *Turns.* A process may pass its lease from one of its waiters to the next, each with a higher token. The fence of an earlier turn is
//!   refused once a later one was fenced.
//! - *Transactions under one lease* exclude each other, even with the same token. Each waits for the one before it, for at most
//!   `innodb_lock_wait_timeout`, 50 s by default. Then it fails with 1205, and its transaction stays open: roll it back.
//! - *`REPEATABLE READ`*, the default: what a transaction has read before the fence is older than the fence. If another fenced transaction of the
//!   lease was in between, the fence is refused with `LH002`. So is a call that has to wait for one; [`Fences`] knows the first token of
//!   the lease, and simply waits. With `READ COMMITTED`, `LH002` does not occur.
//! - *`SERIALIZABLE`*: each read locks, so renewals wait for the transaction. This lease may expire, and so may others of its client.
//! - *Long transactions.* Renewals pass an open fence at the other levels, so a transaction may take longer than the ttl. If the lease expires
//!   meanwhile, the guard reports a loss, and the transaction may still commit. Listings do not show the lock then.
//! - *Releases.* While a fence is open, `release`, `downgrade`, `try_upgrade`, `give_back` and `adopt` wait for at most the operation timeout. Then
//!   they fail with `a transaction that is fenced by this lease is still open`, and a release is repeated in the background.
//! - *A name that is never found* (`LH001` for each call) lacks its prefix, differs in case, was sent in another character set than utf8mb4,
//!   or is in another database.
//! - *Not protected*: earlier reads, other transactions, other servers, tables without transactions such as those of MyISAM, and data that others
//!   change without a fence.
//!
//! A transaction may use several databases of a server. With the locks in `locks`, one in `shop` begins with `CALL locks.leasehold_fence(...)`. For
//! [`Fences`], the database of the connection is that of the locks.
//!
//! # The transaction of a fence that blocks others
//! A fence counts as a write. If several transactions are idle after a write, two more connections tell which one it is: the owner waits for
//! it, and the other one names it. On MariaDB:
//!
//! ```text
//! BEGIN; SELECT token FROM leasehold_identity WHERE name = 'account:7' FOR UPDATE; ROLLBACK;  -- as the owner
//! SELECT t.trx_mysql_thread_id FROM information_schema.innodb_lock_waits w                    -- meanwhile
//! JOIN information_schema.innodb_trx t ON t.trx_id = w.blocking_trx_id;
//! ```
//!
//! In MySQL, the last statement is `SELECT blocking_pid FROM sys.innodb_lock_waits`, as an administrator. `KILL` needs the same account, or the
//! right `CONNECTION ADMIN` (`CONNECTION_ADMIN` in MySQL). `idle_transaction_timeout` and `wait_timeout` do not end a statement that runs;
//! `max_statement_time` of MariaDB does. `wait_timeout` also closes idle connections of pools.
//!
//! # Accounts
//! The rights of the script's owner were tried on MariaDB 10.11 and MySQL 9.7, with and without a binary log. `SUPER` is not needed. The script alone
//! does not need `ALTER ROUTINE`; a client that makes the tables itself does. If `MAX_USER_CONNECTIONS` refuses a client its second
//! connection, its leases expire.
//!
//! Tables that a client has made run with the rights of its account. To begin anew, stop all clients, check that no lock is held, drop
//! the procedures and tables as an administrator, and run the script. Limits of semaphores are lost; tokens still rise, because they follow the
//! clock. A table `leasehold_fence` is not one of these: it belongs to the fences of `lock-fence`.
//!
//! ```text
//! SELECT CONCAT('DROP PROCEDURE ', routine_name, ';') FROM information_schema.routines
//! WHERE routine_schema = DATABASE() AND routine_name LIKE 'leasehold\_%';  -- run what it prints, and then:
//! DROP TABLE leasehold_layout, leasehold_lock, leasehold_hold, leasehold_identity, leasehold_place, leasehold_free_slot,
//!   leasehold_tombstone, leasehold_revocation, leasehold_latch, leasehold_arrival;
//! ```
//!
//! # Connections and pools
//!
//! | a client | connections |
//! |---|---|
//! | idle | one |
//! | with leases that were renewed | one more for renewals, until it is unused for 30 s |
//! | with many requests at once | up to eight for requests, and up to eight for renewals, until they are unused for 30 s |
//!
//! All waiters of a client share a poll. A poll that takes longer than 2 ms lengthens the pauses by the same factor. Requests can go over a pool of
//! the user's to the same server and database; renewals, late releases and waiters use the client's own connections. Let the
//! connections of the pool begin with `SET SESSION innodb_lock_wait_timeout = 1`, as the client's own do, and set no `timestamp` in them. A proxy
//! has to send everything to the primary, and keep a transaction on one connection.
//!
//! # TLS
//! `verify-ca` and `verify-full` mean `require`, and every mode but `disable` checks the certificate. With `sslrootcert`, `prefer` uses TLS to
//! this machine as well. With `disable`, a listener cannot read the password, but an attacker who answers in place of a MySQL server learns
//! it. `localhost` is reached over TCP.
//!
//! # Errors with a second cause
//! - `Unknown authentication plugin`: MySQL answers some users that it does not know like this. The plugin of an account has to be
//!   `caching_sha2_password` or `mysql_native_password`.
//! - `PROCEDURE leasehold_make already exists` (1304), from the script: the tables are there. Do not drop them while locks are held; to add an account,
//!   run only the lines with `GRANT`. If an earlier run failed half-way, drop them first.
//! - `not allowed to create a user with GRANT` (1410), `Can't find any matching row` (1133), from the script: create the accounts, and run only the
//!   lines with `GRANT`.
//! - `You have an error in your SQL syntax` (1064), from the script: the server is too old.
//! - `the tables are there, and their procedures are not`: a dump was restored without `--routines`. Run the `CREATE PROCEDURE` statements of the
//!   script as the owner.
//! - `Lock wait timeout exceeded` (1205), from a client: requests of one name wait too long for each other. Check the disk, and look for a fenced
//!   transaction at `SERIALIZABLE`.
//! - `the tables have layout`: a newer version made the tables. Layout 1 is the only one so far.
//!
//! # Housekeeping
//! A lock that was unused for a day is deleted when others are made; its tokens continue from the clock. The procedures look at `read_only` before
//! they commit, so an old primary that was set to it grants nothing, over old connections either.

mod config;
mod connect;
mod described;
mod error;
mod examine;
mod fences;
mod held;
mod schema;
mod source;
mod variables;
mod version;

pub mod blocking;
pub mod nonblocking;

pub use config::MysqlConfig;
pub use fences::{FenceError, Fences};
pub use schema::setup;
