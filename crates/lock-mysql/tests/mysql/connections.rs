//! How many connections a client has: few enough for servers that have a hundred. And what becomes of those that are cut.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use test_support::MysqlServer;
use test_support::bounds::{wait_at_most, wait_for};

use crate::support::{
    Client, Place, SOON, Session, claim, client, end, granted, is_queued, locks, meanwhile, new_server, release_of,
    releases, take, waiting,
};

/// What overlaps at most.
const OPEN_MAX: i64 = 8;
/// Longer than an unused connection is kept.
const IDLE: Duration = Duration::from_secs(100);

/// A database that one test uses, and who counts the connections to it.
struct Counted {
    place: Place,
    watcher: Session,
}

impl Counted {
    fn new() -> Self {
        let place = Place::new();
        let watcher = place.watcher();
        let counted = Self { place, watcher };
        counted.has("nobody", 0);
        counted
    }

    fn of_database(&self) -> String {
        format!("FROM information_schema.PROCESSLIST WHERE db = '{}' AND user = 'locker'", self.place.database())
    }

    fn connections(&self) -> i64 {
        self.watcher.value(&format!("SELECT COUNT(*) {}", self.of_database()))
    }

    #[track_caller]
    fn has(&self, what: &str, connections: i64) {
        wait_for(&format!("{what} has {connections} connections"), || {
            let now = self.connections();
            if now == connections { Ok(()) } else { Err(format!("it has {now}")) }
        });
    }

    /// Ends all connections of clients, as an operator does. Some end by themselves before.
    fn cut_all(&self) {
        let ids = format!("SELECT COALESCE(GROUP_CONCAT(id), '') {}", self.of_database());
        for id in self.watcher.value::<String>(&ids).split(',').filter(|id| !id.is_empty()) {
            _ = self.watcher.run(&format!("KILL {id}"));
        }
    }
}

/// Many requests at once.
fn burst(client: &Client) {
    let requests: Vec<_> = (0..32)
        .map(|i| {
            let client = Arc::clone(client);
            meanwhile(move || {
                let claim = claim(&format!("job {i}"));
                take(&client, &claim);
                releases(&client, &claim);
            })
        })
        .collect();
    requests.into_iter().for_each(end);
}

#[test]
fn a_client_opens_few_connections_and_closes_all_but_one_when_it_is_idle() {
    let counted = Counted::new();
    let client = counted.place.client();
    assert_eq!(counted.connections(), 1);
    burst(&client);
    let after = counted.connections();
    assert!((1..=OPEN_MAX).contains(&after), "{after}");
    wait_at_most(IDLE, "an idle client has one connection", || counted.connections() == 1);
    take(&client, &claim("report"));
    assert_eq!(counted.connections(), 1);
    drop(client);
    counted.has("a client that is gone", 0);
}

#[test]
fn a_client_that_waits_has_two_connections_at_most() {
    let counted = Counted::new();
    let (holding, waits) = (counted.place.client(), counted.place.client());
    let (held, queued) = (claim("report"), waiting("report"));
    take(&holding, &held);
    is_queued(waits.acquire(&queued, SOON), 1);
    is_queued(waits.acquire(&waiting("report"), SOON), 2);
    // They stay as few while it waits and asks.
    for _ in 0..10 {
        is_queued(waits.acquire(&queued, SOON), 1);
        thread::sleep(Duration::from_millis(100));
        assert!(counted.connections() <= 3, "{}", counted.connections());
    }
    releases(&holding, &held);
    granted(waits.acquire(&queued, SOON));
    waits.release(&release_of(&queued), SOON).unwrap();
    drop((holding, waits));
    counted.has("a client that is gone", 0);
}

#[test]
fn a_client_whose_locks_are_renewed_has_two_connections_and_none_once_it_is_dropped() {
    let counted = Counted::new();
    let (locks, brief) = (counted.place.locks(), Duration::from_secs(3));
    let guards: Vec<_> = (0..3).map(|i| locks.mutex(format!("job {i}")).ttl(brief).acquire().unwrap()).collect();
    thread::sleep(brief + brief / 3);
    assert!(guards.iter().all(|guard| guard.check().is_ok()), "they were renewed");
    // One whose answer was late is closed.
    wait_for("two connections at most", || (1..=2).contains(&counted.connections()));
    drop((guards, locks));
    counted.has("a client that is gone", 0);
}

#[test]
fn many_clients_come_and_go_and_leave_no_connection() {
    let counted = Counted::new();
    for i in 0..20 {
        let (client, held) = (counted.place.client(), claim(&format!("report {i}")));
        take(&client, &held);
        is_queued(client.acquire(&waiting(held.name.as_str()), SOON), 1);
        releases(&client, &held);
    }
    counted.has("nobody", 0);
}

/// Nothing was sent over a connection that was found to have ended, so the request goes on over another one.
#[test]
fn a_connection_that_was_cut_while_it_was_idle_is_replaced() {
    let counted = Counted::new();
    let client = counted.place.client();
    take(&client, &claim("before"));
    thread::sleep(Duration::from_secs(6));
    counted.cut_all();
    counted.has("a client that was cut off", 0);
    take(&client, &claim("after"));
    assert_eq!(counted.connections(), 1);
}

#[test]
fn after_a_cut_of_a_fresh_connection_the_next_request_but_one_is_answered() {
    let counted = Counted::new();
    let client = counted.place.client();
    take(&client, &claim("before"));
    counted.cut_all();
    counted.has("a client that was cut off", 0);
    let claim = claim("after");
    match client.acquire(&claim, SOON) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), lock_core::ErrorKind::Unreachable, "{error:?}"),
    }
    take(&client, &claim);
}

#[test]
fn a_waiter_whose_connections_are_cut_again_and_again_gets_the_lock() {
    let counted = Counted::new();
    let (holding, waits) = (counted.place.locks(), counted.place.locks());
    let guard = holding.mutex("report").acquire().unwrap();
    let waiter = meanwhile(move || waits.mutex("report").wait(SOON * 2).acquire().map(drop));
    let place = counted.place.database();
    let waits = format!("SELECT COUNT(*) = 1 FROM {place}.leasehold_place");
    wait_for("a waiter", || counted.watcher.value::<bool>(&waits));
    for _ in 0..5 {
        counted.cut_all();
        thread::sleep(Duration::from_millis(100));
    }
    // Its own connection was cut, too. What is sent over it in vain is repeated.
    _ = guard.release();
    end(waiter).unwrap();
}

#[test]
fn a_holder_whose_connections_are_cut_keeps_the_lock() {
    let counted = Counted::new();
    let holding = counted.place.locks();
    let guard = holding.mutex("report").ttl(Duration::from_secs(3)).acquire().unwrap();
    for _ in 0..10 {
        counted.cut_all();
        thread::sleep(Duration::from_millis(500));
    }
    assert!(guard.check().is_ok());
    wait_for("the lock is still its own", || guard.verify());
    guard.release().unwrap();
}

/// An account for lockers, with a limit.
fn modest(most: u32) -> (MysqlServer, [String; 2]) {
    let server = new_server();
    server.execute(&format!("CREATE USER modest@'%' WITH MAX_USER_CONNECTIONS {most}"));
    server.execute("GRANT ALL ON test_locks.* TO modest@'%'");
    let url = server.url();
    let modest = url.replace("locker@", "modest@");
    (server, [url, modest])
}

#[test]
fn a_waiter_gets_the_lock_though_its_account_may_have_no_connection_more() {
    let (_server, [url, modest]) = modest(1);
    let (holding, waits) = (locks(&url), locks(&modest));
    let (guard, session) = (holding.mutex("report").acquire().unwrap(), Session::connect(&url));
    let waiter = meanwhile(move || waits.mutex("report").wait(SOON * 2).acquire().map(drop));
    wait_for("a waiter", || session.value::<bool>("SELECT COUNT(*) = 1 FROM leasehold_place"));
    thread::sleep(Duration::from_secs(1));
    guard.release().unwrap();
    end(waiter).unwrap();
}

#[test]
fn a_client_that_is_one_too_many_is_told_so() {
    let (_server, [_, modest]) = modest(1);
    let first = client(&modest);
    let config = lock_mysql::MysqlConfig::from_url(&modest).unwrap();
    let error = lock_mysql::blocking::connect(&config).map(drop).unwrap_err();
    assert_eq!(error.kind(), lock_core::ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("modest"), "{error}");
    take(&first, &claim("report"));
}
