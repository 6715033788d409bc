//! The options of `cargo xtask chaos`.

use std::process::Command;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
usage: cargo xtask chaos [--matrix [--record]] --minutes N [--seed S]

  --matrix  each setting under each fault, other ones each day, in place of all faults together
  --record  adds what was seen to the book";

/// The options.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) minutes: u64,
    seed: Option<u64>,
}

impl Plan {
    pub(crate) fn of(arguments: &[String]) -> Result<Self> {
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
