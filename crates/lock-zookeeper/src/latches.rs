//! Latches: a node with the state, and below it a directory for the arrivals of each generation.
//!
//! A latch expires by the clocks of its clients. Its nodes are deleted a day later, when another latch is created.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::latch::{Act, ArrivalId, Count, Generation, LatchState, Request};
use lock_core::{BackendError, Invalid, Moment, Operation};
use lock_rules::window::{self, LatchCommit, LatchWindow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zookeeper_client::{CreateMode, Error};

use crate::error;
use crate::path::{LATCHES, OF_ENTRIES};
use crate::session::Session;

/// How long after its end the nodes of a latch are deleted.
const KEPT_AFTER_END: Duration = Duration::from_secs(24 * 3600);
/// How many nodes one transaction deletes. Chosen: it stays well below the megabyte that servers accept, however long their names are.
const DELETED_MAX: usize = 250;
/// How long a request waits at most before it asks again. Chosen: others that ask at the same time get through.
const PAUSE: Duration = Duration::from_millis(20);

/// The data of a latch's node.
#[derive(Clone, Deserialize, Serialize)]
struct Stored {
    /// When it expires, in microseconds since 1970.
    until: u64,
    generation: u64,
    expected: Option<u32>,
    arrived: u32,
    completed: Option<u64>,
    /// The generation before, whose arrivals are kept.
    before: Option<u64>,
}

/// What was read of a latch.
struct Loaded {
    now: u64,
    /// The version of the node; `None` if there is no node.
    version: Option<i32>,
    stored: Option<Stored>,
    has_arrived: bool,
    arrived_before: Option<u64>,
}

/// Carries out a request about the latch that has this node.
pub(crate) async fn ask(
    session: &Arc<Session>,
    node: &str,
    request: &Request,
) -> Result<Option<LatchState>, BackendError> {
    let failed = |failure| error::of(Operation::Latch, failure);
    let id = match &request.act {
        Act::Arrive { id, .. } => Some(id),
        Act::Make { .. } | Act::Expect { .. } | Act::Reset { .. } | Act::Look { .. } => None,
    };
    loop {
        let loaded = load(session, node, id).await.map_err(failed)?;
        let window = loaded.window().map_err(|invalid| failed(Error::UnexpectedError(invalid.to_string())))?;
        let ((state, _), commit) = window::ask_latch(window, request);
        let Some(commit) = commit else { return Ok(state) };
        let latch = loaded.changed(&commit);
        if write(session, node, &loaded, (&latch, commit)).await.map_err(failed)? {
            // The request is done, whatever becomes of this.
            session.spawn(tidy(Arc::clone(session), node.to_owned(), (loaded, latch)));
            return Ok(state);
        }
        tokio::time::sleep(PAUSE.mul_f32(fastrand::f32())).await;
    }
}

async fn load(session: &Session, node: &str, id: Option<&ArrivalId>) -> Result<Loaded, Error> {
    // So that the latch is at least as new as anything that this client has heard of.
    session.catch_up().await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
    let Some((data, stat)) = session.data(node).await? else {
        return Ok(Loaded { now, version: None, stored: None, has_arrived: false, arrived_before: None });
    };
    let stored = serde_json::from_slice::<Stored>(&data).ok();
    let (mut has_arrived, mut arrived_before) = (false, None);
    if let (Some(stored), Some(id)) = (&stored, id) {
        has_arrived = call_of(session, &arrival(node, stored.generation, id)).await?.is_some();
        if let Some(before) = stored.before {
            arrived_before = call_of(session, &arrival(node, before, id)).await?;
        }
    }
    Ok(Loaded { now, version: Some(stat.version), stored, has_arrived, arrived_before })
}

/// The call that has counted an arrival.
async fn call_of(session: &Session, arrival: &str) -> Result<Option<u64>, Error> {
    let found = session.data(arrival).await?;
    Ok(found.and_then(|(data, _)| String::from_utf8_lossy(&data).parse().ok()))
}

fn directory(node: &str, generation: u64) -> String {
    format!("{node}/{OF_ENTRIES}arrivals-{generation}")
}

fn arrival(node: &str, generation: u64, id: &ArrivalId) -> String {
    let hash = Sha256::digest(id.as_str());
    let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}/{digits}", directory(node, generation))
}

impl Stored {
    fn state(&self) -> Result<LatchState, Invalid> {
        let mut state = LatchState::new(Generation::new(self.generation));
        state.expected = self.expected.map(Count::new).transpose()?;
        (state.arrived, state.completed) = (self.arrived, self.completed.map(Generation::new));
        Ok(state)
    }

    /// The generations that it has arrivals of.
    fn generations(&self) -> impl Iterator<Item = u64> {
        [self.generation].into_iter().chain(self.before)
    }
}

impl Loaded {
    /// The latch, unless it has expired.
    fn living(&self) -> Option<&Stored> {
        self.stored.as_ref().filter(|stored| self.now < stored.until)
    }

    fn window(&self) -> Result<LatchWindow, Invalid> {
        let (living, last) = (self.living(), self.stored.as_ref().map_or(0, |stored| stored.generation));
        Ok(LatchWindow {
            now: Moment::from_nanos(self.now.saturating_mul(1_000)),
            // The node's own version is compared.
            version: 0,
            state: living.map(Stored::state).transpose()?,
            has_arrived: self.has_arrived && living.is_some(),
            arrived_before: self.arrived_before.filter(|_| living.is_some()),
            next_generation: Generation::new(last.saturating_add(1).max(self.now)),
        })
    }

    /// What a commit makes of it.
    fn changed(&self, commit: &LatchCommit) -> Stored {
        let LatchCommit { state, until, .. } = commit;
        let (living, generation) = (self.living(), state.generation.get());
        let before = living
            .and_then(|stored| if stored.generation == generation { stored.before } else { Some(stored.generation) });
        Stored {
            until: (until.as_nanos() / 1_000).max(living.map_or(0, |stored| stored.until)),
            generation,
            expected: state.expected.map(Count::get),
            arrived: state.arrived,
            completed: state.completed.map(Generation::get),
            before,
        }
    }
}

/// Writes what was decided. Returns false if the latch has changed since it was read.
async fn write(
    session: &Session,
    node: &str,
    loaded: &Loaded,
    (latch, commit): (&Stored, LatchCommit),
) -> Result<bool, Error> {
    let data = serde_json::to_vec(latch).unwrap_or_default();
    let options = session.create_options(CreateMode::Persistent);
    if loaded.version.is_none() {
        make_parents(session, node).await?;
    }
    let present = loaded.stored.as_ref().map(|stored| stored.generation);
    let written = session
        .write(async |client| {
            let mut changes = client.new_multi_writer();
            match loaded.version {
                None => changes.add_create(node, &data, &options)?,
                Some(version) => changes.add_set_data(node, &data, Some(version))?,
            }
            if let Some(present) = present {
                // A node of the same version may be a new one.
                changes.add_check_version(&directory(node, present), -1)?;
            }
            if present != Some(latch.generation) {
                changes.add_create(&directory(node, latch.generation), b"", &options)?;
            }
            if let Some((id, call)) = &commit.arrival {
                changes.add_create(&arrival(node, latch.generation, id), call.to_string().as_bytes(), &options)?;
            }
            changes.commit().await?;
            Ok(())
        })
        .await;
    match written {
        Ok(()) => Ok(true),
        Err(Error::BadVersion | Error::NodeExists | Error::NoNode) => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Deletes the arrivals that the latch does not need any more and, if it is new, other latches that expired long ago.
async fn tidy(session: Arc<Session>, node: String, (loaded, latch): (Loaded, Stored)) {
    let kept = |generation: &u64| latch.generations().any(|kept| kept == *generation);
    for generation in loaded.stored.iter().flat_map(Stored::generations).filter(|generation| !kept(generation)) {
        _ = delete_arrivals(&session, &node, generation).await;
    }
    if loaded.version.is_none() {
        _ = clean_up(&session, loaded.now).await;
    }
}

/// ZooKeeper removes them when they have been empty for a while.
async fn make_parents(session: &Session, node: &str) -> Result<(), Error> {
    session.make_shared(&format!("/{LATCHES}")).await?;
    let options = session.create_options(CreateMode::Container);
    let above = node.rsplit_once('/').map_or("", |(above, _)| above);
    session.write(|client| client.mkdir(above, &options)).await
}

async fn delete_arrivals(session: &Session, node: &str, generation: u64) -> Result<(), Error> {
    let directory = directory(node, generation);
    let Some(children) = session.children(&directory).await? else { return Ok(()) };
    let mut nodes: Vec<_> = children.iter().map(|child| format!("{directory}/{child}")).collect();
    nodes.push(directory);
    for some in nodes.chunks(DELETED_MAX) {
        match session.delete(some).await {
            // Another client does the same.
            Ok(()) | Err(Error::NoNode | Error::NotEmpty) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// Walks down from the root on a random path, and deletes each latch on it that expired long ago.
async fn clean_up(session: &Session, now: u64) -> Result<(), Error> {
    let mut node = format!("/{LATCHES}");
    while let Some(mut below) = session.children(&node).await? {
        below.retain(|child| !child.starts_with(OF_ENTRIES));
        let Some(child) = fastrand::choice(&below) else { return Ok(()) };
        node = format!("{node}/{child}");
        let Ok(Some((data, stat))) = session.data(&node).await else { return Ok(()) };
        let long = u64::try_from(KEPT_AFTER_END.as_micros()).unwrap_or(u64::MAX);
        let over =
            serde_json::from_slice::<Stored>(&data).ok().filter(|stored| stored.until.saturating_add(long) < now);
        if let Some(over) = over {
            delete(session, &node, (&over, stat.version)).await?;
        }
    }
    Ok(())
}

/// Deletes a latch, unless it has changed. Its data is emptied first: from then on, clients take it for absent.
async fn delete(session: &Session, node: &str, (over, version): (&Stored, i32)) -> Result<(), Error> {
    let emptied = session.write(async |client| {
        let mut changes = client.new_multi_writer();
        // A node of the same version may be a new one.
        changes.add_check_version(&directory(node, over.generation), -1)?;
        changes.add_set_data(node, b"", Some(version))?;
        changes.commit().await?;
        Ok(())
    });
    match emptied.await {
        Ok(()) => {}
        Err(Error::BadVersion | Error::NoNode) => return Ok(()),
        Err(failure) => return Err(failure),
    }
    for generation in over.generations() {
        delete_arrivals(session, node, generation).await?;
    }
    match session.write(|client| client.delete(node, Some(version.wrapping_add(1)))).await {
        Ok(()) | Err(Error::BadVersion | Error::NoNode | Error::NotEmpty) => Ok(()),
        Err(failure) => Err(failure),
    }
}
