//! Sets of features that must each build alone.

use anyhow::Result;

use crate::step;

/// A package and its sets of features.
type Sets = (&'static str, &'static [&'static str]);

/// Each feature alone, and the combinations in which a backend, a facade and an option meet.
const CHOSEN: [Sets; 13] = [
    (
        "leasehold",
        &[
            "",
            "async",
            "blocking",
            "memory",
            "sqlite",
            "redis",
            "redlock",
            "postgres",
            "mysql",
            "zookeeper",
            "zookeeper-tls",
            "etcd",
            "etcd-tls",
            "tls",
            "connection-manager",
            "deadpool",
            "r2d2",
            "deadpool-postgres",
            "r2d2-postgres",
            "tracing",
            "metrics",
            "schema",
            "fence",
            "tower",
            "macros",
            "async,memory,sqlite,redlock,macros",
            "blocking,memory,sqlite,redlock,macros",
            "fence,sqlite",
            "async,fence,redis",
            "memory,schema",
        ],
    ),
    ("leasehold-dashboard", &["", "redlock"]),
    ("lock-fence", &["", "rusqlite", "redis", "async,redis", "tower"]),
    ("lock-host", &["", "bridge", "tls", "tracing", "metrics", "schema"]),
    ("lock-kit", &["async", "blocking"]),
    ("lock-sql", &[""]),
    ("lock-mysql", &["", "blocking", "schema"]),
    ("lock-postgres", &["", "postgres", "deadpool", "r2d2", "schema"]),
    ("lock-redis", &["", "async", "tls", "r2d2", "dev"]),
    ("lock-redlock", &["", "async", "twins"]),
    ("lock-sqlite", &["", "async"]),
    ("lock-zookeeper", &["", "tls", "schema"]),
    ("lock-etcd", &["", "tls", "schema"]),
];

/// The other sets that were ever asked for.
const OTHERS: [Sets; 3] = [
    (
        "leasehold",
        &[
            "async,memory",
            "blocking,memory",
            "async,sqlite",
            "blocking,sqlite",
            "async,redis",
            "blocking,redis",
            "async,redlock",
            "blocking,redlock",
            "async,postgres",
            "blocking,postgres",
            "async,mysql",
            "blocking,mysql",
            "async,zookeeper",
            "blocking,zookeeper",
            "async,etcd",
            "blocking,etcd",
            "async,tls",
            "blocking,tls",
            "async,macros",
            "blocking,macros",
            "async,blocking",
            "full",
        ],
    ),
    ("lock-host", &["tracing,metrics"]),
    ("lock-kit", &[""]),
];

/// Checks the chosen sets.
pub(crate) fn run() -> Result<()> {
    check(&CHOSEN)
}

/// Checks all sets.
pub(crate) fn all() -> Result<()> {
    check(&CHOSEN)?;
    check(&OTHERS)
}

fn check(packages: &[Sets]) -> Result<()> {
    for (package, sets) in packages {
        for features in *sets {
            step::cargo(&["check", "--package", package, "--no-default-features", "--features", features])?;
        }
    }
    Ok(())
}
