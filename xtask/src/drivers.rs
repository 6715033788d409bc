//! `cargo xtask drivers`: the fenced statements with other drivers of SQL than the one that `lock-fence` knows.

use anyhow::Result;

use crate::{services, step};

/// Runs the programs below `examples/drivers`, which fail if a late writer is not refused. They take about 150 seconds of
/// processor time to build.
pub(crate) fn run() -> Result<()> {
    services::for_drivers()?;
    for program in ["fence-sqlx", "fence-sqlx-postgres", "fence-sqlx-mysql", "fence-diesel", "fence-diesel-postgres"] {
        step::cargo(&["run", "--manifest-path", "examples/drivers/Cargo.toml", "--bin", program])?;
    }
    Ok(())
}
