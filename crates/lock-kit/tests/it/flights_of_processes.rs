//! Values that are computed once, over several processes and one Redis, which also has the cache and counts the calls of the
//! database.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lock_kit::{Entry, Found, blocking, nonblocking};
use lock_redis::RedisConfig;
use redis::Commands;
use test_support::RedisServer;
use test_support::bounds::{Watchdog, output_of, wait_for};

/// Tells the test program that it is one of several, and what it does.
const VARIABLE: &str = "LEASEHOLD_FLIGHT_TEST_CHILD";
const PROCESSES: u32 = 4;
const CALLERS: u32 = 200;
const KEY: &str = "user:42";
const TTL: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Lock(#[from] lock_host::Error),
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
}

/// A cache in the database that has the locks as well.
struct Cached(Mutex<redis::Connection>);

impl Cached {
    fn connect(url: &str) -> Self {
        Self(Mutex::new(redis::Client::open(url).unwrap().get_connection().unwrap()))
    }

    fn find(&self, key: &str) -> Result<Option<Found<u32>>, Failure> {
        let mut redis = self.0.lock().unwrap();
        let (value, left): (Option<u32>, i64) = redis::pipe().get(key).pttl(key).query(&mut *redis)?;
        redis.incr::<_, _, ()>("test:looks", 1)?;
        let left = Duration::from_millis(left.try_into().unwrap_or_default());
        Ok(value.map(|value| Found::expiring_in(value, left)))
    }

    fn keep(&self, entry: &Entry<'_, u32>) -> Result<(), Failure> {
        let ttl = entry.ttl.as_millis().try_into().unwrap();
        Ok(self.0.lock().unwrap().pset_ex(entry.key, *entry.value, ttl)?)
    }

    fn number(&self, key: &str) -> u32 {
        self.0.lock().unwrap().get::<_, Option<u32>>(key).unwrap().unwrap_or_default()
    }

    /// A call of the database, which takes until all callers have looked into the cache.
    fn call_database(&self) -> Result<u32, Failure> {
        let number = self.0.lock().unwrap().incr("test:calls", 1)?;
        wait_for("all callers to have looked", || (self.number("test:looks") >= CALLERS).then_some(()));
        Ok(number)
    }
}

impl blocking::Cache for Cached {
    type Value = u32;
    type Error = Failure;

    fn get(&self, key: &str) -> Result<Option<Found<u32>>, Failure> {
        self.find(key)
    }

    fn put(&self, entry: Entry<'_, u32>) -> Result<(), Failure> {
        self.keep(&entry)
    }
}

impl nonblocking::Cache for Cached {
    type Value = u32;
    type Error = Failure;

    async fn get(&self, key: &str) -> Result<Option<Found<u32>>, Failure> {
        self.find(key)
    }

    async fn put(&self, entry: Entry<'_, u32>) -> Result<(), Failure> {
        self.keep(&entry)
    }
}

/// Plays one of several processes, if this process was started as one.
#[test]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn one_of_several_processes() {
    let Ok(part) = env::var(VARIABLE) else { return };
    let (part, url) = part.split_once(' ').unwrap();
    match part {
        "threads" => in_threads(url),
        "tasks" => in_tasks(url),
        "computes" => {
            let flight = blocking::Kit::single_flight(&plain(url), KEY).ttl(TTL);
            let computed = flight.get_or_compute(&Cached::connect(url), || {
                println!("\nit computes");
                thread::sleep(Duration::from_secs(3600));
                Ok(0)
            });
            panic!("{computed:?}");
        }
        _ => panic!("no part: {part}"),
    }
}

fn plain(url: &str) -> lock_blocking::Client {
    let redis = lock_redis::blocking::Redis::connect(&RedisConfig::from_url(url).unwrap()).unwrap();
    lock_blocking::Client::new(Arc::new(redis)).unwrap()
}

fn in_threads(url: &str) {
    let (client, cached) = (plain(url), Cached::connect(url));
    let flight = blocking::Kit::single_flight(&client, KEY);
    thread::scope(|scope| {
        for _ in 0..CALLERS / PROCESSES {
            scope.spawn(|| assert_eq!(flight.get_or_compute(&cached, || cached.call_database()).unwrap(), 1));
        }
    });
    client.close();
}

#[tokio::main]
async fn in_tasks(url: &str) {
    let redis = lock_redis::nonblocking::Redis::connect(&RedisConfig::from_url(url).unwrap()).await.unwrap();
    let client = lock_async::Client::new(Arc::new(redis)).unwrap();
    let cached = Arc::new(Cached::connect(url));
    let tasks = (0..CALLERS / PROCESSES).map(|_| {
        let (flight, cached) = (nonblocking::Kit::single_flight(&client, KEY), Arc::clone(&cached));
        tokio::spawn(async move {
            let database = Arc::clone(&cached);
            let compute = async || tokio::task::spawn_blocking(move || database.call_database()).await.unwrap();
            flight.get_or_compute(&*cached, compute).await.unwrap()
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        assert_eq!(task.await.unwrap(), 1);
    }
    client.close().await;
}

fn start(part: &str, url: &str) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "flights_of_processes::one_of_several_processes", "--nocapture"]);
    let command = command.env(VARIABLE, format!("{part} {url}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Half of the processes use tasks, the others threads.
#[test]
fn of_the_callers_of_four_processes_one_calls_the_database() {
    let _watchdog = Watchdog::over_this_test();
    let server = RedisServer::start();
    let parts = ["tasks", "threads"].into_iter().cycle().zip(0..PROCESSES);
    let processes: Vec<_> = parts.map(|(part, _)| start(part, &server.url())).collect();
    for process in processes {
        let output = output_of(process, "one of the processes");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let cached = Cached::connect(&server.url());
    assert!(cached.number("test:looks") >= CALLERS);
    assert_eq!((cached.number("test:calls"), cached.number(KEY)), (1, 1));
}

/// Killed at the end of the test, if not before.
struct Computes(Child);

impl Computes {
    fn start(url: &str) -> Self {
        let mut process = start("computes", url);
        let mut said = BufReader::<ChildStdout>::new(process.stdout.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap() == "it computes"), "the process ended");
        Self(process)
    }

    fn kill(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for Computes {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn a_process_that_is_killed_while_it_computes_is_replaced_within_its_ttl() {
    let _watchdog = Watchdog::over_this_test();
    let server = RedisServer::start();
    let (client, cached) = (plain(&server.url()), Cached::connect(&server.url()));
    let mut computes = Computes::start(&server.url());
    let flight = blocking::Kit::single_flight(&client, KEY).ttl(TTL);
    thread::scope(|scope| {
        let waits = || flight.get_or_compute(&cached, || Ok(7));
        let waiters = [scope.spawn(waits), scope.spawn(waits)];
        wait_for("both to have looked", || (cached.number("test:looks") >= 4).then_some(()));
        computes.kill();
        let killed = Instant::now();
        assert_eq!(waiters.map(|waiter| waiter.join().unwrap().unwrap()), [7, 7]);
        assert!(killed.elapsed() < TTL + Duration::from_secs(10), "{:?}", killed.elapsed());
    });
}
