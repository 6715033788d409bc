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
use self::help::{ELECT_EXAMPLES, ELECT_EXIT_CODES, EXAMPLES, EXIT_CODES, RUN_EXAMPLES, SHOW_FIELDS};
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
    /// Run it on several machines. Each waits until it is elected, and then starts the command. If leasehold cannot renew the lease, it
    /// stops the command before the lease can expire, and waits to be elected again. That does not cover a lock that an operator breaks,
    /// or processes that have left the command's group. If the command ends by itself, leasehold resigns and ends as the command did.
    #[command(override_usage = "leasehold elect [OPTIONS] NAME -- COMMAND [ARGUMENTS]...", after_help = ELECT_EXAMPLES, after_long_help = format!("{ELECT_EXAMPLES}\n\n{ELECT_EXIT_CODES}"))]
    Elect(ElectArgs),
    /// List the locks that are held.
    ///
    /// HELD is the age of the lease, to the second. A renewal or an adopted ticket does not start a new lease; an upgrade or a downgrade
    /// does. On Redis and on a quorum, the holder's machine times the grant, or the server if it handed the lock over, so HELD is only as
    /// exact as their clocks. It is empty for a lock of another library, and on ZooKeeper except for semaphores.
    ///
    /// On a narrow terminal, long names, holders and reasons are cut, and columns are left out; the last line says which, or how many.
    /// `leasehold show` cuts nothing. The fields of --json are those of `leasehold show --json`.
    ///
    /// On Redis, a lock of another library is listed only while a leasehold client waits for it; `leasehold show NAME` always shows it.
    Ls(LsArgs),
    /// Show who holds a lock.
    ///
    /// The exit code is 0 if the store answered, whether or not the lock is held; for scripts, --json has `held`. Otherwise it
    /// is 69, 77, 78, 64 or 125, as `leasehold run --help` explains.
    #[command(after_long_help = SHOW_FIELDS)]
    Show(ShowArgs),
    /// Print what happens to locks, one line for each event.
    ///
    /// It runs until it is interrupted, for example by Ctrl-C.
    ///
    /// The events are acquired, queued (more waiters than before), released, lost (the lease expired) and broken (by leasehold break).
    /// Locks that are held at the start are printed as acquired, with "already". A lock that was kept after its release, and a lock of
    /// another library, may end as lost.
    ///
    /// `watch` polls and compares snapshots, so it misses anything that starts and ends between two polls: a short hold, or a waiter
    /// that got the lock at once. To miss less, poll more often with --every. A lock that its holder passes on inside its process keeps
    /// one lease, and is one event. On Redis, locks of other libraries are visible only while a leasehold client waits for them. A lock
    /// with more than a hundred holders has events of its queue only.
    ///
    /// If the store becomes unreachable, `watch` says so once on standard error and keeps retrying. A lock that ended in that time is
    /// printed as "ended", because the cause is unknown. The exit code is 0 if the reader of a pipe has ended.
    #[command(
        after_help = "Examples:\n  leasehold watch                             all locks\n  leasehold watch --every 200ms 'invoice:*'   some of them, more often\n  leasehold watch --json | jq -c 'select(.event == \"lost\")'"
    )]
    Watch(WatchArgs),
    /// Serve a live page of the locks to browsers of this machine.
    ///
    /// The page shows locks, holders, tokens, the remaining time of each lease, and queues; on a quorum, it also shows the nodes. Its
    /// history has the events since it was opened, with the limits of `leasehold watch`. The page is read-only, and reads the store only
    /// while it is open and visible.
    ///
    /// The page has no login, so every user of this machine can read it, and it is served on loopback addresses only. From another
    /// machine, use ssh -L 7373:127.0.0.1:7373 HOST.
    ///
    /// If the store becomes unreachable, the page says so and keeps retrying. If it is unreachable at the start, the exit code is 69. It
    /// is 64 if the address is in use, 78 if it is not a loopback address, and 77, 78 or 125 as `leasehold run --help` explains.
    #[command(
        after_help = "Examples:\n  leasehold dashboard                        all locks: http://127.0.0.1:7373/\n  leasehold dashboard 'invoice:*'            some of them\n  leasehold dashboard --listen 127.0.0.1:0   on any free port"
    )]
    Dashboard(DashboardArgs),
    /// End another process's lease, so that its lock is free.
    ///
    /// Use it for a holder that hangs: the lock of a dead holder becomes free when its ttl has passed. `break` ends only the lease with
    /// the token, in one step, so it cannot hit a later holder. Other holders of the lock keep theirs.
    ///
    /// The holder learns of it at its next renewal, at most a third of the ttl later. Redis notifies it within about a second: that works
    /// for `leasehold run` and `elect`, and for programs with threads, with tokio over RESP3, or with a pool and `push`. `leasehold run`
    /// then stops its command and exits with 76. Until then, the holder may work beside the next one. Where tokens are checked, its writes
    /// are refused once the next holder has raised the fence.
    ///
    /// On a quorum, a majority of the nodes has to answer. If too few do, repeat the command with the same token. `break` cannot end a
    /// lock of another library on ZooKeeper or etcd, or one with an open fenced transaction.
    ///
    /// The exit code is 0 if the lease was ended, and 1 if nothing was changed: the lock is not held, or not with this token, or you
    /// answered no. Otherwise it is 69, 77, 78, 64 or 125, as `leasehold run --help` explains.
    #[command(
        override_usage = "leasehold break [OPTIONS] <NAME>",
        after_help = "Examples:\n  leasehold break deploy                                  shows it and asks\n  leasehold show deploy                                   prints the token\n  leasehold break deploy --token 1795295642004295         asks, then ends it\n  leasehold break deploy --token 1795295642004295 --yes   for scripts"
    )]
    Break(BreakArgs),
    /// Change the number of slots of a semaphore.
    ///
    /// Commands may hold slots and wait for them, and none loses its slot. If there are fewer slots now, the next command starts once usage
    /// has dropped below the new number. For seven days, commands with a replaced number of slots run under the new one.
    ///
    /// The exit code is 0 if the number was changed, and 78 if the name is in use as a lock. Otherwise it is 69, 77, 78, 64 or 125, as
    /// `leasehold run --help` explains.
    #[command(after_help = "Example:\n  leasehold limit --from 4 gpu 8      run --slots 4 gpu now runs 8 at a time")]
    Limit(LimitArgs),
    /// Check whether the store can be reached, used and relied on.
    ///
    /// It acquires, renews and releases a lock of its own, and asks every primary of a cluster and every server of ZooKeeper and etcd.
    /// Findings endanger locks: for example, a maxmemory-policy that evicts, fewer replicas than replicas= demands, or a disk that is
    /// almost full. Remarks do not: for example, no password, no persistence, or a clock that is off.
    ///
    /// With NAME, it also watches that lock, and suggests a ttl: three to five times the 99th percentile of the holds that it saw.
    ///
    /// The exit code is 0 if nothing endangers locks, 78 if something does or the configuration is invalid, and 77 if the store refuses
    /// this client. It is 69 if the store is unreachable, or grants nothing because it may have forgotten leases.
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
    /// Declare a new Redis server or cluster (for failover=dwell).
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
    /// Skip ahead of waiters that cannot use what is free.
    ///
    /// A reader joins other readers although a writer waits, and a command takes one slot although a program waits for several. As long as
    /// such commands keep coming, the waiters that they skip may starve.
    #[arg(long)]
    pub(crate) barging: bool,
    /// Longest wait for the lock, and for an unreachable store [default: no limit, and no wait for a store that is unreachable at
    /// the start] [env: LEASEHOLD_WAIT]
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
