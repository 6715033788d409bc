//! The nodes of a quorum: whether they vote, and the locks that they show.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::error::{Effect, Operation};
use leasehold::inspect::{Entry, Held};
use leasehold::redlock::{Purpose, RedlockConfig, Report, nonblocking};
use leasehold::{BackendError, Client, ConnectError, ErrorKind, Holder, LockName};
use tokio::sync::OnceCell;

use crate::listing::{WITHIN, list};

/// The nodes of a quorum. Nothing is written to them.
#[derive(Debug)]
pub(crate) struct Nodes {
    quorum: nonblocking::Quorum,
    nodes: Vec<Node>,
}

/// One node, and its client once it is connected.
#[derive(Debug)]
struct Node {
    url: String,
    client: OnceCell<Client>,
}

impl Nodes {
    /// The nodes of a configuration, without a connection.
    pub(crate) fn of(config: &RedlockConfig) -> Result<Self, ConnectError> {
        let node = |url: &str| Node { url: url.to_owned(), client: OnceCell::new() };
        let nodes = config.nodes().iter().map(|url| node(url.url())).collect();
        Ok(Self { quorum: nonblocking::open(config)?, nodes })
    }

    /// Whether the nodes vote.
    pub(crate) async fn report(&self) -> Result<Report, BackendError> {
        self.quorum.pass(Purpose::Look, WITHIN).await
    }

    /// The locks that a majority of the nodes shows.
    pub(crate) async fn list(&self, pattern: &str) -> Result<Vec<Entry>, BackendError> {
        let majority = self.nodes.len() / 2 + 1;
        let answers = join_all(self.nodes.iter().map(|node| node.list(pattern))).await;
        let (shown, failed): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        match failed.into_iter().find_map(Result::err) {
            Some(error) if shown.len() < majority => Err(error),
            _ => Ok(merged(shown.into_iter().flatten().flatten(), majority)),
        }
    }
}

impl Node {
    /// Connects if needed.
    async fn list(&self, pattern: &str) -> Result<Vec<Entry>, BackendError> {
        list(self.client.get_or_try_init(|| connect(&self.url)).await?, pattern).await
    }
}

async fn connect(url: &str) -> Result<Client, BackendError> {
    leasehold::connect(url).await.map_err(|error| match error {
        ConnectError::Backend(error) => error,
        other @ (ConnectError::Invalid(_) | ConnectError::Host(_) | _) => {
            BackendError::new("redlock", Operation::Connect, ErrorKind::Config, Effect::None, other.to_string())
        }
    })
}

/// What tells a lease from the others of its lock: its lowest token; `None` for one of something else.
type Key = Option<u64>;

/// The leases that a majority shows. A lease that fewer show is not granted yet, or not held any more.
fn merged(shown: impl Iterator<Item = Entry>, majority: usize) -> Vec<Entry> {
    let mut locks: BTreeMap<LockName, (u32, BTreeMap<Key, Vec<Held>>)> = BTreeMap::new();
    for entry in shown {
        let (waiters, leases) = locks.entry(entry.name).or_default();
        *waiters = entry.waiters.max(*waiters);
        entry.holders.into_iter().for_each(|held| leases.entry(key(&held)).or_default().push(held));
    }
    let lock = |(name, (waiters, leases)): (LockName, (u32, BTreeMap<Key, Vec<Held>>))| {
        let mut holders: Vec<_> = leases.into_values().filter_map(|shown| agreed(shown, majority)).collect();
        holders.sort_by_key(|held| std::cmp::Reverse(until(held)));
        let (holder, remaining) = holders.first().map(|last| (last.holder.clone(), last.remaining))?;
        let leases = u32::try_from(holders.len()).unwrap_or(u32::MAX);
        Some(Entry { name, holder, remaining, leases, holders, waiters, queue: Vec::new() })
    };
    locks.into_iter().filter_map(lock).collect()
}

/// The lease, for as long as a majority holds it.
fn agreed(mut shown: Vec<Held>, majority: usize) -> Option<Held> {
    shown.sort_by_key(|held| std::cmp::Reverse(until(held)));
    (shown.len() >= majority).then(|| shown.swap_remove(majority - 1))
}

fn until(held: &Held) -> Duration {
    held.remaining.unwrap_or(Duration::MAX)
}

fn key(held: &Held) -> Key {
    match held.holder {
        Holder::Leasehold { tokens, .. } => Some(tokens.low().get()),
        Holder::Foreign => None,
    }
}
