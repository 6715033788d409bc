//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::scale::Scale;
use crate::scenario::{ALL, Scenario};

/// How fast leasehold is, compared with its raw client and with rslock.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
pub(crate) struct Args {
    /// Shorter runs and fewer rounds: three minutes in total
    #[arg(long)]
    pub(crate) quick: bool,
    /// Runs this scenario only; can be given several times. Those with replicas are run only if they are given
    #[arg(long, value_name = "NAME", value_parser = scenario)]
    scenario: Vec<&'static Scenario>,
    /// How many rounds; by default seven, five of contended locks, three of long scenarios, and twenty fail-overs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// The seed of the order in each round; if none is given, one is drawn and printed
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Writes every figure of every round to a file
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Writes the pages about performance, their figures and the history of versions into a folder
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true, default_missing_value = "docs")]
    pub(crate) page: Option<PathBuf>,
    /// What the history calls this version
    #[arg(long, value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    pub(crate) version_name: String,
    /// Measures nothing, and shows a run that `--json` wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "scenario", "rounds", "seed", "json"])]
    pub(crate) from: Option<PathBuf>,
    /// The program that measures rslock; without it, rslock is left out
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) rslock: Option<PathBuf>,
}

impl Args {
    /// What to measure.
    pub(crate) fn scenarios(&self) -> Vec<&'static Scenario> {
        if !self.scenario.is_empty() {
            return self.scenario.clone();
        }
        ALL.iter().filter(|scenario| !scenario.is_apart()).collect()
    }

    /// For how long.
    pub(crate) fn scale(&self) -> Scale {
        let scale = if self.quick { Scale::QUICK } else { Scale::FULL };
        match self.rounds {
            None => scale,
            Some(rounds) => {
                Scale { rounds, contended_rounds: rounds, long_rounds: rounds, fail_overs: rounds, ..scale }
            }
        }
    }
}

fn scenario(name: &str) -> Result<&'static Scenario, String> {
    let names = || ALL.map(|scenario| scenario.name).join(", ");
    Scenario::named(name).ok_or_else(|| format!("there are: {}", names()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
        let args = Args::parse_from(["bench", "--scenario", "one", "--scenario", "crash", "--rounds", "2"]);
        assert_eq!(args.scenarios().iter().map(|scenario| scenario.name).collect::<Vec<_>>(), ["one", "crash"]);
        assert_eq!((args.scale().rounds, args.scale().long_rounds), (2, 2));
        assert!(Args::try_parse_from(["bench", "--scenario", "two"]).is_err());
        let page = |words: &[&str]| Args::parse_from(words).page;
        assert_eq!(page(&["bench", "--page"]), Some("docs".into()));
        assert_eq!(page(&["bench", "--page=elsewhere"]), Some("elsewhere".into()));
    }
}
