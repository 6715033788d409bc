//! The command line.

use clap::{Args, Parser, Subcommand, value_parser};

const EXAMPLES: &str = "\
Examples:
  cargo xtask lab account                              in a temporary file
  cargo xtask lab account --url redis://127.0.0.1      the same on Redis
  cargo xtask lab account --workers 3 --deposits 1 --json | jq .stages

The scene uses its own account and lock names and removes them at the end. The store's counter of fencing tokens \
advances, as with every use. LEASEHOLD_URL is ignored, so that no scene is played on a production store by accident. \
Pass a URL that contains a password in LEASEHOLD_LAB_URL.";

const CACHE_EXAMPLES: &str = "\
Examples:
  cargo xtask lab cache                        locks in a temporary file
  cargo xtask lab cache --callers 64
  cargo xtask lab cache --url redis://127.0.0.1 --json | jq '.stages[].calls'

The cache and the database are played: they are in the memory of this program. The locks are real, and released at the end. \
LEASEHOLD_URL is ignored, so that no scene is played on a production store by accident. Pass a URL that contains a password in \
LEASEHOLD_LAB_URL.";

/// Shows how simpler locks fail, and what each improvement prevents.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask lab", after_help = "Examples:\n  cargo xtask lab account\n  cargo xtask lab cache")]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) scene: Scene,
}

/// What is shown.
#[derive(Debug, Subcommand)]
pub(crate) enum Scene {
    /// Let many workers pay into one account under twenty kinds of lock, from none to fencing tokens.
    #[command(after_help = EXAMPLES)]
    Account(AccountArgs),
    /// Let many callers miss a cache at the same time, with and without single flight.
    #[command(after_help = CACHE_EXAMPLES)]
    Cache(CacheArgs),
    /// A process with workers of its own, which a scene starts.
    #[command(hide = true)]
    Worker,
}

/// `cargo xtask lab account`.
#[derive(Debug, Args)]
pub(crate) struct AccountArgs {
    /// Number of workers that pay in at the same time: 2 to 64.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u32).range(2..=64))]
    pub(crate) workers: u32,
    /// Number of deposits of each worker: 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    pub(crate) deposits: u32,
    /// URL of the store, such as redis://host or sqlite:/path/to/file [default: a temporary file]
    #[arg(long, value_name = "URL", env = "LEASEHOLD_LAB_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// Print a JSON object instead of the story.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `cargo xtask lab cache`.
#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// Number of callers that ask at the same time: 8 to 64.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u32).range(8..=64))]
    pub(crate) callers: u32,
    /// URL of the store of the locks, such as redis://host or sqlite:/path/to/file [default: a temporary file]
    #[arg(long, value_name = "URL", env = "LEASEHOLD_LAB_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// Print a JSON object instead of the story.
    #[arg(long)]
    pub(crate) json: bool,
}
