//! `cargo xtask chaos`: many processes on one Redis, on a quorum of five, on one PostgreSQL, on one MariaDB, and on a ZooKeeper ensemble, under constant failures
//! for a long time; many readers, writers and holders of permits; and a crowd on one lock of PostgreSQL, and of MariaDB.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{matrix, services, step};

const USAGE: &str = "\
usage: cargo xtask chaos [--matrix] --minutes N [--seed S]

  --matrix  each setting under each fault, other ones each day, in place of all faults together";

/// The options.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) minutes: u64,
    seed: Option<u64>,
}

impl Plan {
    fn of(arguments: &[String]) -> Result<Self> {
        let mut plan = Self::default();
        for pair in arguments.chunks(2) {
            match pair {
                [word, value] if word == "--minutes" => plan.minutes = number(value)?,
                [word, value] if word == "--seed" => plan.seed = Some(number(value)?),
                _ => bail!("{USAGE}"),
            }
        }
        if plan.minutes == 0 {
            bail!("{USAGE}");
        }
        Ok(plan)
    }

    /// Tells a stress test how long it injects faults, and the seed.
    pub(crate) fn tell(&self, command: &mut Command, seconds: u64) {
        command.env("LEASEHOLD_STRESS_SECONDS", seconds.to_string());
        if let Some(seed) = self.seed {
            command.env("LEASEHOLD_SEED", seed.to_string());
        }
    }
}

fn number(text: &str) -> Result<u64> {
    text.parse().with_context(|| format!("{text} is not a number; {USAGE}"))
}

/// How long each run of overlapping readers or writers lasts.
const CROWD: u64 = 60;

/// Plays the matrix, or all faults together.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        Some((word, rest)) if word == "--matrix" => matrix::run(&Plan::of(rest)?),
        _ => storms(&Plan::of(arguments)?),
    }
}

/// Injects faults for this many minutes: a fifth of them on one Redis, on a quorum, on PostgreSQL, on MariaDB, and on a ZooKeeper ensemble; at the two databases,
/// the crowd has half of it. Readers and writers overlap for a minute.
fn storms(plan: &Plan) -> Result<()> {
    services::for_chaos()?;
    let storm = plan.minutes * 12;
    let storms =
        [("it", storm), ("quorum", storm), ("postgres", storm / 2), ("mysql", storm / 2), ("zookeeper", storm)];
    for (test, seconds) in [("crowds", CROWD)].into_iter().chain(storms) {
        let mut command =
            step::command(&["test", "--package", "stress", "--test", test, "--", "--nocapture", "--include-ignored"]);
        plan.tell(&mut command, seconds);
        step::run(command)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Option<Plan> {
        Plan::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).ok()
    }

    #[test]
    fn minutes_are_needed_and_a_seed_is_not() {
        assert_eq!(plan("--minutes 4"), Some(Plan { minutes: 4, seed: None }));
        assert_eq!(plan("--seed 7 --minutes 4"), Some(Plan { minutes: 4, seed: Some(7) }));
        for wrong in ["", "--seed 7", "--minutes", "--minutes x", "--minutes 0", "--hours 1"] {
            assert_eq!(plan(wrong), None, "{wrong}");
        }
    }
}
