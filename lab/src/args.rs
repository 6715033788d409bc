//! The command line.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Parser, Subcommand, value_parser};

use crate::failures::scenes::SCENES;
use crate::shared::tell::Form;

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

const HELP: &str = "\
Examples:
  cargo xtask lab account
  cargo xtask lab cache
  cargo xtask lab paused-holder
  cargo xtask lab all --open

All but account and cache start servers of their own, which `cargo xtask servers` installs. Some need a C compiler.";

/// Shows how simpler locks fail, and what each improvement prevents.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask lab", after_help = HELP)]
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
    /// One failure, without the protection and with it.
    #[command(flatten)]
    Failure(FailureScene),
    /// Play all failures, and write a page with their timelines.
    All(AllArgs),
    /// A process with workers of its own, which a scene starts.
    #[command(hide = true)]
    Worker,
    /// A process that holds a lock, which a scene starts.
    #[command(hide = true)]
    Holder,
}

/// `cargo xtask lab NAME`: a subcommand for each of the failures.
#[derive(Debug)]
pub(crate) struct FailureScene {
    pub(crate) name: String,
    pub(crate) args: FailureArgs,
}

/// Options of each failure.
#[derive(Debug, Args)]
pub(crate) struct FailureArgs {
    /// Folder for the pictures [default: target/lab]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Print the recorded histories as JSON instead of the story.
    #[arg(long)]
    json: bool,
}

impl FailureArgs {
    /// How the story is told.
    pub(crate) fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }
}

/// `cargo xtask lab all`.
#[derive(Debug, Args)]
pub(crate) struct AllArgs {
    #[command(flatten)]
    pub(crate) failure: FailureArgs,
    /// Open the page in a browser.
    #[arg(long)]
    pub(crate) open: bool,
}

impl FromArgMatches for FailureScene {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (name, matches) = matches.subcommand().ok_or_else(|| Error::new(ErrorKind::MissingSubcommand))?;
        Ok(Self { name: name.to_owned(), args: FailureArgs::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for FailureScene {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(SCENES.map(|scene| FailureArgs::augment_args(Command::new(scene.name)).about(scene.title)))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        SCENES.iter().any(|scene| scene.name == name)
    }
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
