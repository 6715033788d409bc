//! What a client knows of a cluster: its map of hash slots, when that is asked for again, and from whom.
//!
//! The client and its keeper share it. One of their threads asks at a time.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lock_core::{Effect, ErrorKind, Listeners, StoreEvent};
use redis::{ConnectionInfo, RedisError};

use super::slot_map::SlotMap;
use crate::address::Address;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, at, connecting, for_one_question, nobody_answered, shown};
use crate::directory::{Directory, in_background};
use crate::failure::Failure;
use crate::hash_slot::HashSlot;
use crate::span::Span;

/// How old a map may become while the client is in use. Chosen: what is out of date shows in the first request that it concerns,
/// except for servers that are not there yet.
const OLD_AFTER: Duration = Duration::from_secs(30);
/// How long nobody asks again after a question. Chosen: a cluster needs longer than this to replace a primary.
const PAUSE: Duration = Duration::from_millis(100);
/// No server takes more than this part of the time while others are left to ask.
const PART_MAX: usize = 3;
const NOBODY: &str = "check that the servers run at these addresses";

/// The map of a cluster, for all connections of a client.
pub(crate) struct Topology {
    seeds: Vec<Address>,
    /// How the servers are reached, but for the address.
    server: ConnectionInfo,
    state: Mutex<State>,
    /// Whether a thread was started that asks.
    is_starting: AtomicBool,
    answered: Condvar,
    listeners: Listeners,
}

struct State {
    map: SlotMap,
    /// Whether a thread asks.
    is_asking: bool,
    /// When somebody asked last.
    asked_at: Option<Instant>,
    /// When the map is old.
    old_at: Instant,
    /// How often hash slots have left each server.
    departures: HashMap<Arc<Address>, u64>,
    /// The server to ask first, by its number. Each question begins with another one: the last one may be cut off.
    turn: usize,
}

/// Ends the question of a thread, however it ends.
struct Asking<'a>(&'a Topology);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        (state.is_asking, state.asked_at) = (false, Some(Instant::now()));
        self.0.answered.notify_all();
    }
}

impl Topology {
    /// A cluster of which nothing is known yet.
    pub(crate) fn new(seeds: Vec<Address>, server: ConnectionInfo) -> Self {
        let (map, turn, is_asking, departures) = (SlotMap::default(), 0, false, HashMap::new());
        let old_at = Instant::now() + jittered(OLD_AFTER);
        let state = Mutex::new(State { map, turn, is_asking, asked_at: None, old_at, departures });
        let (is_starting, answered) = (AtomicBool::new(false), Condvar::new());
        Self { seeds, server, state, is_starting, answered, listeners: Listeners::default() }
    }

    /// Has the map asked for, without waiting for that.
    fn refresh_soon(self: &Arc<Self>) {
        let mut state = self.state();
        if state.is_asking || state.was_just_asked() {
            return;
        }
        state.old_at = Instant::now() + jittered(OLD_AFTER);
        drop(state);
        let refresh = |topology: &Self| _ = topology.refresh(Span::from_now(CONNECT_WITHIN));
        in_background(self, "leasehold-map", |topology| &topology.is_starting, refresh);
    }

    /// Begins a question to these servers, in this order. `None` if another thread has just asked.
    fn begin(&self, span: Span) -> Option<(Asking<'_>, Vec<Address>)> {
        let mut state = self.state();
        while state.is_asking {
            let left = span.left();
            if left.is_zero() {
                return None;
            }
            state = self.answered.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.was_just_asked() {
            return None;
        }
        (state.is_asking, state.turn) = (true, state.turn.wrapping_add(1));
        let mut servers: Vec<_> = state.map.servers().iter().map(|server| Address::clone(server)).collect();
        let others: Vec<_> = self.seeds.iter().filter(|seed| !servers.contains(seed)).cloned().collect();
        servers.extend(others);
        let first = (state.turn - 1) % servers.len().max(1);
        servers.rotate_left(first);
        drop(state);
        Some((Asking(self), servers))
    }

    /// The first map that has as many hash slots as are known. A server that the others have forgotten tells only of its own: if
    /// all maps have fewer, the one with most of them.
    fn ask_in_turn(&self, servers: &[Address], known: usize, span: Span) -> Result<SlotMap, Failure> {
        let (mut failures, mut widest) = (Vec::new(), None::<SlotMap>);
        for (tried, server) in servers.iter().enumerate() {
            let parts = u32::try_from((servers.len() - tried).min(PART_MAX)).unwrap_or(1);
            let left = span.left() / parts;
            if left.is_zero() {
                break;
            }
            match self.ask(server, span.at_most(left)) {
                Ok(map) if map.served() >= known => return Ok(map),
                Ok(map) if widest.as_ref().is_none_or(|widest| widest.served() < map.served()) => widest = Some(map),
                Ok(_) => {}
                Err(failure) => failures.push(failure),
            }
        }
        widest.ok_or_else(|| nobody_answered("server of the cluster", NOBODY, &failures, span))
    }

    /// Asks one server for the map.
    fn ask(&self, address: &Address, span: Span) -> Result<SlotMap, Failure> {
        let server = at(&self.server, address);
        let shown = shown(&server);
        let asked = for_one_question(&server, span);
        let reply = asked.and_then(|mut connection| redis::cmd("CLUSTER").arg("SLOTS").query(&mut connection));
        let map = SlotMap::read(reply.map_err(|error| refused(&shown, span, &error))?, address)?;
        if map.primaries().is_empty() {
            let message = format!("{shown} belongs to a cluster that serves no hash slots");
            let failure = Failure::new(ErrorKind::Unavailable, Effect::None, message);
            return Err(failure.remedy("create the cluster first: redis-cli --cluster create"));
        }
        Ok(map)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Hash slots have left these servers.
    fn departed(&mut self, servers: impl IntoIterator<Item = Arc<Address>>) {
        servers.into_iter().for_each(|server| *self.departures.entry(server).or_default() += 1);
    }

    fn was_just_asked(&self) -> bool {
        self.asked_at.is_some_and(|asked_at| asked_at.elapsed() < PAUSE)
    }
}

impl Directory for Topology {
    /// If the map is old, it is asked for in the background.
    fn primary_of(self: Arc<Self>, hash_slot: HashSlot) -> Option<Arc<Address>> {
        let state = self.state();
        let (primary, is_old) = (state.map.primary_of(hash_slot), state.old_at <= Instant::now());
        drop(state);
        if is_old {
            self.refresh_soon();
        }
        primary
    }

    fn primaries(&self) -> Vec<Arc<Address>> {
        self.state().map.primaries()
    }

    fn knows(&self, address: &Arc<Address>) -> bool {
        self.state().map.servers().contains(address)
    }

    fn departures(&self, address: &Address) -> u64 {
        self.state().departures.get(address).copied().unwrap_or_default()
    }

    fn moved(self: Arc<Self>, hash_slot: HashSlot, to: Address) {
        let mut state = self.state();
        let was = state.map.primary_of(hash_slot);
        let has_changed = state.map.moved(hash_slot, to);
        if has_changed {
            state.departed(was);
        }
        drop(state);
        self.refresh_soon();
        if has_changed {
            // Who waits at the other server for a lock in this hash slot would hear nothing.
            self.listeners.deliver(&StoreEvent::RecheckAll);
        }
    }

    /// Asks one server after another for the map, unless that was just done. Waits while another thread asks.
    fn refresh(&self, span: Span) -> Result<(), Failure> {
        let span = span.at_most(CONNECT_WITHIN);
        let Some((asking, servers)) = self.begin(span) else { return Ok(()) };
        let known = self.state().map.served();
        let map = self.ask_in_turn(&servers, known, span)?;
        let mut state = self.state();
        let left = state.map.left_in(&map);
        (state.map, state.old_at) = (map, Instant::now() + jittered(OLD_AFTER));
        let has_changed = !left.is_empty();
        state.departed(left.into_iter().flatten());
        drop(state);
        drop(asking);
        if has_changed {
            self.listeners.deliver(&StoreEvent::RecheckAll);
        }
        Ok(())
    }

    /// A server that did not serve a request may have been replaced, and nobody says so.
    fn doubt(self: Arc<Self>, failure: &Failure) {
        if !failure.is_an_answer() || failure.is_elsewhere() || failure.redirect().is_some() {
            self.refresh_soon();
        }
    }

    fn listeners(&self) -> &Listeners {
        &self.listeners
    }
}

/// Between four fifths and six fifths of it, so that the clients of a cluster do not ask all at once.
fn jittered(time: Duration) -> Duration {
    let random = u32::try_from(RandomState::new().hash_one(()) % 400).unwrap_or_default();
    time * (800 + random) / 1000
}

/// What an error of the question means.
fn refused(shown: &str, span: Span, error: &RedisError) -> Failure {
    let told = error.to_string();
    if told.contains("cluster support disabled") || told.contains("unknown command") {
        let message = format!("{shown} does not belong to a cluster");
        return Failure::new(ErrorKind::Config, Effect::None, message)
            .remedy("use redis://HOST:PORT for a standalone server");
    }
    classify(connecting(shown, span.within), error)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use redis::IntoConnectionInfo;
    use test_support::Cluster;

    use super::*;

    /// It may have been forgotten by the others, or reset.
    #[test]
    fn a_server_that_knows_only_itself_does_not_make_the_others_unknown() {
        let [cluster, lone] = [Cluster::of_one(), Cluster::of_one()];
        lone.servers[0].command::<()>(&["CLUSTER", "DELSLOTSRANGE", "100", "16383"]);
        let seeds = [&cluster, &lone].map(|cluster| Address::read(&format!("127.0.0.1:{}", cluster.servers[0].port())));
        let server = cluster.servers[0].url().into_connection_info().unwrap();
        let topology = Topology::new(seeds.map(Option::unwrap).into(), server);
        for turn in 0..4 {
            topology.refresh(Span::from_now(Duration::from_secs(10))).unwrap();
            assert_eq!(topology.state().map.served(), 16384, "in turn {turn}");
            thread::sleep(PAUSE);
        }
    }

    #[test]
    fn many_redirects_at_once_start_one_thread() {
        // It accepts connections, and never answers.
        let seed = TcpListener::bind("127.0.0.1:0").unwrap();
        let shown = seed.local_addr().unwrap().to_string();
        let (server, address) = (format!("redis://{shown}").into_connection_info(), Address::read(&shown).unwrap());
        let topology = Arc::new(Topology::new(vec![address.clone()], server.unwrap()));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    HashSlot::all()
                        .take(500)
                        .for_each(|hash_slot| Arc::clone(&topology).moved(hash_slot, address.clone()))
                });
            }
        });
        // Each of them has the topology.
        assert_eq!(Arc::strong_count(&topology) - 1, 1, "threads that ask for the map");
    }
}
