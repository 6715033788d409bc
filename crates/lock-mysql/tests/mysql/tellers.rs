//! Two tellers at one account, the first of whom is stopped between reading and writing for longer than its lease: nothing is lost.

use std::sync::Arc;
use std::time::Duration;

use lock_core::OnUnavailable;
use lock_mysql::{FenceError, Fences, nonblocking};
use mysql::prelude::Queryable;
use mysql_async::prelude::Queryable as _;
use test_support::bounds::{wait_for, within};
use test_support::{Fault, Proxy};

use crate::support::{
    BRIEF, Client, Place, SOON, Session, claim, code, driver_opts, end, lasting, locks, low, meanwhile, releases, take,
    wait_for_the_end_of, wait_until_blocked,
};

/// Renewed in time unless the store is out of reach. A request has less time, which may be too little for a server that is busy.
const TTL: Duration = Duration::from_secs(1);
pub(crate) const READ: &str = "SELECT money FROM account WHERE name = 'a'";

/// A database with two accounts, and a way to it that can be closed.
pub(crate) struct Bank {
    pub(crate) place: Place,
    way: Proxy,
}

impl Bank {
    pub(crate) fn in_place(place: Place) -> Self {
        let way = Proxy::start(place.server.port());
        let table = "CREATE TABLE account (name VARCHAR(9) PRIMARY KEY, money INT, token BIGINT DEFAULT 0, version INT DEFAULT 0)";
        let rows = "INSERT INTO account (name, money) VALUES ('a', 100), ('b', 100)";
        place.session().run(&format!("{table}; {rows}")).unwrap();
        Self { place, way }
    }

    pub(crate) fn new() -> Self {
        Self::in_place(Place::new())
    }

    /// Leads a client over the way that can be closed.
    fn url(&self) -> String {
        let [there, here] = [self.place.server.port(), self.way.port()].map(|port| format!(":{port}/"));
        self.place.url.replace(&there, &here)
    }

    pub(crate) fn money(&self) -> (i32, i32) {
        let session = self.place.session();
        let of = |name: &str| session.value(&format!("SELECT money FROM account WHERE name = '{name}'"));
        (of("a"), of("b"))
    }

    /// Nobody renews the lease any more, and it ends while another teller waits for the lock.
    fn stop_the_first(&self) {
        self.way.set(Fault::Hold);
        let session = self.place.session();
        let ended = "SELECT COUNT(*) = 1 FROM leasehold_hold WHERE until < 1000000 * UNIX_TIMESTAMP(UTC_TIMESTAMP(6))";
        session.run("SET time_zone = '+00:00'").unwrap();
        wait_for("the end of the lease", || session.value::<bool>(ended));
        wait_for("a waiter", || session.value::<bool>("SELECT COUNT(*) = 1 FROM leasehold_place"));
    }
}

/// The two writes of a transfer, after this was read.
pub(crate) fn transfer(read: i32, money: i32) -> [String; 2] {
    [
        format!("UPDATE account SET money = {} WHERE name = 'a'", read - money),
        format!("UPDATE account SET money = money + {money} WHERE name = 'b'"),
    ]
}

/// A teller that waits for its turn, and is not stopped.
fn quick_teller(bank: &Bank) -> std::thread::JoinHandle<()> {
    let (locks, url) = (bank.place.locks(), bank.place.url.clone());
    let fences = Fences::new(&bank.place.config());
    meanwhile(move || {
        let guard = locks.mutex("till").wait(SOON).acquire().unwrap();
        let mut user = mysql::Conn::new(driver_opts(&url)).unwrap();
        let mut transaction = fences.begin_blocking(&mut user, &guard, mysql::TxOpts::default()).unwrap();
        let read = transaction.query_first(READ).unwrap().unwrap();
        transfer(read, 20).iter().for_each(|write| transaction.query_drop(write).unwrap());
        transaction.commit().unwrap();
        guard.release().unwrap();
    })
}

#[test]
fn two_tellers_on_threads_lose_nothing_though_the_lease_of_one_ends() {
    let bank = Bank::new();
    let (slow, fences) = (locks(&bank.url()), Fences::new(&bank.place.config()));
    let mut user = mysql::Conn::new(driver_opts(&bank.place.url)).unwrap();
    let guard = slow.mutex("till").ttl(TTL).on_unavailable(OnUnavailable::Wait).acquire().unwrap();
    let mut transaction = fences.begin_blocking(&mut user, &guard, mysql::TxOpts::default()).unwrap();
    let read = transaction.query_first(READ).unwrap().unwrap();
    let other = quick_teller(&bank);
    bank.stop_the_first();
    assert!(!other.is_finished());
    transfer(read, 10).iter().for_each(|write| transaction.query_drop(write).unwrap());
    transaction.commit().unwrap();
    end(other);
    assert_eq!(bank.money(), (70, 130));
    let refused = fences.begin_blocking(&mut user, &guard, mysql::TxOpts::default()).map(drop).unwrap_err();
    assert!(matches!(&refused, FenceError::Refused { token, .. } if *token == guard.fencing_token()), "{refused}");
    user.query_drop("SELECT 1").unwrap();
    bank.way.set(Fault::None);
}

async fn with_tokio(bank: &Bank) {
    let config = lock_mysql::MysqlConfig::from_url(&bank.url()).unwrap();
    let slow = lock_async::Client::new(Arc::new(nonblocking::connect(&config).await.unwrap())).unwrap();
    let fences = Fences::new(&config);
    let url = format!("{}?prefer_socket=false", bank.place.url);
    let mut user = mysql_async::Conn::from_url(url).await.unwrap();
    let guard = slow.mutex("till").ttl(TTL).on_unavailable(OnUnavailable::Wait).acquire().await.unwrap();
    let mut transaction = fences.begin(&mut user, &guard, mysql_async::TxOpts::default()).await.unwrap();
    let read = transaction.query_first(READ).await.unwrap().unwrap();
    let other = quick_teller(bank);
    bank.stop_the_first();
    assert!(!other.is_finished());
    for write in transfer(read, 10) {
        transaction.query_drop(write).await.unwrap();
    }
    transaction.commit().await.unwrap();
    end(other);
    let refused = fences.begin(&mut user, &guard, mysql_async::TxOpts::default()).await.map(drop).unwrap_err();
    let FenceError::Refused { name, token } = &refused else { panic!("{refused}") };
    assert_eq!((name.as_str(), *token), ("till", guard.fencing_token()));
    assert!(refused.to_string().contains("acquire it again"), "{refused}");
    user.query_drop("SELECT 1").await.unwrap();
    bank.way.set(Fault::None);
}

#[test]
fn two_tellers_on_tokio_lose_nothing_though_the_lease_of_one_ends() {
    let bank = Bank::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    within("the end of a scenario", || runtime.block_on(with_tokio(&bank)));
    assert_eq!(bank.money(), (70, 130));
}

type Guards = (std::sync::mpsc::Receiver<lock_blocking::Guard>, Vec<std::thread::JoinHandle<()>>);

/// Two waiters of one process, for whom one lease suffices.
fn two_waiters(bank: &Bank) -> Guards {
    let (client, held, locks) = (bank.place.client(), claim("till"), bank.place.locks());
    take(&client, &held);
    let (tell, told) = std::sync::mpsc::channel();
    let wait = |_| {
        let (next, tell) = (locks.mutex("till").wait(SOON), tell.clone());
        meanwhile(move || tell.send(next.acquire().unwrap()).unwrap())
    };
    let waiters = (0..2).map(wait).collect();
    let session = bank.place.session();
    wait_for("two waiters", || session.value::<bool>("SELECT COALESCE(MAX(width), 0) >= 2 FROM leasehold_place"));
    releases(&client, &held);
    (told, waiters)
}

/// The transaction of the first one is still open when the second one gets the lock, under the same lease.
#[test]
fn two_tellers_of_one_process_exclude_each_other() {
    let bank = Bank::new();
    let (fences, first, watcher) = (Fences::new(&bank.place.config()), bank.place.session(), bank.place.watcher());
    let (guards, waiters) = two_waiters(&bank);
    let guard = guards.recv_timeout(SOON).unwrap();
    let token = guard.fencing_token().get();
    first.begin("till", token).unwrap();
    let read = first.value(READ);
    guard.release().unwrap();
    let second = guards.recv_timeout(SOON).unwrap();
    waiters.into_iter().for_each(end);
    assert_eq!(second.fencing_token().get(), token + 1, "it is the same lease");
    let mut user = mysql::Conn::new(driver_opts(&bank.place.url)).unwrap();
    let id = user.connection_id();
    let other = meanwhile(move || {
        let mut transaction = fences.begin_blocking(&mut user, &second, mysql::TxOpts::default()).unwrap();
        let read = transaction.query_first(READ).unwrap().unwrap();
        transfer(read, 20).iter().for_each(|write| transaction.query_drop(write).unwrap());
        transaction.commit().unwrap();
    });
    wait_until_blocked(&watcher, id);
    transfer(read, 10).iter().for_each(|write| first.run(write).unwrap());
    first.run("COMMIT").unwrap();
    end(other);
    assert_eq!(bank.money(), (70, 130));
    assert_eq!(code(first.begin("till", token)), "LH001");
}

/// The first teller reads and is stopped; the lease ends, and the second one reads; then each of them writes, if the account lets it. Returns
/// how many rows they wrote, and the money.
fn without_fences(raise: &str, write: impl Fn(u64, i32) -> String) -> [i64; 3] {
    let bank = Bank::new();
    let (client, [slow, quick]): (Client, _) = (bank.place.client(), [bank.place.session(), bank.place.session()]);
    let written = |session: &Session, sql: String| {
        session.run(&sql).unwrap();
        i64::try_from(session.0.borrow().affected_rows()).unwrap()
    };
    let first = low(&take(&client, &lasting(BRIEF, claim("till"))));
    let read: i32 = slow.value(READ);
    wait_for_the_end_of(BRIEF);
    let second = low(&take(&client, &claim("till")));
    quick.run(&raise.replace("$token", &second.to_string())).unwrap();
    let read_later: i32 = quick.value(READ);
    let late = written(&slow, write(first, read - 10));
    [late, written(&quick, write(second, read_later - 20)), i64::from(bank.money().0)]
}

fn compared(token: u64, money: i32) -> String {
    format!("UPDATE account SET money = {money}, token = {token} WHERE name = 'a' AND token <= {token}")
}

#[test]
fn a_compared_token_refuses_the_first_teller_if_the_second_one_raises_it_before_it_reads() {
    let raise = "UPDATE account SET token = $token WHERE name = 'a' AND token < $token";
    assert_eq!(without_fences(raise, compared), [0, 1, 80]);
    // Both wrote, and the money of the first one is lost.
    assert_eq!(without_fences("", compared), [1, 1, 80]);
}

#[test]
fn a_version_refuses_the_teller_who_writes_last() {
    let optimistic = |_, money| {
        format!("UPDATE account SET money = {money}, version = version + 1 WHERE name = 'a' AND version = 0")
    };
    assert_eq!(without_fences("", optimistic), [1, 0, 90]);
}

#[test]
fn a_transaction_that_cannot_be_fenced_says_why() {
    let bank = Bank::new();
    let guard_of = bank.place.locks();
    let guard = guard_of.mutex("till").acquire().unwrap();
    let mut user = mysql::Conn::new(driver_opts(&bank.place.server.url())).unwrap();
    let fences = Fences::new(&bank.place.config());
    let failed = fences.begin_blocking(&mut user, &guard, mysql::TxOpts::default()).map(drop).unwrap_err();
    assert!(matches!(&failed, FenceError::Database(_)), "{failed}");
    assert!(std::error::Error::source(&failed).is_some());
    user.query_drop("SELECT 1").unwrap();
}
