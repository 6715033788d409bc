//! Two tellers put money into one account in PostgreSQL. Each reads the balance and writes a new one under a lock, and one of them is stopped
//! for longer than its lease in between. What is lost depends on how the writes are checked.

mod configuration;
mod with_threads;
mod with_tokio;

use std::env;
use std::io::{BufRead, BufReader, Lines, Write, stdin};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use test_support::bounds::{Watchdog, wait_for};
use test_support::{PostgresOptions, PostgresServer, Shared, signals};

/// What the teller that is stopped has to know.
const STORE: &str = "LEASEHOLD_TEST_STORE";
const CHECK: &str = "LEASEHOLD_TEST_CHECK";
const FACADE: &str = "LEASEHOLD_TEST_FACADE";
const STOPPED: &str = "LEASEHOLD_TEST_STOPPED";

/// How long the leases are. A teller has to be stopped for longer.
const TTL: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(30);

const ACCOUNT: &str = "CREATE TABLE account (balance bigint NOT NULL, fence bigint NOT NULL DEFAULT 0, version bigint NOT NULL DEFAULT 0); \
     INSERT INTO account VALUES (100)";
const RAISE: &str = "UPDATE account SET fence = $1 WHERE fence <= $1";
const READ: &str = "SELECT balance, version FROM account";
const WRITE_UNDER_FENCE: &str = "UPDATE account SET balance = $1";
const WRITE_WITH_TOKEN: &str = "UPDATE account SET balance = $1, fence = $2 WHERE fence <= $2";
const WRITE_WITH_VERSION: &str = "UPDATE account SET balance = $1, version = version + 1 WHERE version = $2";

/// What keeps late writes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// The transaction begins with a fence.
    Fence,
    /// A column that has the highest token, raised before the balance is read.
    RaisedColumn,
    /// The same, not raised before the write.
    Column,
    /// A column that each write changes.
    Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Facade {
    Tokio,
    Threads,
}

/// Where a teller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Held,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Written,
    Refused,
}

/// Finds a value by the name that `Debug` gives it.
fn named<T: Copy + std::fmt::Debug>(variable: &str, all: &[T]) -> Option<T> {
    let name = env::var(variable).ok()?;
    all.iter().copied().find(|one| format!("{one:?}") == name)
}

/// Tries once: acquires the lock, reads, and writes the balance with the amount added to it.
fn deposit(url: &str, facade: Facade, check: Check, amount: i64, at: impl FnMut(At)) -> Outcome {
    match facade {
        Facade::Tokio => with_tokio::deposit(url, check, amount, at),
        Facade::Threads => with_threads::deposit(url, check, amount, at),
    }
}

/// The process that is stopped: goes on when it reads a line, without asking whether it still holds the lock.
#[test]
fn the_teller_that_is_stopped() {
    let checks = [Check::Fence, Check::RaisedColumn, Check::Column, Check::Version];
    let (Ok(url), Some(check)) = (env::var(STORE), named(CHECK, &checks)) else { return };
    let facade = named(FACADE, &[Facade::Tokio, Facade::Threads]).unwrap();
    let stopped = named(STOPPED, &[At::Held, At::Read]).unwrap();
    let outcome = deposit(&url, facade, check, 50, |at| {
        if at == stopped {
            println!("\nsaid: {at:?}");
            stdin().read_line(&mut String::new()).unwrap();
        }
    });
    println!("\nsaid: {outcome:?}");
    if outcome == Outcome::Refused {
        println!("\nsaid: {:?}", deposit(&url, facade, check, 50, |_| ()));
    }
}

/// That process, as the test sees it.
struct Stopped {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Stopped {
    /// Starts it, and stops it when it is there.
    fn at(at: At, url: &str, facade: Facade, check: Check) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "postgres::the_teller_that_is_stopped", "--nocapture"]).env(STORE, url);
        command.env(CHECK, format!("{check:?}")).env(FACADE, format!("{facade:?}")).env(STOPPED, format!("{at:?}"));
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut stopped = Self { process, lines };
        assert_eq!(stopped.says(), format!("{at:?}"));
        signals::stop(stopped.process.id());
        stopped
    }

    fn says(&mut self) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        lines.find_map(|line| line.strip_prefix("said: ").map(str::to_owned)).expect("the process says something")
    }

    /// Resumes it, and returns what came of its deposit.
    fn goes_on(&mut self) -> String {
        self.process.stdin.take().unwrap().write_all(b"go on\n").unwrap();
        signals::resume(self.process.id());
        self.says()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A database with an account that has 100.
struct Bank {
    server: Arc<PostgresServer>,
    name: String,
    url: String,
}

impl Bank {
    fn open() -> Self {
        static SERVER: Shared<PostgresServer> = Shared::new();
        static BANKS: AtomicU32 = AtomicU32::new(0);
        let server = SERVER.get(|| PostgresServer::start_with(PostgresOptions::default().volatile()));
        let name = format!("bank_{}", BANKS.fetch_add(1, Ordering::SeqCst));
        let url = server.database(&name);
        server.psql_in(&name, ACCOUNT);
        Self { server, name, url }
    }

    fn balance(&self) -> i64 {
        self.server.psql_in(&self.name, "SELECT balance FROM account").parse().unwrap()
    }
}

const FACADES: [(Facade, Facade); 2] = [(Facade::Tokio, Facade::Threads), (Facade::Threads, Facade::Tokio)];

/// One teller is stopped at this place, and goes on when the other one, who has the lock then, has read. A teller that is refused tries again.
/// Returns the balance in the end, and what came of the first try of each.
fn play(check: Check, stopped_at: At, (late, current): (Facade, Facade)) -> (i64, String, Outcome) {
    let (bank, _watchdog) = (Bank::open(), Watchdog::over_this_test());
    let mut stopped = Stopped::at(stopped_at, &bank.url, late, check);
    let mut said = String::new();
    let outcome = deposit(&bank.url, current, check, 20, |at| {
        if at == At::Read {
            said = stopped.goes_on();
        }
    });
    if outcome == Outcome::Refused {
        assert_eq!(deposit(&bank.url, current, check, 20, |_| ()), Outcome::Written);
    }
    if said == "Refused" {
        assert_eq!(stopped.says(), "Written");
    }
    (bank.balance(), said, outcome)
}

#[test]
fn a_teller_that_was_stopped_before_its_fence_is_refused_and_nothing_is_lost() {
    for facades in FACADES {
        let played = play(Check::Fence, At::Held, facades);
        assert_eq!(played, (170, "Refused".to_owned(), Outcome::Written), "{facades:?}");
    }
}

/// Its transaction was begun under the lock, so nobody else gets the lock before it has committed.
#[test]
fn a_teller_that_was_stopped_behind_its_fence_commits_and_nothing_is_lost() {
    for (late, current) in FACADES {
        let (bank, _watchdog) = (Bank::open(), Watchdog::over_this_test());
        let mut stopped = Stopped::at(At::Read, &bank.url, late, Check::Fence);
        let expired = "SELECT bool_and(until < leasehold.clock()) FROM leasehold.hold";
        wait_for("the end of the lease", || bank.server.psql_in(&bank.name, expired) == "t");
        let locks = leasehold::blocking::connect(&bank.url).unwrap();
        assert!(locks.mutex("account").try_acquire().unwrap().is_none(), "a fenced transaction is open");
        assert_eq!((stopped.goes_on(), bank.balance()), ("Written".to_owned(), 150));
        assert_eq!(deposit(&bank.url, current, Check::Fence, 20, |_| ()), Outcome::Written);
        assert_eq!(bank.balance(), 170);
    }
}

#[test]
fn a_column_that_is_not_raised_before_the_read_lets_a_late_write_in_and_loses_it() {
    for facades in FACADES {
        let played = play(Check::Column, At::Read, facades);
        assert_eq!(played, (120, "Written".to_owned(), Outcome::Written), "{facades:?}");
    }
}

#[test]
fn a_column_that_is_raised_first_refuses_the_late_write() {
    for facades in FACADES {
        let played = play(Check::RaisedColumn, At::Read, facades);
        assert_eq!(played, (170, "Refused".to_owned(), Outcome::Written), "{facades:?}");
    }
}

/// The late write is let in. The holder is refused, and reads again.
#[test]
fn a_version_that_each_write_changes_refuses_the_holder_that_has_read_before_the_late_write() {
    for facades in FACADES {
        let played = play(Check::Version, At::Read, facades);
        assert_eq!(played, (170, "Written".to_owned(), Outcome::Refused), "{facades:?}");
    }
}
