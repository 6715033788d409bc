//! Many threads and many processes on one file.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lock_core::{
    Answer, AsyncBackend, BlockingBackend, Certainty, Claim, Effect, ErrorKind, Holder, Lease, Released, Terms,
};
use lock_sqlite::SqliteConfig;
use lock_sqlite::blocking::Sqlite;
use test_support::bounds::status_of;

use crate::rig::{Ask, Rig, WITHIN, busy, claim, granted, impatient, low, permits, position, reader, secs, ttl};

/// Asks until it is this claim's turn.
fn wait_for(client: &Sqlite, claim: &Claim) -> Lease {
    let until = Instant::now() + 3 * WITHIN;
    while Instant::now() < until {
        match client.ask(claim) {
            Answer::Granted { lease, .. } => return lease,
            Answer::Queued { .. } | Answer::Busy { .. } => thread::sleep(Duration::from_millis(1)),
        }
    }
    panic!("never granted");
}

#[test]
fn threads_with_clients_of_their_own_exclude_each_other() {
    let rig = Rig::new();
    let (inside, tokens) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let turns = |client: Sqlite| {
        for _ in 0..25 {
            let mine = claim("a");
            let lease = wait_for(&client, &mine);
            assert!(!inside.swap(true, Ordering::SeqCst));
            tokens.lock().unwrap().push(low(&lease));
            inside.store(false, Ordering::SeqCst);
            client.part(&mine);
        }
    };
    thread::scope(|scope| {
        for _ in 0..6 {
            let client = rig.client();
            scope.spawn(|| turns(client));
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert_eq!(tokens.len(), 150);
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
}

#[test]
fn readers_and_writers_of_several_clients_never_meet() {
    const WRITER: usize = 1000;
    let rig = Rig::new();
    let inside = AtomicUsize::new(0);
    let turns = |client: &Sqlite, number: u32| {
        for turn in 0..20 {
            let (mine, weight) =
                if (turn + number).is_multiple_of(3) { (claim("a"), WRITER) } else { (reader("a"), 1) };
            wait_for(client, &mine);
            let others = inside.fetch_add(weight, Ordering::SeqCst);
            assert!(others == 0 || (weight == 1 && others < WRITER), "{others} inside when {weight} comes");
            thread::sleep(Duration::from_millis(1));
            inside.fetch_sub(weight, Ordering::SeqCst);
            assert_eq!(client.part(&mine), Released::Released);
        }
    };
    take_turns(&rig, turns);
}

/// Six threads with a client each take turns. Then nothing is left in the file.
fn take_turns(rig: &Rig, turns: impl Fn(&Sqlite, u32) + Sync) {
    thread::scope(|scope| {
        for number in 0..6 {
            let (client, turns) = (rig.client(), &turns);
            scope.spawn(move || turns(&client, number));
        }
    });
    assert_eq!((rig.rows("locks"), rig.rows("holds"), rig.rows("queue")), (0, 0, 0));
}

#[test]
fn no_slot_is_taken_twice_by_several_clients() {
    let rig = Rig::new();
    let taken: [AtomicBool; 4] = Default::default();
    let turns = |client: &Sqlite, number: u32| {
        for turn in 0..20 {
            let mine = permits("a", (turn + number) % 3 + 1, 4);
            let lease = wait_for(client, &mine);
            let slots = || lease.slots.get().iter().map(|slot| &taken[usize::try_from(*slot).unwrap()]);
            assert_eq!(u64::try_from(slots().count()).unwrap(), lease.tokens.width().get());
            slots().for_each(|slot| assert!(!slot.swap(true, Ordering::SeqCst)));
            thread::sleep(Duration::from_millis(1));
            slots().for_each(|slot| slot.store(false, Ordering::SeqCst));
            assert_eq!(client.part(&mine), Released::Released);
        }
    };
    take_turns(&rig, turns);
}

#[test]
fn threads_share_one_client() {
    let rig = Rig::new();
    let client = rig.client();
    thread::scope(|scope| {
        for thread in 0..6 {
            let client = &client;
            scope.spawn(move || {
                for turn in 0..10 {
                    let mine = claim(&format!("{thread}:{turn}"));
                    granted(client.ask(&mine));
                    client.part(&mine);
                }
            });
        }
    });
    assert_eq!(rig.rows("locks"), 0);
}

const DIRECTORY: &str = "LOCK_SQLITE_TEST_DIRECTORY";
const TURNS: usize = 25;

fn play(part: &str, directory: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("contention::{part}"), "--nocapture"]);
    command.env(DIRECTORY, directory).stdout(Stdio::piped()).spawn().unwrap()
}

fn played_on() -> Option<(std::path::PathBuf, Sqlite)> {
    let directory = std::path::PathBuf::from(std::env::var_os(DIRECTORY)?);
    let client = Sqlite::open(&SqliteConfig::new(directory.join("locks.db"))).unwrap();
    Some((directory, client))
}

/// A sum that is only right if nobody else reads between a read and its write.
#[test]
fn processes_exclude_each_other() {
    let rig = Rig::new();
    let sum = rig.directory.path().join("sum");
    fs::write(&sum, "0").unwrap();
    let players: Vec<_> = (0..4).map(|_| play("adds_up", rig.directory.path())).collect();
    for mut player in players {
        assert!(status_of(&mut player, "a player").success());
    }
    assert_eq!(fs::read_to_string(&sum).unwrap(), (4 * TURNS).to_string());
    let log = fs::read_to_string(rig.directory.path().join("tokens")).unwrap();
    let tokens: Vec<u64> = log.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(tokens.len(), 4 * TURNS);
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "{tokens:?}");
}

/// Another test runs this as a separate process; otherwise it does nothing.
#[test]
fn adds_up() {
    let Some((directory, client)) = played_on() else { return };
    let sum = directory.join("sum");
    let mut tokens = OpenOptions::new().append(true).create(true).open(directory.join("tokens")).unwrap();
    for _ in 0..TURNS {
        let mine = claim("sum");
        let lease = wait_for(&client, &mine);
        let before: usize = fs::read_to_string(&sum).unwrap().parse().unwrap();
        thread::yield_now();
        fs::write(&sum, (before + 1).to_string()).unwrap();
        writeln!(tokens, "{}", low(&lease)).unwrap();
        client.part(&mine);
    }
}

#[test]
fn others_can_use_the_file_of_a_process_that_was_killed_while_it_wrote() {
    let rig = Rig::new();
    let client = Sqlite::open(&rig.config()).unwrap();
    for turns in [1, 10, 23, 40, 57] {
        let mut player = play("writes_until_it_is_killed", rig.directory.path());
        // The process is at work once it has reported this many turns. If it never does, it ends by itself.
        let told = BufReader::new(player.stdout.take().unwrap()).lines().map(Result::unwrap);
        let told = told.filter(|line| line.ends_with(TURN)).take(turns).count();
        player.kill().unwrap();
        let end = player.wait().unwrap();
        assert_eq!((told, end.signal()), (turns, Some(9)), "{end}");
        let mine = Claim { terms: Terms::exclusive(ttl("1s")), ..claim("busy") };
        wait_for(&client, &mine);
        client.part(&mine);
    }
    let report: String = rig.raw().query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(report, "ok");
}

const TURN: &str = "one more turn";

/// Another test runs this as a separate process; otherwise it does nothing.
#[test]
fn writes_until_it_is_killed() {
    let Some((_, client)) = played_on() else { return };
    // A test that fails must not leave it behind.
    let until = Instant::now() + 3 * WITHIN;
    while Instant::now() < until {
        let mine = Claim { terms: Terms::exclusive(ttl("1s")), ..claim("busy") };
        wait_for(&client, &mine);
        client.part(&mine);
        writeln!(std::io::stdout(), "{TURN}").unwrap();
    }
}

/// The threads of the process share commits, and each gets its grant after the commit.
#[test]
fn what_a_killed_process_was_granted_is_in_the_file() {
    let rig = Rig::new();
    let client = Sqlite::open(&rig.config()).unwrap();
    for lines in [20, 100, 300] {
        let mut player = play("tells_what_it_is_granted", rig.directory.path());
        let told = BufReader::new(player.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut told = told.filter(|line| line.starts_with(HELD) || line.starts_with(LEAVING));
        let mut last: HashMap<String, String> = HashMap::new();
        let mut hear = |line: String| {
            let [said, name, token] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            last.insert(name.to_owned(), if said == HELD { token.to_owned() } else { String::new() });
        };
        told.by_ref().take(lines).for_each(&mut hear);
        player.kill().unwrap();
        assert_eq!(player.wait().unwrap().signal(), Some(9));
        told.for_each(hear);
        for (name, token) in last.iter().filter(|(_, token)| !token.is_empty()) {
            let entry = client.holder(&name.parse().unwrap(), WITHIN).unwrap();
            let Some(Holder::Leasehold { tokens, .. }) = entry.map(|entry| entry.holder) else {
                panic!("{name} is free")
            };
            assert_eq!(tokens.low().get().to_string(), *token, "{name}");
        }
    }
}

const HELD: &str = "held";
const LEAVING: &str = "leaving";

/// Another test runs this as a separate process; otherwise it does nothing.
#[test]
fn tells_what_it_is_granted() {
    let Some((_, client)) = played_on() else { return };
    // A test that fails must not leave it behind.
    let until = Instant::now() + 3 * WITHIN;
    let tell = |said: &str, lease: &Lease| {
        writeln!(std::io::stdout(), "{said} {} {}", lease.name.as_str(), low(lease)).unwrap();
    };
    let turns = |name: String| {
        while Instant::now() < until {
            let mine = claim(&name);
            let lease = granted(client.ask(&mine));
            tell(HELD, &lease);
            tell(LEAVING, &lease);
            client.part(&mine);
        }
    };
    thread::scope(|scope| {
        for thread in 0..16 {
            let name = format!("{}:{thread}", std::process::id());
            scope.spawn(|| turns(name));
        }
    });
}

#[test]
fn a_process_with_many_requests_leaves_the_file_to_others_in_between() {
    let rig = Rig::new();
    let (crowded, lonely) = (rig.client(), rig.client());
    let (is_over, turns) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for thread in 0..16 {
            let (crowded, is_over, turns) = (&crowded, &is_over, &turns);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let mine = claim(&format!("crowd:{thread}"));
                    granted(crowded.ask(&mine));
                    crowded.part(&mine);
                    turns.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for _ in 0..10 {
            let mine = claim("lonely");
            granted(lonely.ask(&mine));
            lonely.part(&mine);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let turns = turns.into_inner();
    assert!(turns < 2_000, "{turns} turns of a crowd beside 10 of another process");
}

#[test]
fn a_writer_that_takes_too_long_is_not_waited_for_and_nothing_has_happened() {
    let rig = Rig::new();
    let (blocking, nonblocking) = (rig.client(), rig.nonblocking());
    let writer = rig.raw();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let within = secs(2);
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mine = claim("a");
    let errors = [
        blocking.acquire(&mine, within).unwrap_err(),
        runtime.block_on(nonblocking.acquire(&mine, within)).unwrap_err(),
    ];
    assert!(begun.elapsed() < secs(20));
    for error in errors {
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::None), "{error}");
    }
    // Inspecting does not need the write lock.
    assert_eq!(blocking.holder(&mine.name, within).unwrap(), None);
    writer.execute_batch("ROLLBACK").unwrap();
    granted(blocking.ask(&mine));
}

#[test]
fn async_requests_take_effect_in_the_order_in_which_they_were_handed_over() {
    let rig = Rig::new();
    let client = rig.nonblocking();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for _ in 0..20 {
        let (first, second, third) = (claim("a"), claim("a"), claim("a"));
        let (a, part, b, c) = runtime.block_on(async {
            let leaving = first.release(Certainty::Answered);
            tokio::join!(
                client.acquire(&first, WITHIN),
                client.release(&leaving, WITHIN),
                client.acquire(&second, WITHIN),
                client.acquire(&third, WITHIN),
            )
        });
        granted(a.unwrap());
        assert_eq!(part.unwrap(), Released::Released);
        granted(b.unwrap());
        assert_eq!(position(c.unwrap()), 1);
        for claim in [third, second] {
            runtime.block_on(client.release(&claim.release(Certainty::Answered), WITHIN)).unwrap();
        }
    }
}

#[test]
fn the_keeper_renews_on_a_connection_of_its_own() {
    let rig = Rig::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let client = std::sync::Arc::new(rig.nonblocking());
    let lease = granted(runtime.block_on(client.acquire(&claim("a"), WITHIN)).unwrap());
    let keeper = AsyncBackend::for_keeper(std::sync::Arc::clone(&client));
    drop(client);
    rig.clock.advance(secs(20));
    runtime.block_on(keeper.renew(std::slice::from_ref(&lease), WITHIN)).unwrap();
    assert_eq!(busy(rig.client().ask(&impatient("a"))), secs(30));
    let keeper = BlockingBackend::for_keeper(std::sync::Arc::new(rig.client()));
    rig.clock.advance(secs(20));
    keeper.renew(&[lease], WITHIN).unwrap();
    assert_eq!(busy(rig.client().ask(&impatient("a"))), secs(30));
}
