//! A Redis that is away: killed, and started again.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write, stdin};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use leasehold::blocking::Kit as _;
use leasehold::guard::Proof;
use leasehold::kit::{Scope, Scoped};
use leasehold::{AcquireError, BackendError, ErrorKind, FencingToken, Kit as _, OnUnavailable};
use test_support::RedisServer;
use test_support::bounds::Watchdog;

/// Where the locks of the other process are.
const STORE: &str = "LEASEHOLD_TEST_STORE";

/// The other process: acquires the lock for each line that it reads, and releases it for the next one.
#[test]
fn the_other_process() {
    let Ok(store) = env::var(STORE) else { return };
    let locks = leasehold::blocking::connect(&store).unwrap();
    println!("\nsaid: ready");
    let mut lines = stdin().lines();
    while lines.next().is_some() {
        let guard = locks.degrading("a").acquire().unwrap();
        println!("\nsaid: {}", shown(&guard));
        lines.next();
        guard.release().unwrap();
        println!("\nsaid: released");
    }
}

/// The scope and the token of a guard.
fn shown<G: std::ops::Deref<Target = Proof>>(guard: &Scoped<G>) -> String {
    match (guard.scope(), guard.fencing_token()) {
        (Scope::Process, None) => "process".to_owned(),
        (Scope::Store, Some(token)) => token.to_string(),
        (scope, token) => format!("{scope:?} with {token:?}"),
    }
}

/// A little longer than a client believes that its store is unreachable.
const BELIEVED_FOR: Duration = Duration::from_millis(2_100);

/// That process, as the test sees it.
struct Other {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    words: ChildStdin,
}

impl Other {
    fn start(store: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "away::the_other_process", "--nocapture"]).env(STORE, store);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let words = process.stdin.take().unwrap();
        let mut other = Self { process, lines, words };
        assert_eq!(other.says(), "ready");
        other
    }

    fn says(&mut self) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        lines.find_map(|line| line.strip_prefix("said: ").map(str::to_owned)).expect("the process says something")
    }

    /// Has it acquire the lock, or release it.
    fn goes_on(&mut self) -> String {
        self.words.write_all(b"\n").unwrap();
        self.says()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_work_at_once_while_redis_is_away_and_no_longer_once_both_have_released() {
    let _watchdog = Watchdog::over_this_test();
    let mut server = RedisServer::start();
    let locks = leasehold::connect(&server.url()).await.unwrap();
    let threads = leasehold::blocking::connect(&server.url()).unwrap();
    let mut other = Other::start(&server.url());
    let lock = locks.degrading("a");
    let before = lock.acquire().await.unwrap();
    let first = before.fencing_token().unwrap();
    before.release().await.unwrap();

    server.kill();
    let guard = lock.acquire().await.unwrap();
    assert_eq!((shown(&guard).as_str(), other.goes_on().as_str()), ("process", "process"), "both hold the lock");
    assert!(guard.error().unwrap().kind().is_transient(), "{:?}", guard.error());

    server.restart_empty();
    tokio::time::sleep(BELIEVED_FOR).await;
    assert_eq!(other.goes_on(), "released");
    let token: i64 = other.goes_on().parse().expect("the other process has the lock of the store");
    let token = FencingToken::try_from(token).unwrap();
    assert!(token > first);
    // The degraded guard is what it was, and still keeps the others of this process out, in both facades.
    assert_eq!((guard.scope(), guard.fencing_token(), guard.check()), (Scope::Process, None, Ok(())));
    assert!(lock.try_acquire().await.unwrap().is_none());
    let theirs = tokio::task::spawn_blocking(move || threads.degrading("a").try_acquire().unwrap().is_none());
    assert!(theirs.await.unwrap());
    guard.release().await.unwrap();
    assert!(lock.try_acquire().await.unwrap().is_none(), "the other process has it");
    assert_eq!(other.goes_on(), "released");
    let guard = lock.acquire().await.unwrap();
    assert!(guard.scope() == Scope::Store && guard.fencing_token() > Some(token));
    guard.release().await.unwrap();
}

/// The server gets the requests of the first wait when it goes on, and may grant them.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_that_hung_grants_late_is_given_back() {
    let _watchdog = Watchdog::over_this_test();
    let server = RedisServer::start();
    let locks = leasehold::connect(&server.url()).await.unwrap();
    let lock = locks.degrading("a").ttl(Duration::from_secs(60));
    server.stop();
    let guard = lock.acquire().await.unwrap();
    assert_eq!((shown(&guard).as_str(), guard.error().map(BackendError::kind)), ("process", Some(ErrorKind::Timeout)));
    server.resume();
    let theirs = leasehold::connect(&server.url()).await.unwrap();
    let theirs = theirs.mutex("a").wait(Duration::from_secs(20)).acquire().await.unwrap();
    assert_eq!((guard.scope(), guard.fencing_token()), (Scope::Process, None));
    theirs.release().await.unwrap();
    guard.release().await.unwrap();
    tokio::time::sleep(BELIEVED_FOR).await;
    assert_eq!(lock.acquire().await.unwrap().scope(), Scope::Store);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_waits_for_redis_or_gives_up_as_it_was_told() {
    let _watchdog = Watchdog::over_this_test();
    let mut server = RedisServer::start();
    let locks = leasehold::connect(&server.url()).await.unwrap();
    let threads = leasehold::blocking::connect(&server.url()).unwrap();
    let held = locks.mutex("held").acquire().await.unwrap();

    server.kill();
    let error = locks.mutex("a").acquire().await.unwrap_err();
    assert!(matches!(&error, AcquireError::Backend(error) if error.kind() == ErrorKind::Unreachable), "{error}");
    let failing = threads.rw_lock("a").read();
    let error = tokio::task::spawn_blocking(move || failing.acquire().map(drop).unwrap_err()).await.unwrap();
    assert!(matches!(&error, AcquireError::Backend(error) if error.kind() == ErrorKind::Unreachable), "{error}");
    let job = locks.job("a").wait(Duration::from_secs(60)).run(async |_| ()).await.unwrap_err();
    assert!(job.to_string().contains("set `on_unavailable(OnUnavailable::Wait)`"), "{job}");
    let campaign = tokio::spawn({
        let locks = locks.clone();
        async move { locks.election("c").campaign().await.unwrap().resign().await }
    });
    let waiting = locks.mutex("a").on_unavailable(OnUnavailable::Wait);
    let waiting = tokio::spawn(async move { waiting.acquire().await });
    assert!(failing_again(&threads).await, "and the other one still waits");
    assert!(!waiting.is_finished() && !campaign.is_finished());

    server.restart_empty();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    campaign.await.unwrap().unwrap();
    drop(held);
}

/// Whether a waiter gives up once more, after an operation timeout.
async fn failing_again(locks: &leasehold::blocking::Client) -> bool {
    let failing = locks.semaphore("b", 2);
    tokio::task::spawn_blocking(move || failing.acquire().is_err()).await.unwrap()
}
