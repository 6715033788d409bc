//! A follower dies before it has reported its clients to the leader.

use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

use lock_core::{Answer, AsyncBackend, Lease, Renewed};
use lock_zookeeper::nonblocking::{self, Store};
use test_support::bounds::wait_for;
use test_support::{ZookeeperEnsemble, ZookeeperOptions, four_letter};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::support::{SOON, claim, config, url};

/// How many clients a follower has.
const CLIENTS: u32 = 40;
/// Their sessions last for different times. The leader ends sessions at multiples of its tick, so that some end there much later than others.
const SHORTEST: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(12);
/// For how long they renew: the beginning of their sessions is far from enough in the end.
const RENEW_FOR: Duration = Duration::from_millis(1_500);
/// The twin is caught in most rounds.
const ROUNDS_MAX: u32 = 20;

/// A client that knows only the follower.
struct Client {
    store: Store,
    lease: Lease,
    session: Duration,
}

impl Client {
    /// `None` if the machine is too busy for such short sessions.
    async fn new(address: String, number: u32) -> Option<Self> {
        let session = SHORTEST + STEP * number;
        let config = config(&url(&address, session));
        let store = loop {
            if let Ok(store) = nonblocking::connect(&config).await {
                break store;
            }
        };
        match store.acquire(&claim(&format!("client {number}")), SOON).await {
            Ok(Answer::Granted { lease, .. }) => Some(Self { store, lease, session }),
            // Or the session of an earlier round has not ended yet.
            Ok(Answer::Busy { .. }) => None,
            Err(error) if error.kind().is_transient() => None,
            other => panic!("not granted: {other:?}"),
        }
    }

    /// Renews, and returns for how long the lease then lasts. `None` if that is not known in time.
    async fn renew(&self) -> Option<Duration> {
        match self.store.renew(std::slice::from_ref(&self.lease), SOON).await.ok()?.as_slice() {
            [Renewed::Renewed { valid_for, .. }] => Some(*valid_for),
            [Renewed::NotHeld] => None,
            other => panic!("{other:?}"),
        }
    }
}

async fn all<T: Send + 'static>(tasks: impl Iterator<Item = impl Future<Output = T> + Send + 'static>) -> Vec<T> {
    tasks.collect::<JoinSet<_>>().join_all().await
}

/// For each client: how long its lease was to last, from before its last renewal was sent, the session that it has, and when its node was
/// seen to be gone.
type Seen = (Duration, Duration, Duration);

/// Has the clients of a follower renew, kills the follower as soon as it has answered, and looks at the nodes on the leader. `None` if a client
/// lost its session before.
fn die_after_the_answers(ensemble: &mut ZookeeperEnsemble, follower: usize) -> Option<Vec<Seen>> {
    let runtime = Runtime::new().unwrap();
    let (leader, address) = (ensemble.server(ensemble.leader()).port(), ensemble.server(follower).address());
    let clients = runtime.block_on(all((0..CLIENTS).map(|number| Client::new(address.clone(), number))));
    let clients = clients.into_iter().collect::<Option<Vec<_>>>()?;
    // Until any moment between two pings of the leader.
    let until = Instant::now() + RENEW_FOR + Duration::from_millis(fastrand::u64(..250));
    let renewing = all(clients.into_iter().map(|client| async move {
        loop {
            let (asked, lasts) = (Instant::now(), client.renew().await?);
            if asked >= until {
                return Some((client, asked, lasts));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }));
    let clients = runtime.block_on(renewing).into_iter().collect::<Option<Vec<_>>>()?;
    ensemble.server_mut(follower).kill();

    let mut gone = vec![None; clients.len()];
    wait_for("all nodes are gone", || {
        let nodes = four_letter(leader, "dump");
        let now = Instant::now();
        for (gone, (client, asked, _)) in gone.iter_mut().zip(&clients) {
            let is_there = nodes.contains(&format!("/{}/", client.lease.name));
            *gone = gone.or_else(|| (!is_there && nodes.contains("Sessions with Ephemerals")).then(|| now - *asked));
        }
        gone.iter().all(Option::is_some)
    });
    let seen = clients.into_iter().zip(gone);
    Some(seen.map(|((client, _, lasts), gone)| (lasts, client.session, gone.unwrap())).collect())
}

/// Beside it, a twin that counts from the newest answer.
#[test]
fn no_node_is_gone_before_its_lease_although_the_follower_died_right_after_its_answer() {
    let mut ensemble = ZookeeperEnsemble::start_with(ZookeeperOptions::default().volatile());
    ensemble.leader();
    let followers = ensemble.followers();
    assert_eq!(followers.len(), 2);
    let mut of_the_twin = 0;
    for round in 0..ROUNDS_MAX {
        let follower = followers[usize::try_from(round).unwrap() % 2];
        let Some(seen) = die_after_the_answers(&mut ensemble, follower) else {
            thread::sleep(SHORTEST * 2);
            continue;
        };
        for (lasts, session, gone) in seen {
            assert!(lasts >= session / 4, "{lasts:?} of {session:?}");
            assert!(gone >= lasts, "a node was gone after {gone:?}, and its lease lasted for {lasts:?}");
            assert!(gone < lasts + SHORTEST * 2, "the lease is far shorter than it could be: {gone:?}, {lasts:?}");
            of_the_twin += u32::from(gone < session);
        }
        ensemble.server_mut(follower).restart_with_data();
        ensemble.wait_until_serving(follower);
        if round > 0 && of_the_twin > 0 {
            return;
        }
    }
    panic!("no node was gone before a lease that counts from the newest answer");
}
