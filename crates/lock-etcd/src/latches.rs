//! Latches: a key with the state, and keys for the arrivals. All are under one lease, so they end together, and nothing is deleted by hand.
//!
//! A lease cannot be made longer. So arrivals are kept in a few keys, which one transaction can move to another lease.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::latch::{Act, ArrivalId, Count, Generation, LatchState, Request};
use lock_core::{Invalid, Moment, Width};
use lock_host::{Clock, HostClock};
use lock_rules::window::{self, LatchCommit, LatchWindow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tonic::{Code, Status};

use crate::cluster::Cluster;
use crate::directory::Latch;
use crate::leases::Lease;
use crate::txn;

/// How many keys the arrivals are spread over. Chosen: a transaction has at most 128 operations, and an arrival writes a small part of all.
const PARTS: u8 = 64;
/// How long a request waits at most before it asks again, and how much longer each further time. Chosen: others that ask at the same time get
/// through.
const PAUSE: Duration = Duration::from_millis(20);

/// The value of a latch's key.
#[derive(Clone, Copy, Deserialize, Serialize)]
struct Stored {
    generation: u64,
    expected: Option<u32>,
    arrived: u32,
    completed: Option<u64>,
    /// The generation before, whose arrivals are kept.
    before: Option<u64>,
    /// The term in which its lease was granted, if that is known.
    granted_in: Option<u64>,
}

/// The value of a key for arrivals: for each generation, the hashes of the ids, each with the call that counted it.
type Arrivals = BTreeMap<u64, BTreeMap<String, u64>>;

/// Where an id is, or is to be.
struct Spot {
    key: Vec<u8>,
    hash: String,
}

/// What was read of a latch.
struct Loaded {
    /// The revision of its last change; 0 if there is none.
    changed: i64,
    lease: i64,
    stored: Option<Stored>,
    /// The arrivals where the id is.
    arrivals: Arrivals,
    next_generation: Generation,
}

/// Carries out a request about a latch.
pub(crate) async fn ask(cluster: &Cluster, request: &Request) -> Result<Option<LatchState>, Status> {
    let latch = cluster.directory(&request.name).latch();
    let spot = match &request.act {
        Act::Arrive { id, .. } => Some(Spot::of(&latch, id)),
        Act::Make { .. } | Act::Expect { .. } | Act::Reset { .. } | Act::Look { .. } => None,
    };
    let mut pause = PAUSE;
    loop {
        let loaded = match load(cluster, &latch, spot.as_ref()).await {
            // The servers have lost their data.
            Err(status) if txn::is_no_base(&status) => {
                cluster.check_base().await?;
                continue;
            }
            loaded => loaded?,
        };
        let ((state, _), commit) = window::ask_latch(loaded.window(spot.as_ref()).map_err(invalid)?, request);
        let Some(commit) = commit else { return Ok(state) };
        if write(cluster, (&latch, spot.as_ref()), loaded, &commit).await? {
            return Ok(state);
        }
        tokio::time::sleep(pause.mul_f32(fastrand::f32())).await;
        pause += PAUSE;
    }
}

fn invalid(found: Invalid) -> Status {
    Status::internal(found.to_string())
}

async fn load(cluster: &Cluster, latch: &Latch, spot: Option<&Spot>) -> Result<Loaded, Status> {
    let reads = [txn::base_key(cluster.root()), latch.key()].into_iter().chain(spot.map(|spot| spot.key.clone()));
    let (told, _) = cluster.read(reads.map(txn::get).collect()).await?;
    let (latch, part) = (told.kv(1), told.kv(2));
    // It is written at a later revision, and the next one is loaded after that. So they rise, as tokens do.
    let next = told.base(0)?.tokens(told.revision, Width::ONE).map_err(invalid)?;
    Ok(Loaded {
        changed: latch.map_or(0, |latch| latch.mod_revision),
        lease: latch.map_or(0, |latch| latch.lease),
        stored: latch.and_then(|latch| serde_json::from_slice(&latch.value).ok()),
        arrivals: part.and_then(|part| serde_json::from_slice(&part.value).ok()).unwrap_or_default(),
        next_generation: Generation::new(next.low().get()),
    })
}

/// Writes what was decided. Returns false if the latch has changed since it was read.
async fn write(
    cluster: &Cluster,
    (latch, spot): (&Latch, Option<&Spot>),
    loaded: Loaded,
    commit: &LatchCommit,
) -> Result<bool, Status> {
    let (since, ttl) = (HostClock.now(), commit.until.since(Moment::ORIGIN));
    let mut values = BTreeMap::new();
    let mut lease = Lease::of_others(loaded.lease, loaded.stored.and_then(|stored| stored.granted_in));
    let may_be_kept = loaded.lease != 0 && cluster.leases.renewals_count(&lease);
    let is_kept = may_be_kept && cluster.leases.renew(&mut lease).await? && lease.ttl() >= ttl;
    if !is_kept {
        lease = cluster.leases.take(ttl).await?;
        let (parts, _) = cluster.read(vec![txn::keys(latch.parts(), 0)]).await?;
        values.extend(parts.ranges.into_iter().flat_map(|range| range.kvs).map(|part| (part.key, part.value)));
    }
    let stored = Stored { granted_in: lease.granted_in(), ..loaded.changed(commit) };
    values.insert(latch.key(), to_wire(&stored));
    if let (Some(spot), Some((_, call))) = (spot, &commit.arrival) {
        values.insert(spot.key.clone(), to_wire(&loaded.with_arrival(&stored, spot, *call)));
    }
    let puts = values.into_iter().map(|(key, value)| txn::put(key, value, lease.id())).collect();
    let compare = vec![txn::is_at(latch.key(), loaded.changed)];
    let (told, seen) = match cluster.transact(txn::transaction(compare, [puts, vec![]], &[])).await {
        // The lease has ended.
        Err(status) if status.code() == Code::NotFound => return Ok(false),
        told => told?,
    };
    lease.prove(seen);
    if !told.succeeded {
        cluster.leases.put_back([lease].into_iter().filter(|_| !is_kept));
        return Ok(false);
    }
    // The renewal may not have counted.
    while lease.lasts(since) < ttl {
        if !cluster.leases.renewals_count(&lease) || !cluster.leases.renew(&mut lease).await? {
            return Ok(false);
        }
        lease.prove(cluster.read(vec![txn::log(cluster.root())]).await?.1);
    }
    Ok(true)
}

fn to_wire(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

impl Spot {
    fn of(latch: &Latch, id: &ArrivalId) -> Self {
        let hash = Sha256::digest(id.as_str());
        let part = hash.last().map_or(0, |last| last % PARTS);
        Self { key: latch.part(part), hash: hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect() }
    }
}

impl Stored {
    fn state(&self) -> Result<LatchState, Invalid> {
        let mut state = LatchState::new(Generation::new(self.generation));
        state.expected = self.expected.map(Count::new).transpose()?;
        (state.arrived, state.completed) = (self.arrived, self.completed.map(Generation::new));
        Ok(state)
    }
}

impl Loaded {
    fn window(&self, spot: Option<&Spot>) -> Result<LatchWindow, Invalid> {
        let call = |generation: u64| self.arrivals.get(&generation)?.get(&spot?.hash).copied();
        Ok(LatchWindow {
            // A latch that has ended is not there, and an end is given as the time from now.
            now: Moment::ORIGIN,
            // The revision is compared.
            version: 0,
            state: self.stored.as_ref().map(Stored::state).transpose()?,
            has_arrived: self.stored.is_some_and(|stored| call(stored.generation).is_some()),
            arrived_before: self.stored.and_then(|stored| call(stored.before?)),
            next_generation: self.next_generation,
        })
    }

    /// The arrivals where an id is, once this call has counted it. Those of older generations are dropped.
    fn with_arrival(&self, stored: &Stored, spot: &Spot, call: u64) -> Arrivals {
        let mut arrivals = self.arrivals.clone();
        arrivals.retain(|generation, _| *generation == stored.generation || Some(*generation) == stored.before);
        arrivals.entry(stored.generation).or_default().insert(spot.hash.clone(), call);
        arrivals
    }

    /// What a commit makes of it.
    fn changed(&self, LatchCommit { state, .. }: &LatchCommit) -> Stored {
        let generation = state.generation.get();
        let before = self
            .stored
            .and_then(|stored| if stored.generation == generation { stored.before } else { Some(stored.generation) });
        Stored {
            generation,
            expected: state.expected.map(Count::get),
            arrived: state.arrived,
            completed: state.completed.map(Generation::get),
            before,
            granted_in: None,
        }
    }
}
