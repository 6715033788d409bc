//! The command line.

mod breaking;
mod dashboard;
mod doctor;
mod every;
mod filled;
mod help;
mod job;
mod limit;
pub(crate) mod line;
mod listing;
mod mode;
mod store;
mod tips;
mod watching;
pub(crate) mod work;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::breaking::{BreakArgs, token};
pub(crate) use self::dashboard::DashboardArgs;
pub(crate) use self::doctor::DoctorArgs;
use self::help::{ELECT_EXAMPLES, ELECT_EXIT_CODES, EXAMPLES, EXIT_CODES, RUN_EXAMPLES};
use self::job::JobArgs;
pub(crate) use self::limit::LimitArgs;
pub(crate) use self::listing::{LsArgs, ShowArgs, Sort};
use self::mode::ModeArgs;
pub(crate) use self::store::StoreArgs;
pub(crate) use self::watching::WatchArgs;
use self::work::WorkArgs;
use crate::base::{Etcd, Zookeeper};
use crate::durations::duration;
use crate::redis::Redis;
use crate::redlock::args::Redlock;
use crate::setup::{Mysql, Postgres};

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
    /// Run a command while this machine is the elected leader.
    ///
    /// Several machines call this. Each waits until it is elected, and starts the command. If the lease cannot be renewed, the command is ended before the lease
    /// can expire, and leasehold waits to be elected again. That does not cover a lock that an operator breaks, or processes that have left
    /// the command's group. If the command ends by itself, leasehold resigns and ends as the command did.
    #[command(override_usage = "leasehold elect [OPTIONS] NAME -- COMMAND [ARGUMENTS]...", after_help = ELECT_EXAMPLES, after_long_help = format!("{ELECT_EXAMPLES}\n\n{ELECT_EXIT_CODES}"))]
    Elect(ElectArgs),
    /// List the locks that are held.
    ///
    /// HELD says for how long, to the second, as far as the clocks of the machines agree. It is empty for a lease of an earlier
    /// version, and for a lock of another library.
    ///
    /// In Redis, a lock of another library is listed only while a leasehold client waits for it; `leasehold show NAME`
    /// always shows it.
    Ls(LsArgs),
    /// Show who holds a lock.
    ///
    /// The exit code is 0 if the store answered, whether or not the lock is held; for scripts, --json has `held`. Otherwise it
    /// is 69, 77, 78, 64 or 125, as `leasehold run --help` explains.
    Show(ShowArgs),
    /// Print what happens to locks, one line for each event.
    ///
    /// It goes on until it is ended, as with Ctrl-C.
    ///
    /// The events are acquired, queued (more wait than before), released, lost (the lease ended by time) and broken (by leasehold
    /// break). What is held at the start is printed as acquired, too, with "already". A lock whose last holder had it kept, and a
    /// lock of another library, may end as lost.
    ///
    /// It looks at the store and compares what it finds, so it misses what begins and ends between two looks: a short hold, or a
    /// waiter that got the lock at once. Look more often with --every to miss less. A lock that its holder passes on inside its
    /// process stays with one lease, and is one event. In Redis, locks of other libraries are seen only while a leasehold client
    /// waits for them. Of a lock with more than a hundred holders, only the queue is watched.
    ///
    /// If the store is away, that is said once on standard error, and it is looked for again. What ended meanwhile is "ended":
    /// nobody saw how. The exit code is 0 if the reader of a pipe has ended.
    #[command(
        after_help = "Examples:\n  leasehold watch                             all locks\n  leasehold watch --every 200ms 'invoice:*'   some of them, more often\n  leasehold watch --json | jq -c 'select(.event == \"lost\")'"
    )]
    Watch(WatchArgs),
    /// Show what is held on a live page, in a browser of this machine.
    ///
    /// It shows locks, holders, tokens, what remains of each lease, and queues; of a quorum also its nodes; and what happened while the
    /// page was open, as far as `leasehold watch` could tell. The store is read only while a page is open and visible. Nothing can be
    /// changed there.
    ///
    /// The page has no login, so every user of this machine can read it, and it is served on loopback addresses only. From another
    /// machine, use ssh -L 7373:127.0.0.1:7373 HOST.
    ///
    /// If the store is away, the page says so, and goes on when it is back. At the start, that is exit code 69. It is 64 if the address
    /// is in use, 78 if it is not a loopback address, and 77, 78 or 125 as `leasehold run --help` explains.
    #[command(
        after_help = "Examples:\n  leasehold dashboard                        all locks: http://127.0.0.1:7373/\n  leasehold dashboard 'invoice:*'            some of them\n  leasehold dashboard --listen 127.0.0.1:0   on any free port"
    )]
    Dashboard(DashboardArgs),
    /// End another process's lease, so that its lock is free.
    ///
    /// For a holder that hangs: one that has died loses its lock by itself, once its ttl is over. The lease is ended only if it still
    /// has the token, so a later holder is never hit. Of a lock that several hold, only the lease with the token is ended.
    ///
    /// The holder learns of it when it renews its lease, at the latest at a third of the ttl. `leasehold run` then ends its command and
    /// exits with 76. Until then, the holder may go on working beside the next one; where tokens are checked, its writes are refused.
    ///
    /// A quorum ends a lease once a majority of its nodes has answered. If too few do, repeat it with the same token. A claim of an earlier version
    /// that is still in flight is not refused there: check with `leasehold show`.
    ///
    /// The exit code is 0 if the lease was ended, and 1 if nothing was changed: the lock is not held, or not with this token, or you
    /// answered no. Otherwise it is 69, 77, 78, 64 or 125, as `leasehold run --help` explains.
    #[command(
        override_usage = "leasehold break [OPTIONS] --token <N> <NAME>",
        after_help = "Examples:\n  leasehold show deploy                                   prints the token\n  leasehold break deploy --token 1795295642004295         asks, then ends it\n  leasehold break deploy --token 1795295642004295 --yes   for scripts"
    )]
    Break(BreakArgs),
    /// Change how many slots a semaphore has.
    ///
    /// Commands may hold slots and wait for them meanwhile. Nobody loses a slot. If there are fewer slots now, the next command starts once no more than those are taken. For seven
    /// days, commands that give a number of slots that was replaced run under the new one.
    ///
    /// The exit code is 0 if the number was changed. Otherwise it is 69, 77, 78, 64 or 125, as `leasehold run --help` explains;
    /// 78 also if the name is in use as a lock.
    #[command(after_help = "Example:\n  leasehold limit --from 4 gpu 8      run --slots 4 gpu now runs 8 at a time")]
    Limit(LimitArgs),
    /// Check whether the store can be reached, used and relied on.
    ///
    /// It says what endangers locks there, and what to do about it. It acquires, renews and releases a lock of its own. With NAME, it also watches that lock, and suggests a ttl.
    ///
    /// The exit code is 0 if nothing endangers locks, 78 if something does or the configuration is invalid, 69 if the store is
    /// unreachable or cannot serve, and 77 if it refuses this client.
    #[command(
        after_help = "Examples:\n  leasehold doctor                          the store in force\n  leasehold doctor --url redis://db1        another one\n  leasehold doctor --for 10m nightly        also a ttl for this lock"
    )]
    Doctor(DoctorArgs),
    #[command(flatten)]
    Aside(Aside),
}

/// Commands that use no store in force: setting up stores, and texts.
#[derive(Debug, Subcommand)]
pub(crate) enum Aside {
    /// Set up MySQL or MariaDB for clients that may not create tables.
    #[command(subcommand)]
    Mysql(Mysql),
    /// Set up PostgreSQL for clients that may not create a schema.
    #[command(subcommand)]
    Postgres(Postgres),
    /// Set up a Redis whose clients wait after a fail-over.
    #[command(subcommand)]
    Redis(Redis),
    /// Set up and manage a quorum of Redis servers (redlock:// URLs).
    #[command(subcommand)]
    Redlock(Redlock),
    /// Manage the fencing tokens of a ZooKeeper ensemble.
    #[command(subcommand)]
    Zookeeper(Zookeeper),
    /// Manage the fencing tokens of an etcd cluster.
    #[command(subcommand)]
    Etcd(Etcd),
    /// Print the manual page, or write all pages to a directory.
    #[command(after_help = "Example:\n  leasehold man --out ~/.local/share/man/man1      then: man leasehold-run")]
    Man {
        /// The directory; it is created if needed.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Print a completion script for a shell.
    #[command(after_help = "Example:\n  leasehold completions bash >> ~/.bash_completion")]
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
    /// unreachable at the start] [env: LEASEHOLD_WAIT]
    #[arg(short, long, value_name = "DURATION", value_parser = duration("wait"))]
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

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    mod pages;

    use clap::CommandFactory;

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
    fn what_cannot_be_is_refused() {
        for bad in [
            &["run", "a"][..],
            &["run", "leasehold:x", "true"],
            &["run", "--ttl", "soon", "a", "true"],
            &["run", "-n", "-w", "1s", "a", "true"],
            &["run", "--why", "a\nb", "a", "true"],
            &["run", "-E", "256", "a", "true"],
            &["ls", "--every", "200ms"],
        ] {
            let line = std::iter::once("leasehold").chain(bad.iter().copied());
            assert!(Cli::try_parse_from(line).is_err(), "{bad:?}");
        }
        for good in [&["ls"][..], &["ls", "--watch", "--every", "200ms"], &["watch", "--every", "200ms"]] {
            let line = std::iter::once("leasehold").chain(good.iter().copied());
            assert!(Cli::try_parse_from(line).is_ok(), "{good:?}");
        }
    }
}
