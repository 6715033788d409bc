//! The command line of `leasehold demo`.

use clap::{Args, Subcommand, value_parser};

const EXAMPLES: &str = "\
Examples:
  leasehold demo account                              on a file of its own, removed at the end
  leasehold demo account --url redis://127.0.0.1      the same on Redis
  leasehold demo account --workers 3 --deposits 1 --json | jq .stages

The accounts and locks of the demo have names of their own and are removed at the end. The store's counter of fencing \
tokens moves on, as with every use. LEASEHOLD_URL is not looked at, so that nobody shows this on a store in use by \
accident; give a URL that holds a password by LEASEHOLD_DEMO_URL.";

/// `leasehold demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(subcommand)]
    pub(crate) story: Story,
}

/// What is shown.
#[derive(Debug, Subcommand)]
pub(crate) enum Story {
    /// Many workers pay into one account, under eight kinds of locks, from none to fencing tokens.
    #[command(after_help = EXAMPLES)]
    Account(AccountArgs),
}

/// `leasehold demo account`.
#[derive(Debug, Args)]
pub(crate) struct AccountArgs {
    /// How many workers pay in at the same time: 2 to 64.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u32).range(2..=64))]
    pub(crate) workers: u32,
    /// How many deposits each of them makes: 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u32).range(1..=100))]
    pub(crate) deposits: u32,
    /// The store, such as redis://host or sqlite:/path/to/file; without one, a file that is removed at the end.
    #[arg(long, value_name = "URL", env = "LEASEHOLD_DEMO_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// Print one JSON object in place of the story.
    #[arg(long)]
    pub(crate) json: bool,
}
