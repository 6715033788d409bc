//! Texts below the options in the help.

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    also if the --slot has run, or runs elsewhere; nothing was started
  the command's own code, or 128+n if signal n ended it; if leasehold received
       that signal too, it ends by the same signal, so that Ctrl-C ends a loop
  75   the lock is held, or the wait timed out (see --busy-code)
  76   the lease was lost before the command ended, whatever its own code
  69   the store is unreachable, does not answer in time or has a full disk, or
       too few nodes of a quorum vote
  77   the store refuses this client, or is read-only
  78   the configuration or the URL is invalid, or the name is in use as
       another kind of lock or with another number of slots
  64   the command line is invalid
  126  the command cannot be executed      127  there is no such command
  130  Ctrl-C                              125  leasehold itself failed";

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  leasehold run nightly -- ./backup.sh      wait for the lock, then run
  leasehold run -n deploy -- make deploy    exit with 75 at once if it is held
  leasehold run -n -E 0 sync -- ./sync.sh   for cron: skip this run silently
  leasehold run -w 5m --why 'release 1.4' deploy -- ./deploy.sh
  leasehold run -s catalog -- ./report.sh   beside other readers, not a writer
  leasehold run --slots 4 gpu -- ./train.sh          at most 4 at a time
  leasehold run --slot 2026-11-21T03:00 nightly -- ./backup.sh
                                            once for this time, on one machine
  LEASEHOLD_URL=redis://db1 leasehold run report -- \\
    sh -c './report --fence \"$LEASEHOLD_FENCE\"'

The command receives LEASEHOLD_NAME, LEASEHOLD_FENCE (the fencing token), LEASEHOLD_TTL_MS and LEASEHOLD_HELD in its \
environment, and with --slots LEASEHOLD_SLOT (0 to N-1). The token of a reader (--shared) says that what it reads is not older; a \
resource must not record it as the token of a write. Tokens of different slots say nothing about each other.

It runs in its own process group. If the lease cannot be renewed, the group is ended before the lease can expire, even if leasehold is \
killed or stopped: it gets SIGTERM, and SIGKILL after the grace period. That does not cover a lock that an operator breaks. Processes that the command leaves running in its group are ended \
with it. Processes that left the group (setsid, daemons, jobs of an interactive shell) or run as another user are not \
ended. If leasehold and its guard process are killed at the same moment, only the command itself is killed, not the \
processes that it started.";

pub(super) const EXAMPLES: &str = "\
First steps:
  leasehold run nightly -- ./backup.sh       hold a lock while a command runs
  leasehold ls                               who holds what
  leasehold doctor --url redis://localhost   can locks be kept in this Redis?
  leasehold run --url redis://localhost nightly -- ./backup.sh

Without a URL, locks are kept in a per-user file: they exclude all your processes on this machine. To lock across \
machines, set --url or LEASEHOLD_URL, such as redis://host.

Defaults for url, ttl, wait and why can be in ./leasehold.toml, in ~/.config/leasehold/leasehold.toml, or in the file that \
LEASEHOLD_CONFIG names.";

pub(super) const ELECT_EXAMPLES: &str = "\
Examples:
  leasehold elect scheduler -- ./scheduler   on several machines; runs on one
  leasehold elect --ttl 10s --why web-3 scheduler -- ./scheduler
  leasehold show scheduler                   who leads

The command receives the same environment as with leasehold run, and is ended in the same way. LEASEHOLD_FENCE is the number of \
the leader's term. If a leader dies, the command starts on another machine once the ttl is over; if it ends, at once.

A command that ends by itself is not started again here. Use a service manager that restarts leasehold: it is then the last in \
line.";

pub(super) const ELECT_EXIT_CODES: &str = "\
Exit codes:
  the command's own code when it ends by itself, or 128+n as with leasehold run
  76   the lease was lost, and the command had ended by itself, a signal had
       asked for its end, or its end was not seen in time
  69   the store is unreachable at the start; later, leasehold waits for it
  77   the store refuses this client, or is read-only
  78   the configuration or the URL is invalid, or the name is in use as
       another kind of lock
  64   the command line is invalid
  126  the command cannot be executed      127  there is no such command
  130  Ctrl-C                              125  leasehold itself failed";
