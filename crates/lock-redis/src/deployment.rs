//! What the servers of a client are together.

/// Everything that differs between deployments follows from this: how keys are laid out, how a server is greeted, and how tokens are
/// drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deployment {
    /// One server, whose address is known.
    OneServer,
    /// A primary that sentinels name. Another server may take its place at any time.
    Sentinels,
    /// Primaries, each of which has a part of the locks.
    Cluster,
    /// The nodes of a quorum: servers that know nothing of each other.
    Quorum,
}
