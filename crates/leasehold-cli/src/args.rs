//! The command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use leasehold::redlock::RedlockConfig;
use lock_core::{Invalid, LockName, Note, Ttl, parse_duration};

use crate::demo::args::DemoArgs;
use crate::redlock::args::RedlockArgs;

const EXIT_CODES: &str = "\
Exit codes:
  the command's own code, or 128+n if signal n ended it
  75   somebody else holds the lock, or the wait is over (see --busy-code)
  76   the lease was lost before the command ended, whatever its own code
  69   the store cannot be reached, does not answer in time, its disk is full, or too few nodes of
       its quorum vote yet
  77   the store refuses this client, or is read-only
  78   the configuration or the URL cannot work
  64   the command line cannot be understood
  126  the command cannot be executed      127  there is no such command
  130  Ctrl-C while waiting                125  leasehold itself failed";

const RUN_EXAMPLES: &str = "\
Examples:
  leasehold run nightly-backup -- ./backup.sh         wait for the lock, then run
  leasehold run -n deploy -- make deploy              give up at once if it is held (exit code 75)
  leasehold run -n -E 0 sync -- ./sync.sh             for cron: skip this time, without a complaint
  leasehold run -w 5m --why 'release 1.4' deploy -- ./deploy.sh
  LEASEHOLD_URL=redis://db1 leasehold run report -- sh -c './report --fence \"$LEASEHOLD_FENCE\"'

The command receives LEASEHOLD_NAME, LEASEHOLD_FENCE (the fencing token), LEASEHOLD_TTL_MS and LEASEHOLD_HELD in its \
environment.

It runs in a process group of its own, which is dead before the lease can expire, even if leasehold is killed or \
stopped: SIGTERM first, SIGKILL after the grace. What the command leaves running in its group is ended with it. \
Processes that left the group (setsid, daemons, the jobs of an interactive shell) or run as another user are not ended.";

const EXAMPLES: &str = "\
Examples:
  leasehold run nightly-backup -- ./backup.sh         run a command while holding a lock
  leasehold ls                                        who holds what
  leasehold show nightly-backup                       one lock

Without a URL, locks are kept in a per-user file: they exclude all your processes on this machine. To lock across \
machines, set --url or LEASEHOLD_URL, such as redis://host.";

/// Runs commands under distributed locks.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Hold a lock while a command runs.
    #[command(override_usage = "leasehold run [OPTIONS] NAME -- COMMAND [ARGUMENTS]...", after_help = RUN_EXAMPLES, after_long_help = format!("{RUN_EXAMPLES}\n\n{EXIT_CODES}"))]
    Run(RunArgs),
    /// List the locks that are held.
    Ls(LsArgs),
    /// Show who holds a lock.
    Show(ShowArgs),
    /// Set up a quorum of Redis servers, and look after it (redlock:// URLs).
    Redlock(RedlockArgs),
    /// Show why locks are built as they are.
    #[command(after_help = "Example:\n  leasehold demo account")]
    Demo(DemoArgs),
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  leasehold completions bash > ~/.local/share/bash-completion/completions/leasehold"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// Where the locks are.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// The store; give a URL that holds a password by the environment instead.
    ///
    /// For instance redis://host, redlock://host,host,host, sqlite:/path/to/file. Without one, a file in your state directory:
    /// $XDG_STATE_HOME/leasehold/locks.db, or ~/.local/state/leasehold/locks.db.
    #[arg(long, value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
}

/// `leasehold run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Give up at once if the lock is held.
    #[arg(short, long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Wait at most this long for the lock, and for a store that cannot be reached. Without it: forever for the lock, not
    /// at all for the store.
    #[arg(short, long, value_name = "DURATION", value_parser = wait)]
    pub(crate) wait: Option<Duration>,
    /// The exit code when the lock is busy or the wait is over; with 0, no message is printed either.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = crate::exit::BUSY)]
    pub(crate) busy_code: u8,
    /// How long the store keeps the lock after this machine falls silent.
    #[arg(long, value_name = "DURATION", default_value_t = Ttl::DEFAULT, value_parser = ttl, help = ttl_help())]
    pub(crate) ttl: Ttl,
    /// How long the command has between SIGTERM and SIGKILL when the lease is lost [default: a sixth of the ttl, at most
    /// 5s]
    #[arg(long, value_name = "DURATION", value_parser = grace)]
    pub(crate) grace: Option<Duration>,
    /// Why the lock is held, for whoever waits.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = why)]
    pub(crate) why: String,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print no messages at all.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say what is being done.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print the outcome as one line of JSON on standard error, in place of messages.
    ///
    /// The command writes to standard error as well: see --report.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the outcome as one line of JSON to this file, messages or not.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// The name of the lock.
    #[arg(value_name = "NAME")]
    pub(crate) name: LockName,
    /// The command and its arguments, preferably after `--`.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,
}

/// `leasehold ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print one JSON array in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Which names: `*` stands for any text, `?` for one character.
    #[arg(value_name = "PATTERN", default_value = "*")]
    pub(crate) pattern: String,
}

/// `leasehold show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print one JSON object in place of the table; its `held` says whether anybody holds the lock.
    #[arg(long)]
    pub(crate) json: bool,
    /// The name of the lock.
    #[arg(value_name = "NAME")]
    pub(crate) name: LockName,
}

/// Parses a command line, its first word being the program.
pub(crate) fn parse(line: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = Cli::command().try_get_matches_from(line)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let (Command::Run(run), Some((_, matches))) = (&mut cli.command, matches.subcommand()) {
        refuse_name_after_dashes(line)?;
        run.shorten_default_ttl(matches);
    }
    Ok(cli)
}

/// Whether JSON was asked for, on a command line that need not make sense.
pub(crate) fn asks_for_json(line: &[OsString]) -> bool {
    line.iter().take_while(|word| *word != OsStr::new("--")).any(|word| word == OsStr::new("--json"))
}

/// `run -- make deploy` would lock "make" and run "deploy".
fn refuse_name_after_dashes(line: &[OsString]) -> Result<(), clap::Error> {
    let Some(dashes) = line.iter().position(|word| word == OsStr::new("--")) else { return Ok(()) };
    let Err(error) = Cli::command().try_get_matches_from(&line[..dashes]) else { return Ok(()) };
    let lacks_name = error.kind() == ErrorKind::MissingRequiredArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::Strings(missing)) if missing.iter().any(|argument| argument == "<NAME>"));
    if lacks_name {
        let problem = "no name before `--`; the first argument is the name of the lock, and the command follows `--`\n\n\
                       for example: leasehold run nightly-report -- ./report.sh";
        return Err(Cli::command().error(ErrorKind::MissingRequiredArgument, problem));
    }
    Ok(())
}

impl RunArgs {
    /// A deployment with a `max_ttl` below the default ttl is used with that, unless a ttl was given.
    fn shorten_default_ttl(&mut self, matches: &ArgMatches) {
        let url = self.store.url.as_deref().unwrap_or_default();
        if matches.value_source("ttl") == Some(ValueSource::DefaultValue)
            && url.starts_with("redlock:")
            && let Ok(config) = RedlockConfig::from_url(url)
        {
            self.ttl = self.ttl.min(config.max_ttl());
        }
    }
}

impl Command {
    /// Whether results and failures are told as JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Run(args) => args.json,
            Self::Ls(args) => args.json,
            Self::Show(args) => args.json,
            Self::Redlock(args) => args.json(),
            Self::Demo(_) | Self::Completions { .. } => false,
        }
    }
}

fn wait(text: &str) -> Result<Duration, Invalid> {
    parse_duration("wait", text)
}

fn ttl(text: &str) -> Result<Ttl, Invalid> {
    Ttl::new(parse_duration("ttl", text)?).map_err(|_| {
        let problem = format!("it is not between {} (the smallest without --grace) and 365 days", smallest_ttl());
        Invalid::new("ttl", text, problem, "give a duration such as 30s; the lease is renewed while the command runs")
    })
}

fn ttl_help() -> String {
    format!(
        "How long the store keeps the lock after this machine falls silent; {} or more, unless --grace is given; the \
         command may run longer, as the lease is renewed",
        smallest_ttl()
    )
}

fn smallest_ttl() -> Ttl {
    crate::run::smallest_ttl(None).unwrap_or(Ttl::DEFAULT)
}

fn grace(text: &str) -> Result<Duration, Invalid> {
    parse_duration("grace", text)
}

fn why(text: &str) -> Result<String, Invalid> {
    Note::new("", 0, text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_the_smallest_ttl_that_is_taken() {
        let smallest = crate::run::smallest_ttl(None).unwrap();
        assert!(ttl_help().contains(&format!("; {smallest} or more")), "{}", ttl_help());
        let refusal = ttl("1ms").unwrap_err().to_string();
        assert!(refusal.contains(&format!("between {smallest} ")), "{refusal}");
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_command_keeps_its_own_options() {
        let cli = Cli::try_parse_from(["leasehold", "run", "-n", "a", "make", "-j4", "--ttl", "x"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!(run.command, ["make", "-j4", "--ttl", "x"]);
        assert!(run.no_wait);
        let cli = Cli::try_parse_from(["leasehold", "run", "a", "-w", "5s", "--", "-strange", "--"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!(run.command, ["-strange", "--"]);
        assert_eq!(run.wait, Some(Duration::from_secs(5)));
    }

    #[test]
    fn the_name_stands_before_the_dashes() {
        let parsed = |line: &str| parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for good in ["leasehold run -n a -- make", "leasehold run a make -- x", "leasehold run -w 5s a -q -- make"] {
            assert!(parsed(good).is_ok(), "{good}");
        }
        for bad in ["leasehold run -n -- make deploy", "leasehold run -- a make", "leasehold run --ttl 9s -- a b"] {
            let error = parsed(bad).unwrap_err().to_string();
            assert!(error.contains("no name before `--`"), "{error}");
        }
    }

    #[test]
    fn the_default_ttl_fits_the_deployment() {
        let ttl = |line: &str| {
            let cli = parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).unwrap();
            let Command::Run(run) = cli.command else { panic!("not run") };
            run.ttl.get().as_secs()
        };
        assert_eq!(ttl("leasehold run --url redlock://a,b,c?max_ttl=20s x true"), 20);
        assert_eq!(ttl("leasehold run --url redlock://a,b,c?max_ttl=20s --ttl 30s x true"), 30);
        assert_eq!(ttl("leasehold run --url redlock://a,b,c x true"), 30);
        assert_eq!(ttl("leasehold run --url redis://a x true"), 30);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for bad in [
            &["run", "a"][..],
            &["run", "leasehold:x", "true"],
            &["run", "--ttl", "soon", "a", "true"],
            &["run", "-n", "-w", "1s", "a", "true"],
            &["run", "--why", "a\nb", "a", "true"],
            &["run", "-E", "256", "a", "true"],
        ] {
            let line = std::iter::once("leasehold").chain(bad.iter().copied());
            assert!(Cli::try_parse_from(line).is_err(), "{bad:?}");
        }
    }
}
