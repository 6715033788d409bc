//! A process that is stopped past its lease, and resumes when another one has written.

use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader, Lines, Write, stdin};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use leasehold::FencingToken;
use leasehold::blocking::{Client, Guard, PermitGuard};
use leasehold::fence::redis::{Fenced, FencedError};
use leasehold::fence::sql::{FenceColumn, SqlError};
use leasehold::fence::{Gate, Refused};
use redis::Commands;
use test_support::bounds::Watchdog;
use test_support::{RedisServer, signals, temp_dir};

/// Where the locks of the stopped process are, and what it writes to.
const STORE: &str = "LEASEHOLD_TEST_STORE";
const RESOURCE: &str = "LEASEHOLD_TEST_RESOURCE";
/// Whether its writes are checked.
const CHECKED: &str = "LEASEHOLD_TEST_CHECKED";

/// How long its lease is. It has to be stopped for longer.
const TTL: Duration = Duration::from_secs(1);

/// What both processes write to: a file of SQLite, or a Redis.
struct Resource {
    address: String,
}

impl Resource {
    /// A write of the holder with this token.
    fn write(&self, token: FencingToken, value: &str) -> Result<(), Box<dyn Error>> {
        if self.address.starts_with("redis:") {
            Fenced::new("account:1")?.set(token, value).run(&mut self.redis())?;
        } else {
            let account = FenceColumn::new("account", "fence")?;
            account.update(&self.sqlite(), token, &[("balance", &value)], &[("id", &1)])?;
        }
        Ok(())
    }

    /// A write that nothing checks.
    fn overwrite(&self, value: &str) {
        if self.address.starts_with("redis:") {
            let _: () = self.redis().set("account:1", value).unwrap();
        } else {
            self.sqlite().execute("UPDATE account SET balance = ?1", [value]).unwrap();
        }
    }

    fn value(&self) -> String {
        if self.address.starts_with("redis:") {
            return self.redis().get("account:1").unwrap();
        }
        self.sqlite().query_row("SELECT balance FROM account", (), |row| row.get(0)).unwrap()
    }

    fn redis(&self) -> redis::Connection {
        redis::Client::open(self.address.as_str()).unwrap().get_connection().unwrap()
    }

    fn sqlite(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(&self.address).unwrap()
    }
}

fn acquire(store: &str, ttl: Duration) -> (Client, Guard) {
    let locks = leasehold::blocking::connect(store).unwrap();
    let guard = locks.mutex("account").ttl(ttl).wait(Duration::from_secs(30)).acquire().unwrap();
    (locks, guard)
}

/// The process that is stopped: acquires the lock, waits for a line, and writes without asking whether it still holds.
#[test]
fn the_holder_that_is_stopped() {
    let (Ok(store), Ok(address), checked) = (env::var(STORE), env::var(RESOURCE), env::var_os(CHECKED).is_some())
    else {
        return;
    };
    let (resource, (_locks, guard)) = (Resource { address }, acquire(&store, TTL));
    println!("\nsaid: held");
    stdin().read_line(&mut String::new()).unwrap();
    let written = if checked {
        resource.write(guard.fencing_token(), "late")
    } else {
        resource.overwrite("late");
        Ok(())
    };
    println!("\nsaid: {}", written.map_or_else(|error| error.to_string(), |()| "written".to_owned()));
}

/// That process, as the test sees it.
struct Stopped {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Stopped {
    fn start(store: &str, resource: &Resource, checked: bool) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "fencing::the_holder_that_is_stopped", "--nocapture"]);
        command.env(STORE, store).env(RESOURCE, &resource.address);
        if checked {
            command.env(CHECKED, "");
        }
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn says(&mut self) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        lines.find_map(|line| line.strip_prefix("said: ").map(str::to_owned)).expect("the process says something")
    }

    /// Has it write, as soon as it is resumed.
    fn told_to_write(&mut self) {
        self.process.stdin.take().unwrap().write_all(b"write\n").unwrap();
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Plays it, and returns what the resource has in the end and what the late process said, after the later holder's token.
fn play(store: &str, resource: &Resource, checked: bool) -> (String, String, FencingToken) {
    let _watchdog = Watchdog::over_this_test();
    let mut stopped = Stopped::start(store, resource, checked);
    assert_eq!(stopped.says(), "held");
    signals::stop(stopped.process.id());
    let (locks, guard) = acquire(store, leasehold::Ttl::DEFAULT.get()); // once the lease of the stopped process has expired
    resource.write(guard.fencing_token(), "new").unwrap();
    stopped.told_to_write();
    signals::resume(stopped.process.id());
    let said = stopped.says();
    let token = guard.fencing_token();
    guard.release().unwrap();
    locks.close();
    (resource.value(), said, token)
}

fn sqlite_file(folder: &Path) -> (String, Resource) {
    let address = folder.join("account.db").display().to_string();
    let resource = Resource { address };
    let table = "CREATE TABLE account (id INTEGER, balance TEXT); INSERT INTO account VALUES (1, '')";
    resource.sqlite().execute_batch(table).unwrap();
    resource.sqlite().execute_batch(&FenceColumn::new("account", "fence").unwrap().add_column()).unwrap();
    (format!("sqlite:{}", folder.join("locks.db").display()), resource)
}

#[test]
fn a_process_that_was_stopped_past_its_lease_is_refused_by_sqlite() {
    let folder = temp_dir();
    let (store, resource) = sqlite_file(folder.path());
    let (value, said, token) = play(&store, &resource, true);
    assert_eq!(value, "new");
    assert!(said.contains(&format!("has seen {token}")), "{said}");
}

#[test]
fn a_process_that_was_stopped_past_its_lease_is_refused_by_redis() {
    let server = RedisServer::start();
    let (value, said, token) = play(&server.url(), &Resource { address: server.url() }, true);
    assert_eq!(value, "new");
    assert!(said.contains(&format!("has seen {token}")), "{said}");
}

/// The same process, where nothing is checked: the lock alone does not prevent the late write.
#[test]
fn without_a_check_the_late_write_replaces_the_new_one() {
    let folder = temp_dir();
    let (store, resource) = sqlite_file(folder.path());
    let (value, said, _) = play(&store, &resource, false);
    assert_eq!((value.as_str(), said.as_str()), ("late", "written"));
}

#[test]
fn readers_raise_nothing_and_each_slot_has_a_fence_of_its_own() {
    let locks = leasehold::blocking::connect("memory:").unwrap();
    let gate = Gate::new();
    let writer = locks.mutex("catalog").acquire().unwrap();
    gate.check("catalog", writer.fencing_token()).unwrap();
    let paused = writer.fencing_token();
    writer.release().unwrap();

    let reader = locks.rw_lock("catalog").read().acquire().unwrap();
    gate.check_read("catalog", reader.fencing_token()).unwrap();
    gate.check("catalog", paused).expect("a reader raised the fence");

    let gpus = locks.semaphore("gpu", 2);
    let [first, second] = [gpus.acquire().unwrap(), gpus.acquire().unwrap()];
    let resource = |guard: &PermitGuard| format!("gpu/{}", guard.slot());
    assert!(second.fencing_token() > first.fencing_token());
    gate.check(&resource(&second), second.fencing_token()).unwrap();
    gate.check(&resource(&first), first.fencing_token()).expect("slots share a fence");
    let (late, slot) = (first.fencing_token(), resource(&first));
    first.release().unwrap();
    let again = gpus.acquire().unwrap();
    gate.check(&resource(&again), again.fencing_token()).unwrap();
    assert_eq!(gate.check(&slot, late), Err(Refused { token: late, highest: again.fencing_token() }));
}

/// A writer that was paused past its lease writes while a reader reads, who then becomes the writer and adds 20 to what is there.
/// Returns the balance in the end, which was 100, and whether the late write of 150 was let in.
fn upgraded(late_write: When, reads: When) -> (i32, bool) {
    let locks = leasehold::blocking::connect("memory:").unwrap();
    let (gate, balance) = (Gate::new(), AtomicI32::new(100));
    let lock = locks.rw_lock("account");
    let paused = lock.write().max_hold(Duration::from_millis(50)).acquire().unwrap();
    gate.raise("account", paused.write_token()).unwrap();
    let reader = lock.read().wait(Duration::from_secs(30)).acquire().unwrap();
    gate.check_read("account", reader.fencing_token()).unwrap();
    let before = balance.load(SeqCst);
    let write_late = || gate.write("account", paused.fencing_token(), || balance.store(150, SeqCst)).is_ok();
    let was_early = late_write == When::BeforeTheRaise && write_late();
    let writer = reader.try_upgrade().unwrap();
    gate.raise("account", writer.write_token()).unwrap();
    let read = if reads == When::BeforeTheRaise { before } else { balance.load(SeqCst) };
    let was_late = late_write == When::AfterTheRaise && write_late();
    gate.write("account", writer.fencing_token(), || balance.store(read + 20, SeqCst)).unwrap();
    (balance.into_inner(), was_early || was_late)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    BeforeTheRaise,
    AfterTheRaise,
}

#[test]
fn after_an_upgrade_the_fence_is_raised_and_then_what_is_there_is_read_again() {
    let (before, after) = (When::BeforeTheRaise, When::AfterTheRaise);
    assert_eq!(upgraded(before, before), (120, true), "what was read before the raise is outdated, and 50 are lost");
    assert_eq!(upgraded(before, after), (170, true));
    assert_eq!([upgraded(after, before), upgraded(after, after)], [(120, false); 2], "the late write is refused");
}

#[test]
fn all_who_hold_under_one_lease_have_one_public_id() {
    let locks = leasehold::blocking::connect("memory:").unwrap();
    let writer = locks.mutex("a").acquire().unwrap();
    let before = writer.lease_id();
    let reader = writer.downgrade().unwrap();
    assert_ne!(reader.lease_id(), before, "it changes with the token");
    let reader = reader.share();
    assert_eq!(reader.lease_id(), reader.clone().lease_id());
    let other = locks.rw_lock("a").read().acquire().unwrap();
    assert_eq!((other.fencing_token(), other.lease_id()), (reader.fencing_token(), reader.lease_id()));
}

#[test]
fn the_errors_tell_a_later_holder_from_anything_else() {
    let refused = Refused { token: FencingToken::new(33).unwrap(), highest: FencingToken::new(34).unwrap() };
    assert_eq!(SqlError::from(refused).to_string(), refused.to_string());
    assert_eq!(FencedError::from(refused).to_string(), refused.to_string());
}

/// Stands in where a guard has no `write_token` of its own, which the compiler would call instead.
trait NoWriteToken {
    fn write_token(&self) -> &'static str {
        "none"
    }
}

impl NoWriteToken for leasehold::blocking::ReadGuard {}
impl NoWriteToken for leasehold::guard::Proof {}

#[test]
fn writers_and_permits_have_what_raises_a_fence_and_readers_have_not() {
    let locks = leasehold::blocking::connect("memory:").unwrap();
    let gate = Gate::new();
    let writer = locks.mutex("catalog").acquire().unwrap();
    gate.raise("catalog", writer.write_token()).unwrap();
    assert_eq!(gate.highest("catalog"), Some(writer.fencing_token()));
    let shared = writer.share();
    assert_eq!(FencingToken::from(shared.write_token()), shared.fencing_token());
    shared.release().unwrap();

    let reader = locks.rw_lock("catalog").read().acquire().unwrap();
    assert_eq!(reader.write_token(), "none");
    reader.release().unwrap();

    let permits = locks.semaphore("gpu", 2).acquire_many(2).unwrap();
    for (slot, token) in permits.write_tokens() {
        gate.raise(&format!("gpu/{slot}"), token).unwrap();
    }
    let raised: Vec<_> =
        permits.slots().iter().map(|slot| (*slot, gate.highest(&format!("gpu/{slot}")).unwrap())).collect();
    assert_eq!(raised, permits.tokens().collect::<Vec<_>>());
}
