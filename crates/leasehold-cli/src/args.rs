//! The command line.

mod help;
mod job;
mod limit;
mod mode;
mod store;
pub(crate) mod work;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use lock_core::{Invalid, LockName, parse_duration};

use self::help::{ELECT_EXAMPLES, ELECT_EXIT_CODES, EXAMPLES, EXIT_CODES, RUN_EXAMPLES};
use self::job::JobArgs;
pub(crate) use self::limit::LimitArgs;
use self::mode::ModeArgs;
pub(crate) use self::store::StoreArgs;
use self::work::WorkArgs;
use crate::demo::args::DemoArgs;
use crate::redis::args::RedisArgs;
use crate::redlock::args::RedlockArgs;

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
    /// Run a command while holding a lock.
    #[command(override_usage = "leasehold run [OPTIONS] NAME -- COMMAND [ARGUMENTS]...", after_help = RUN_EXAMPLES, after_long_help = format!("{RUN_EXAMPLES}\n\n{EXIT_CODES}"))]
    Run(Box<RunArgs>),
    /// Run a command while this machine is the leader, one of several machines that call this.
    ///
    /// It waits until it is elected, and starts the command. If the lease is lost, the command is ended before the lease can expire,
    /// and leasehold waits to be elected again. If the command ends by itself, leasehold resigns and ends as the command did.
    #[command(override_usage = "leasehold elect [OPTIONS] NAME -- COMMAND [ARGUMENTS]...", after_help = ELECT_EXAMPLES, after_long_help = format!("{ELECT_EXAMPLES}\n\n{ELECT_EXIT_CODES}"))]
    Elect(ElectArgs),
    /// List the locks that are held.
    ///
    /// In Redis, a lock of another library is listed only while a leasehold client waits for it; `leasehold show NAME`
    /// always shows it.
    Ls(LsArgs),
    /// Show who holds a lock.
    ///
    /// The exit code is 0 if the store answered, whether or not the lock is held; for scripts, --json has `held`. Otherwise it
    /// is 69, 77, 78, 64 or 125, as `leasehold run --help` explains.
    Show(ShowArgs),
    /// Change how many slots a semaphore has, also while commands hold them and wait for them.
    ///
    /// Nobody loses a slot. If there are fewer slots now, the next command starts once no more than those are taken. For seven
    /// days, commands that give a number of slots that was replaced run under the new one.
    ///
    /// The exit code is 0 if the number was changed. Otherwise it is 69, 77, 78, 64 or 125, as `leasehold run --help` explains;
    /// 78 also if the name is in use as a lock.
    #[command(
        after_help = "Example:\n  leasehold limit --from 4 gpu 8      from now on, `leasehold run --slots 4 gpu` runs at most 8 at a time"
    )]
    Limit(LimitArgs),
    /// Set up one Redis whose clients wait after a fail-over (failover=dwell).
    Redis(RedisArgs),
    /// Set up and manage a quorum of Redis servers (redlock:// URLs).
    Redlock(RedlockArgs),
    /// Show how simpler locks fail, and what each improvement prevents.
    #[command(after_help = "Examples:\n  leasehold demo account\n  leasehold demo cache")]
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

/// `leasehold run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) mode: ModeArgs,
    /// Fail at once if the lock is held.
    #[arg(short, long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Pass those who wait, if the lock is free for this command and they have no use for it.
    ///
    /// A reader joins other readers although a writer waits, and one slot is taken although a program waits for several. While
    /// such commands go on, those who are passed may wait without end.
    #[arg(long)]
    pub(crate) barging: bool,
    /// Wait at most this long for the lock and for an unreachable store [default: forever, but not at all for a store that is
    /// unreachable at the start]
    #[arg(short, long, value_name = "DURATION", value_parser = wait)]
    pub(crate) wait: Option<Duration>,
    /// Exit code when the lock is busy or the wait times out; 0 also suppresses the message.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = crate::exit::BUSY)]
    pub(crate) busy_code: u8,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// `leasehold elect`.
#[derive(Debug, Args)]
pub(crate) struct ElectArgs {
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// `leasehold ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print a JSON array instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Names to list: `*` matches any text, `?` matches one character.
    #[arg(value_name = "PATTERN", default_value = "*")]
    pub(crate) pattern: String,
}

/// `leasehold show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print a JSON object instead of the table; its field `held` says whether the lock is held.
    #[arg(long)]
    pub(crate) json: bool,
    /// The name of the lock.
    #[arg(value_name = "NAME")]
    pub(crate) name: LockName,
}

/// Parses a command line, which begins with the name of the program.
pub(crate) fn parse(line: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = Cli::command().try_get_matches_from(line)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let (Some(work), Some((task, matches))) = (cli.command.work(), matches.subcommand()) {
        refuse_name_after_dashes(line, task)?;
        work.shorten_default_ttl(matches);
    }
    Ok(cli)
}

/// The subcommands that run a command under a lock.
const WORK: [&str; 2] = ["run", "elect"];

/// Whether a command line asks for JSON, even if it is invalid otherwise.
pub(crate) fn asks_for_json(line: &[OsString]) -> bool {
    line.iter().take_while(|word| *word != OsStr::new("--")).any(|word| word == OsStr::new("--json"))
}

/// The report file that a command line names, even if it is invalid otherwise.
///
/// Counts only what is certainly our own option, because the file is overwritten.
pub(crate) fn report_file(line: &[OsString]) -> Option<PathBuf> {
    let mut line = line.to_vec();
    let lenient = || {
        let relaxed =
            |command: clap::Command, task| command.mut_subcommand(task, |task| task.mut_args(accept_anything));
        WORK.into_iter().fold(Cli::command(), relaxed)
    };
    while let Err(error) = lenient().try_get_matches_from(&line)
        && error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg)
        && let Some(position) = line.iter().position(|word| word == OsStr::new(unknown))
    {
        line.remove(position);
    }
    let matches = lenient().ignore_errors(true).try_get_matches_from(&line).ok()?;
    let (_, work) = matches.subcommand().filter(|(task, _)| WORK.contains(task))?;
    work.get_one::<OsString>("report").map(PathBuf::from)
}

fn accept_anything(argument: Arg) -> Arg {
    if argument.get_action().takes_values() {
        argument.value_parser(clap::builder::OsStringValueParser::new()).required(false)
    } else {
        argument
    }
}

/// `run -- make deploy` would lock "make" and run "deploy".
fn refuse_name_after_dashes(line: &[OsString], task: &str) -> Result<(), clap::Error> {
    let Some(dashes) = line.iter().position(|word| word == OsStr::new("--")) else { return Ok(()) };
    let Err(error) = Cli::command().try_get_matches_from(&line[..dashes]) else { return Ok(()) };
    let lacks_name = error.kind() == ErrorKind::MissingRequiredArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::Strings(missing)) if missing.iter().any(|argument| argument == "<NAME>"));
    if lacks_name {
        let problem = format!(
            "no name before `--`; the first argument is the name of the lock, and the command follows `--`\n\n\
             for example: leasehold {task} nightly-report -- ./report.sh"
        );
        return Err(Cli::command().error(ErrorKind::MissingRequiredArgument, problem));
    }
    Ok(())
}

impl Command {
    /// What a command is run with, if one is.
    fn work(&mut self) -> Option<&mut WorkArgs> {
        match self {
            Self::Run(args) => Some(&mut args.work),
            Self::Elect(args) => Some(&mut args.work),
            Self::Ls(_)
            | Self::Show(_)
            | Self::Limit(_)
            | Self::Redis(_)
            | Self::Redlock(_)
            | Self::Demo(_)
            | Self::Completions { .. } => None,
        }
    }

    /// Whether results and failures are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Run(args) => args.work.json,
            Self::Elect(args) => args.work.json,
            Self::Ls(args) => args.json,
            Self::Show(args) => args.json,
            Self::Limit(args) => args.json,
            Self::Redis(args) => args.json(),
            Self::Redlock(args) => args.json(),
            Self::Demo(_) | Self::Completions { .. } => false,
        }
    }
}

fn wait(text: &str) -> Result<Duration, Invalid> {
    parse_duration("wait", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_command_keeps_its_own_options() {
        let cli = Cli::try_parse_from(["leasehold", "run", "-n", "a", "make", "-j4", "--ttl", "x"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!(run.work.command, ["make", "-j4", "--ttl", "x"]);
        assert!(run.no_wait);
        let cli = Cli::try_parse_from(["leasehold", "run", "a", "-w", "5s", "--", "-strange", "--"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!(run.work.command, ["-strange", "--"]);
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
    fn a_report_is_found_on_invalid_lines_and_never_among_the_words_of_the_command() {
        let asked = |line: &str| report_file(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in [
            "leasehold run --report f a -- true",
            "leasehold run --report=f",
            "leasehold run --ttl soon --report f a -- true",
            "leasehold run -n -w 3s --report f a -- true",
            "leasehold run --strange --report f -E 999 a true",
            "leasehold run a --report f",
            "leasehold run --report f --strange a -- make --report g",
        ] {
            assert_eq!(asked(line), Some("f".into()), "{line}");
        }
        for line in [
            "leasehold run --ttl soon a make --report f",
            "leasehold run --strange a -- make --report f",
            "leasehold run -- make --report f",
            "leasehold ls --report f",
            "leasehold run --report",
            "leasehold",
        ] {
            assert_eq!(asked(line), None, "{line}");
        }
    }

    #[test]
    fn the_default_ttl_fits_the_deployment() {
        let ttl = |line: &str| {
            let cli = parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).unwrap();
            let Command::Run(run) = cli.command else { panic!("not run") };
            run.work.ttl.get().as_secs()
        };
        assert_eq!(ttl("leasehold run --url redlock://a,b,c?max_ttl=20s x true"), 20);
        assert_eq!(ttl("leasehold run --url redlock://a,b,c?max_ttl=20s --ttl 30s x true"), 30);
        assert_eq!(ttl("leasehold run --url redlock://a,b,c x true"), 30);
        assert_eq!(ttl("leasehold run --url redis://a?failover=dwell&max_ttl=20s x true"), 20);
        assert_eq!(ttl("leasehold run --url redis://a?failover=dwell x true"), 30);
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
