//! Scenes in which a holder loses its lock, or nearly does: with leasehold and with Curator at the same time, each with a lock of its own.

use std::fmt::{Display, Formatter, Result as Written};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use leasehold::connect;
use test_support::bounds::{PATIENCE, Watchdog};
use test_support::{CuratorAnswer, CuratorLock, CuratorPeer, CuratorState, Fault, Proxy, ZookeeperServer, four_letter};
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// How long a session lasts without its client.
pub const SESSION: Duration = Duration::from_secs(3);
/// How long the trouble lasts where it ends sessions.
pub const LONG: Duration = Duration::from_secs(6);
/// How long both are watched. Chosen: a suspended server may first prolong sessions when it is back, and end them a session later.
pub const WATCHED: Duration = Duration::from_secs(12);
const EVERY: Duration = Duration::from_millis(5);

/// How it went with one of them, counted from the beginning of the trouble.
#[derive(Debug, Default)]
pub struct Story {
    /// When the holder was told that the lock is in doubt. Only Curator says so.
    pub doubt: Option<Duration>,
    /// When it was told that it has lost the lock.
    pub told: Option<Duration>,
    /// When its node was gone, so that somebody else could have the lock.
    pub gone: Option<Duration>,
    /// Whether it says in the end that it holds the lock.
    pub held: bool,
    /// What its release says then, if that is an error.
    pub refused: Option<String>,
}

/// What either one went through: ours, then theirs.
pub type Stories = [Story; 2];

impl Display for Story {
    fn fmt(&self, out: &mut Formatter<'_>) -> Written {
        if let Some(doubt) = self.doubt {
            write!(out, "in doubt after {}, ", shown(doubt))?;
        }
        match self.told {
            Some(told) => write!(out, "told after {}, ", shown(told))?,
            None => write!(out, "not told of a loss, ")?,
        }
        match self.gone {
            Some(gone) => write!(out, "its node is gone after {}", shown(gone)),
            None => write!(out, "its node stays"),
        }
    }
}

fn shown(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The server is suspended for this time.
pub fn server_stopped(time: Duration) -> Result<Stories> {
    let server = ZookeeperServer::start();
    play(&server, &server.address(), time, [&|| server.stop(), &|| server.resume()])
}

/// The network of the holders fails silently for this time.
pub fn cut_off(time: Duration) -> Result<Stories> {
    let server = ZookeeperServer::start();
    let proxy = Proxy::start(server.port());
    let way = format!("127.0.0.1:{}", proxy.port());
    play(&server, &way, time, [&|| proxy.set(Fault::Hold), &|| proxy.set(Fault::None)])
}

/// Both hold a lock, trouble begins, and it ends after this time.
fn play(server: &ZookeeperServer, way: &str, time: Duration, [begin, end]: [&(dyn Fn() + Sync); 2]) -> Result<Stories> {
    let _watchdog = Watchdog::over("the end of a scene");
    let runtime = Runtime::new()?;
    let url = format!("zookeeper://{way}?tick=500ms&session={}s", SESSION.as_secs());
    let client = runtime.block_on(connect(&url))?;
    let guard = runtime.block_on(client.mutex("ours").ttl(SESSION).acquire())?;
    let mut peer = CuratorPeer::connect(way, SESSION);
    let claim = peer.acquire(CuratorLock::Mutex, "/theirs", PATIENCE);
    ensure!(peer.answer(claim) == CuratorAnswer::Acquired, "Curator did not get a free lock");
    // Until the lease has been renewed: the first one of a new session lasts longer.
    thread::sleep(SESSION);

    let [mut ours, mut theirs] = Stories::default();
    let (begun, port) = (Instant::now(), server.port());
    begin();
    thread::scope(|all| {
        all.spawn(|| {
            thread::sleep(time);
            end();
        });
        let gone = all.spawn(move || gone(port, begun));
        let told = runtime.spawn(told(guard.watch(), begun));
        watch(&mut peer, begun, &mut theirs);
        ours.told = runtime.block_on(told).ok().flatten();
        [ours.gone, theirs.gone] = gone.join().unwrap_or_default();
    });
    ours.held = guard.check().is_ok();
    let released = runtime.block_on(async { timeout(PATIENCE, guard.release()).await })?;
    ours.refused = released.err().map(|error| error.to_string());
    theirs.held = peer.is_acquired(claim);
    peer.release(claim);
    theirs.refused = match peer.answer(claim) {
        CuratorAnswer::Released => None,
        answer => Some(format!("{answer:?}")),
    };
    Ok([ours, theirs])
}

async fn told(watch: leasehold::LossWatch, begun: Instant) -> Option<Duration> {
    timeout(WATCHED, watch.lost()).await.ok().flatten().map(|_| begun.elapsed())
}

/// Notes when Curator reports which state.
fn watch(peer: &mut CuratorPeer, begun: Instant, story: &mut Story) {
    while begun.elapsed() < WATCHED {
        let told = match peer.state_now() {
            Some(CuratorState::Suspended) => Some(&mut story.doubt),
            Some(CuratorState::Lost) => Some(&mut story.told),
            Some(CuratorState::Connected | CuratorState::Reconnected | CuratorState::ReadOnly) | None => None,
        };
        if let Some(told) = told {
            told.get_or_insert(begun.elapsed());
        }
        thread::sleep(EVERY);
    }
}

/// When the nodes of both were gone, as the server says. It says nothing while it is suspended.
fn gone(port: u16, begun: Instant) -> [Option<Duration>; 2] {
    let mut all = [None; 2];
    while begun.elapsed() < WATCHED {
        let told = four_letter(port, "dump");
        for (path, gone) in ["/ours/", "/theirs/"].into_iter().zip(&mut all) {
            if !told.is_empty() && !told.contains(path) {
                gone.get_or_insert(begun.elapsed());
            }
        }
        thread::sleep(EVERY);
    }
    all
}
