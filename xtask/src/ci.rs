//! `cargo xtask ci`: every change must pass this before it is merged.

use anyhow::Result;

use crate::{api, deny, drivers, release, sim, step, test, tidy};

/// Sets of features that must each build alone.
const FEATURES: [(&str, &[&str]); 7] = [
    (
        "leasehold",
        &[
            "",
            "async",
            "blocking",
            "memory",
            "async,memory",
            "blocking,memory",
            "sqlite",
            "async,sqlite",
            "blocking,sqlite",
            "redis",
            "async,redis",
            "blocking,redis",
            "redlock",
            "async,redlock",
            "blocking,redlock",
            "tls",
            "async,tls",
            "blocking,tls",
            "connection-manager",
            "deadpool",
            "tracing",
            "metrics",
            "schema",
            "memory,schema",
            "fence",
            "fence,sqlite",
            "async,fence,redis",
            "tower",
            "macros",
            "async,macros",
            "blocking,macros",
            "r2d2",
            "async,blocking",
            "full",
        ],
    ),
    ("lock-fence", &["", "rusqlite", "redis", "async,redis", "tower"]),
    ("lock-host", &["", "tracing", "metrics", "tracing,metrics", "schema"]),
    ("lock-kit", &["", "async", "blocking"]),
    ("lock-redis", &["", "async", "tls", "r2d2"]),
    ("lock-redlock", &["", "async", "twins"]),
    ("lock-sqlite", &["", "async"]),
];

/// Runs everything: tests first, as a user would, and the cheapest checks last.
pub(crate) fn run() -> Result<()> {
    test::run()?;
    sim::run(&["--half".into(), "memory".into()])?;
    sim::run(&["--half".into(), "replicated".into(), "--seeds".into(), "2000".into()])?;
    sim::run(&["--half".into(), "failovers".into(), "--seeds".into(), "4000".into()])?;
    sim::run(&["--half".into(), "quorum".into()])?;
    sim::run(&["--half".into(), "plots".into(), "--seeds".into(), "4000".into()])?;
    step::cargo(&["fmt", "--all", "--check"])?;
    step::cargo(&["clippy", "--workspace", "--all-features", "--all-targets", "--", "-D", "warnings"])?;
    step::cargo_with(("RUSTDOCFLAGS", "-D warnings"), &["doc", "--workspace", "--all-features", "--no-deps"])?;
    api::run(&[])?;
    deny::run(&[])?;
    for (package, sets) in FEATURES {
        for features in sets {
            let check = [
                "clippy",
                "--package",
                package,
                "--no-default-features",
                "--features",
                features,
                "--",
                "-D",
                "warnings",
            ];
            step::cargo(&check)?;
        }
    }
    drivers::run()?;
    release::run(&["--dry-run".into()])?;
    tidy::run()?;
    tidy::readme()
}
