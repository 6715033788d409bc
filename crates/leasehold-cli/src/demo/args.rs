//! The command line of `leasehold demo`.

use clap::{Args, Subcommand, value_parser};

const EXAMPLES: &str = "\
Examples:
  leasehold demo account                              in a temporary file
  leasehold demo account --url redis://127.0.0.1      the same on Redis
  leasehold demo account --workers 3 --deposits 1 --json | jq .stages

The demo uses its own account and lock names and removes them at the end. The store's counter of fencing tokens \
advances, as with every use. LEASEHOLD_URL is ignored, so that the demo does not run on a production store by accident. \
Pass a URL that contains a password in LEASEHOLD_DEMO_URL.";

const CACHE_EXAMPLES: &str = "\
Examples:
  leasehold demo cache                        locks in a temporary file
  leasehold demo cache --callers 64
  leasehold demo cache --url redis://127.0.0.1 --json | jq '.stages[].calls'

The cache and the database are played: they are in the memory of this command. The locks are real, and released at the end. \
LEASEHOLD_URL is ignored, so that the demo does not run on a production store by accident. Pass a URL that contains a password in \
LEASEHOLD_DEMO_URL.";

/// `leasehold demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(subcommand)]
    pub(crate) story: Story,
}

/// What is shown.
#[derive(Debug, Subcommand)]
pub(crate) enum Story {
    /// Let many workers pay into one account under twenty kinds of lock, from none to fencing tokens.
    #[command(after_help = EXAMPLES)]
    Account(AccountArgs),
    /// Let many callers miss a cache at the same time, with and without single flight.
    #[command(after_help = CACHE_EXAMPLES)]
    Cache(CacheArgs),
}

/// `leasehold demo account`.
#[derive(Debug, Args)]
pub(crate) struct AccountArgs {
    /// Number of workers that pay in at the same time: 2 to 64.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u32).range(2..=64))]
    pub(crate) workers: u32,
    /// Number of deposits of each worker: 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    pub(crate) deposits: u32,
    /// URL of the store, such as redis://host or sqlite:/path/to/file [default: a temporary file]
    #[arg(long, value_name = "URL", env = "LEASEHOLD_DEMO_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// Print a JSON object instead of the story.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `leasehold demo cache`.
#[derive(Debug, Args)]
pub(crate) struct CacheArgs {
    /// Number of callers that ask at the same time: 8 to 64.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u32).range(8..=64))]
    pub(crate) callers: u32,
    /// URL of the store of the locks, such as redis://host or sqlite:/path/to/file [default: a temporary file]
    #[arg(long, value_name = "URL", env = "LEASEHOLD_DEMO_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// Print a JSON object instead of the story.
    #[arg(long)]
    pub(crate) json: bool,
}
