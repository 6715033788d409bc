//! How the servers of a configuration are found.

use crate::address::Sentinels;
use crate::cluster::Seeds;

/// How the servers are found.
#[derive(Clone)]
pub(crate) enum Deployment {
    /// There is one, and its address is known.
    OneServer,
    /// Sentinels name the primary.
    Sentinels(Sentinels),
    /// Each primary of a cluster has a part of the locks.
    Cluster(Seeds),
}
