//! A primary is killed, and clients side by side wait for their next answer from the server that the sentinels promote.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bench_measure::{Subject, now};
use leasehold::OnUnavailable;
use lock_redis::{RedisConfig, declare_new};
use redis::Connection;
use test_support::Trio;
use test_support::sentinels::{MASTER, PASSWORDS};

use crate::figures::{Figure, Figures};

/// The longest ttl of the clients, of which a dwell depends, and the ttl of the locks.
const MAX_TTL: Duration = Duration::from_secs(2);
/// The pause between two pairs, and between two tries of the bare client.
const PACE: Duration = Duration::from_millis(5);
/// How long a step of the bare client may take: as long as a request of this library.
const STEP: Duration = Duration::from_secs(1);
/// How long all clients work before the primary is killed.
const BEFORE: Duration = Duration::from_millis(500);
/// Longer than any fail-over takes, its dwell included.
const BOUND: Duration = Duration::from_secs(60);

/// What a client and the bench say to each other.
struct Watch {
    /// When the primary was gone, in nanoseconds on the monotonic clock; 0 while it is there.
    gone: AtomicU64,
    begun: u64,
    /// Hears of each pair before that.
    pairs: Sender<Subject>,
}

/// Has one primary replaced, and says how long each of the subjects had no answer.
pub(crate) fn run(subjects: &[Subject]) -> Result<Vec<Figures>> {
    let mut trio = Trio::start();
    let sentinels: Vec<u16> = trio.sentinels.iter().map(test_support::Sentinel::port).collect();
    let urls = Urls(trio.url());
    declare_new(&RedisConfig::from_url(&urls.dwell())?)?;
    let (pairs, heard) = channel();
    let watch = Watch { gone: AtomicU64::new(0), begun: now(), pairs };
    thread::scope(|scope| {
        let client = |subject: Subject| {
            let url = if subject == Subject::Dwell { urls.dwell() } else { urls.grant() };
            if subject == Subject::Bare { bare(&sentinels, &watch) } else { ours(subject, &url, &watch) }
        };
        let clients: Vec<_> = subjects.iter().map(|subject| scope.spawn(move || client(*subject))).collect();
        let all_work = wait_for_each(subjects, &heard);
        thread::sleep(BEFORE);
        let killed = now();
        trio.servers[0].kill();
        watch.gone.store(now(), Ordering::SeqCst);
        let outage = |client: thread::ScopedJoinHandle<'_, Result<u64>>| {
            let answered = client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            let seconds = answered.saturating_sub(killed) as f64 / 1e9;
            Ok(Figures::default().with(Figure::Outage, seconds).with(Figure::LongestOutage, seconds))
        };
        // All of them are waited for, whatever one of them says.
        let outages: Vec<Result<Figures>> = clients.into_iter().map(outage).collect();
        all_work?;
        outages.into_iter().collect()
    })
}

/// The URLs of the deployment.
struct Urls(String);

impl Urls {
    fn grant(&self) -> String {
        format!("{}&max_ttl={}s", self.0, MAX_TTL.as_secs())
    }

    fn dwell(&self) -> String {
        self.grant().replace("failover=grant", "failover=dwell")
    }
}

/// Waits until each subject has had an answer.
fn wait_for_each(subjects: &[Subject], heard: &Receiver<Subject>) -> Result<()> {
    let mut missing = subjects.to_vec();
    while !missing.is_empty() {
        let subject = heard.recv_timeout(BOUND).with_context(|| format!("no answer for {missing:?}"))?;
        missing.retain(|other| *other != subject);
    }
    Ok(())
}

impl Watch {
    /// Whether a pair that began at this moment began without the primary. A pair before that is told to the bench.
    fn is_after(&self, begun: u64, subject: Subject) -> Result<bool> {
        let gone = self.gone.load(Ordering::SeqCst);
        if gone == 0 {
            self.pairs.send(subject).context("the bench has gone")?;
        }
        self.within_bound()?;
        Ok(gone != 0 && begun > gone)
    }

    fn within_bound(&self) -> Result<()> {
        ensure!(Duration::from_nanos(now() - self.begun) < BOUND, "there was no answer within {BOUND:?}");
        Ok(())
    }
}

/// This library: acquires and releases one free lock after another. Returns when it had the first one after the kill.
fn ours(subject: Subject, url: &str, watch: &Watch) -> Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = leasehold::connect(url).await?;
        for turn in 0_u64.. {
            let begun = now();
            let lock = client.mutex(format!("bench:{subject:?}:{turn}")).ttl(MAX_TTL).wait(BOUND);
            let guard = lock.on_unavailable(OnUnavailable::Wait).acquire().await?;
            let answered = now();
            if watch.is_after(begun, subject)? {
                return Ok(answered);
            }
            // The server may have gone meanwhile.
            guard.release().await.ok();
            tokio::time::sleep(PACE).await;
        }
        bail!("the numbers of turns are used up")
    })
}

/// The least that a client needs: it asks one sentinel after another, connects to the server that it is told, and sets and
/// deletes a key. After any error it begins anew.
fn bare(sentinels: &[u16], watch: &Watch) -> Result<u64> {
    let mut connection = None;
    loop {
        let begun = now();
        match bare_pair(&mut connection, sentinels, begun) {
            Ok(()) if watch.is_after(begun, Subject::Bare)? => return Ok(now()),
            Ok(()) => {}
            Err(_) => connection = None,
        }
        watch.within_bound()?;
        thread::sleep(PACE);
    }
}

fn bare_pair(connection: &mut Option<Connection>, sentinels: &[u16], turn: u64) -> Result<()> {
    let connection = match connection {
        Some(connection) => connection,
        None => {
            let port = sentinels.iter().find_map(|sentinel| primary(*sentinel).ok()).context("no sentinel answers")?;
            connection.insert(connected(port, PASSWORDS.0)?)
        }
    };
    let key = format!("bench:bare:{turn}");
    let set = redis::cmd("SET").arg(&key).arg(turn).arg("NX").arg("PX").arg(MAX_TTL.as_millis() as u64).clone();
    set.exec(connection)?;
    Ok(redis::cmd("DEL").arg(&key).exec(connection)?)
}

/// The port of the primary that a sentinel names.
fn primary(sentinel: u16) -> Result<u16> {
    let mut connection = connected(sentinel, PASSWORDS.1)?;
    let named =
        redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(MASTER).query::<(String, u16)>(&mut connection);
    Ok(named?.1)
}

fn connected(port: u16, password: &str) -> Result<Connection> {
    let client = redis::Client::open(format!("redis://:{password}@{}:{port}", Ipv4Addr::LOCALHOST))?;
    let connection = client.get_connection_with_timeout(STEP)?;
    connection.set_read_timeout(Some(STEP))?;
    Ok(connection)
}
