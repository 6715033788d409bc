//! Texts below the options in the help.

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    the --slot has run already, or runs elsewhere: nothing was started
  the command's own code, or 128+n if signal n ended it; if leasehold received
       the signal as well, it ends by that signal, so that Ctrl-C ends a loop
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
environment, and with --slots LEASEHOLD_SLOT (0 to N-1). A reader's token (--shared) is a lower bound on how fresh its data is; a \
resource must not record it as the token of a write. Tokens of different slots are not comparable.

The command runs in a process group of its own. If the lease cannot be renewed, the group gets SIGTERM, and SIGKILL after the grace \
period, before the lease can expire. A guard process sends both even if leasehold is killed or stopped. That does not cover a lock that an \
operator breaks, or a process that hangs in the kernel. Processes that the command leaves running in its group are ended with it. Processes \
that left the group (setsid, daemons, jobs of an interactive shell) or run as another user are not ended. If leasehold and its guard \
process are killed at the same moment, only the command itself is killed, not the processes that it started.";

/// The fields of a lock as JSON.
pub(super) const SHOW_FIELDS: &str = "\
Fields of --json, with times in milliseconds, and null for unknown values:
  name, held           the lock, and whether it is held
  kind, limit          `lock` or `semaphore`, and its number of permits
  leasehold            whether the holder uses this library
  pid, host, why       the holder; of several, the one whose lease ends last
  token                the holder's highest fencing token
  held_ms              the age of its lease
  gone                 whether the holder is a process of this host that ended
  remaining_ms         until the lease ends without a renewal; null if it never
                       ends, and on ZooKeeper
  marks                the slot of a schedule that the lock marks
  leases, waiters      the numbers of holders and of waiters
  holders              at most 100 leases, those that end last first: these
                       fields, `mode`, and the `slots` of permits
  queue                at most 100 waiters in order: leasehold, pid, host, why,
                       mode, permits, waiting_ms
  votes                only on a quorum: the nodes that have the lease (held),
                       that do not (not_held), that may have forgotten it
                       (abstaining), and that did not answer or do not count
                       (unreachable)

Without a majority of the votes, a lock of a quorum is only possibly held.";

pub(super) const EXAMPLES: &str = "\
First steps:
  leasehold run nightly -- ./backup.sh       hold a lock while a command runs
  leasehold ls                               list the locks that are held
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
  leasehold show scheduler                   show the leader

The command receives the same environment as with leasehold run, and is ended in the same way. LEASEHOLD_FENCE is the number of \
the leader's term. If a leader dies, the command starts on another machine when the ttl has passed; if it ends, at once.

A command that ends by itself is not restarted here. Use a service manager that restarts leasehold, which then queues behind the others.";

pub(super) const ELECT_EXIT_CODES: &str = "\
Exit codes:
  the command's own code when it ends by itself, or 128+n as with leasehold run
  76   the lease was lost after the command had ended or had been asked to
       end, or its end was not seen in time
  69   the store is unreachable at the start; later, leasehold waits for it
  77   the store refuses this client, or is read-only
  78   the configuration or the URL is invalid, or the name is in use as
       another kind of lock
  64   the command line is invalid
  126  the command cannot be executed      127  there is no such command
  130  Ctrl-C                              125  leasehold itself failed";
