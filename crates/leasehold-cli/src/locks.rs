//! The library as this program uses it: answers become failures with exit codes, durations become moments.

use std::sync::Arc;
use std::time::Duration;

use leasehold::backend::{Ability, BlockingBackend, EntriesEnd, Limit};
use leasehold::blocking::{self, AnyLock, Builder, Client, Semaphore};
use leasehold::inspect::blocking::{list_all, next_changes};
use leasehold::inspect::watch::Change;
use leasehold::inspect::{Entry, Listing, Mode, Query, Revoked, Watch, note};
use leasehold::kit::{Begun, JobError, SkipReason, Skipped};
use leasehold::redlock::{Purpose, RedlockConfig};
use leasehold::{AcquireError, BackendConfig, BackendError, FencingToken, Holder, LockName};

use crate::durations::{rough, whole_seconds};
use crate::exit::{Exit, Failure};
use crate::hold::Hold;
use crate::holders::{is_gone, is_own, name_of, names_of, own_place, spans};
use crate::lock_request::{LockRequest, Patience};
use crate::log::Log;
use crate::quorum::{Quorum, failure};
use crate::store::Store;

/// How long a store may take to show its locks.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// The locks of one store.
#[derive(Clone, Debug)]
pub(crate) struct Locks {
    client: Client,
    quorum: Option<Quorum>,
    warnings: Vec<String>,
}

impl Locks {
    /// Opens the store.
    pub(crate) fn connect(store: &Store) -> Result<Self, Failure> {
        Self::connect_logged(store, None)
    }

    /// Opens the store, and logs what happens to the locks.
    pub(crate) fn connect_logged(store: &Store, log: Option<Arc<Log>>) -> Result<Self, Failure> {
        let config = store.config()?;
        if let BackendConfig::Redlock(redlock) = &config {
            let (quorum, warnings) = Quorum::connect(redlock)?;
            return Self::of_quorum(redlock, quorum, warnings, log);
        }
        let client = build(blocking::builder(&config).map_err(failure)?, log)?;
        let warnings = client.warnings();
        Ok(Self { client, quorum: None, warnings })
    }

    /// Opens the store to look at its locks. At a quorum, this changes nothing: nodes that forgot are left as they are.
    pub(crate) fn connect_to_look(store: &Store) -> Result<Self, Failure> {
        match store.config() {
            Ok(BackendConfig::Redlock(redlock)) => {
                let quorum = Quorum::open(&redlock)?;
                let warnings = quorum.pass(Purpose::Look)?.warnings();
                Self::of_quorum(&redlock, quorum, warnings, None)
            }
            Ok(_) | Err(_) => Self::connect(store),
        }
    }

    fn of_quorum(
        config: &RedlockConfig,
        quorum: Quorum,
        warnings: Vec<String>,
        log: Option<Arc<Log>>,
    ) -> Result<Self, Failure> {
        let client = build(Client::builder(quorum.backend()).op_timeout(config.op_timeout()), log)?;
        Ok(Self { client, quorum: Some(quorum), warnings })
    }

    /// The library's client.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// When the store removes what nobody releases.
    pub(crate) fn entries_end(&self) -> EntriesEnd {
        self.client.capabilities().entries_end
    }

    /// Shown in place of the remaining time of a lease that has none.
    pub(crate) fn endless(&self) -> &'static str {
        match self.entries_end() {
            EntriesEnd::WithTtl => NEVER_EXPIRES,
            EntriesEnd::WithSession => "ends with its session",
        }
    }

    /// Warnings for operators, from when the store was opened.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The entry of a lock, if the store shows it.
    pub(crate) fn shown(store: &Store, name: &LockName) -> Option<Entry> {
        Self::connect(store).and_then(|locks| locks.holder(name)).ok().flatten()
    }

    /// Whether the store no longer shows this token; `None` if it does not answer.
    pub(crate) fn is_over(&self, name: &LockName, token: FencingToken) -> Option<bool> {
        let Some(entry) = self.holder(name).ok()? else { return Some(true) };
        let shown = entry.holders.iter().any(|held| spans(held, token));
        (shown || entry.lists_all_leases()).then_some(!shown)
    }

    /// Acquires a lock, or begins a run of a job. Blocks for as long as the request says.
    pub(crate) fn acquire(&self, request: &LockRequest) -> Result<Hold, Failure> {
        match request.job.of(&self.client, &request.name, request.options()) {
            Some(job) => match job.begin() {
                Ok(Begun::Run(run)) => Ok(Hold::Job(Box::new(run))),
                Ok(Begun::Skipped(skipped)) => Err(self.skipped(skipped, request)),
                Err(error) => Err(not_begun(error, request)),
            },
            None => {
                let lock = self.lock(request).options(request.options());
                let acquired = match request.patience {
                    Patience::None => lock.try_acquire(),
                    Patience::Until(_) | Patience::Endless | Patience::Always => lock.acquire().map(Some),
                };
                let acquired = acquired.map_err(|error| refused(error, request))?;
                acquired.map(Hold::Lock).ok_or_else(|| self.busy(request))
            }
        }
    }

    /// A slot that was taken ends the run; a job that runs is a lock that is held.
    fn skipped(&self, skipped: Skipped, request: &LockRequest) -> Failure {
        match (skipped.reason, request.patience) {
            (SkipReason::Running, Patience::Until(waited)) => timed_out(waited, skipped.holder.as_ref(), request),
            (SkipReason::Running, _) => self.busy(request),
            (_, _) => skipped.into(),
        }
    }

    /// Ends the lease that spans this token, for any owner.
    pub(crate) fn revoke(&self, name: &LockName, token: FencingToken, why: &str) -> Result<Revoked, Failure> {
        let by = note(why).map_err(|invalid| Failure::usage(&invalid))?;
        Ok(self.inspect()?.revoke(name, token, &by, LOOK_WITHIN)?)
    }

    /// The lock of a request. The client tells locks and semaphores of one name apart.
    fn lock(&self, request: &LockRequest) -> AnyLock {
        match request.mode {
            Mode::Shared => self.client.rw_lock(&request.name).read().into_any(),
            Mode::Permits { limit, .. } => self.client.semaphore(&request.name, limit.get()).into_any(),
            Mode::Exclusive | _ => self.client.mutex(&request.name).into_any(),
        }
    }

    /// Who holds a lock.
    pub(crate) fn holder(&self, name: &LockName) -> Result<Option<Entry>, Failure> {
        Ok(self.inspect()?.holder(name, LOOK_WITHIN)?)
    }

    /// A semaphore with this limit.
    pub(crate) fn semaphore(&self, name: &LockName, limit: Limit) -> Semaphore {
        self.client.semaphore(name, limit.get())
    }

    /// The obstacle to a grant, for a waiting user.
    pub(crate) fn obstacle(&self, name: &LockName) -> Option<String> {
        let held = |entry: Entry| match is_own(&entry) {
            true => "granted to this process, but not confirmed yet".to_owned(),
            false => format!("held by {}{}", names_of(&entry), own_place(&entry)),
        };
        let silence = self.quorum.as_ref().and_then(Quorum::obstacle);
        silence.or_else(|| self.holder(name).ok().flatten().map(held))
    }

    /// The store error that affects the waiters by this request, if any.
    pub(crate) fn store_error(&self, request: &LockRequest) -> Option<BackendError> {
        self.lock(request).store_error()
    }

    /// The held locks that match a glob, all of them.
    pub(crate) fn list(&self, pattern: &str) -> Result<Listing, Failure> {
        if let Some(quorum) = &self.quorum {
            // Other nodes may count by now.
            quorum.pass(Purpose::Look)?;
        }
        Ok(list_all(self.inspect()?, Query::matching(pattern), LOOK_WITHIN)?)
    }

    /// The changes from the last listing of a watch to this one.
    pub(crate) fn changes(&self, watch: &mut Watch, listing: Listing) -> Result<Vec<Change>, Failure> {
        Ok(next_changes(self.inspect()?, watch, listing, LOOK_WITHIN))
    }

    /// Ends all waits and holds, and releases them at the store.
    pub(crate) fn close(&self) {
        self.client.close();
    }

    fn inspect(&self) -> Result<&dyn BlockingBackend, Failure> {
        self.client.inspect().ok_or_else(|| self.client.capabilities().unable(Ability::Inspect).into())
    }

    fn busy(&self, request: &LockRequest) -> Failure {
        let entry = self.holder(&request.name).ok().flatten();
        let holder = entry.as_ref().map_or_else(|| name_of(None), names_of);
        if let Some(Entry { remaining: Some(Duration::ZERO), .. }) = &entry {
            return busy(
                request,
                &format!(
                    "{} is kept by a transaction that is fenced by the expired lease of {holder}; {WAIT}",
                    request.name
                ),
            );
        }
        if let Some(Entry { leases: 1, remaining: Some(left), holder: last, .. }) = &entry
            && is_gone(last) == Some(true)
        {
            // It has kept the lock, or has died: the store does not say which.
            let left = whole_seconds(*left);
            return busy(request, &format!("{} stays locked for {left} more, after {holder}; {WAIT}", request.name));
        }
        let rest = match entry.map(|entry| entry.remaining) {
            None => format!("; {WAIT}"),
            Some(Some(left)) => {
                format!(", for {} unless renewed; {WAIT}", whole_seconds(left))
            }
            Some(None) if self.entries_end() == EntriesEnd::WithSession => format!("; {WAIT}"),
            Some(None) => " and never expires; if nothing uses it any more, delete its key from the store".to_owned(),
        };
        busy(request, &format!("{} is held by {holder}{rest}", request.name))
    }
}

fn build(builder: Builder, log: Option<Arc<Log>>) -> Result<Client, Failure> {
    let builder = log.into_iter().fold(builder, |builder, log| builder.observer(log));
    builder.build().map_err(|error| failure(error.into()))
}

/// The text for a lease without a ttl.
pub(crate) const NEVER_EXPIRES: &str = "never expires";

const WAIT: &str = "to wait, use -w 30s instead of -n, or omit both";

/// Why a run of a job has not begun.
fn not_begun(error: JobError, request: &LockRequest) -> Failure {
    match error {
        JobError::Acquire(error) => refused(error, request),
        JobError::Lost(lost) if lost.name != request.name => {
            let (name, reason) = (lost.name, lost.reason);
            let message = format!(
                "the lease of the slot was lost before the command began: {reason} ({name}); another machine may have run the slot, \
                 so this one did not"
            );
            Failure::new(Exit::Lost, message)
        }
        JobError::Lost(lost) => {
            let message = format!("the lease was lost before the command began: {}; run it again", lost.reason);
            Failure::new(Exit::Lost, message)
        }
        JobError::NotMarked(_) | _ => Failure::new(Exit::Unavailable, error.to_string()),
    }
}

fn refused(error: AcquireError, request: &LockRequest) -> Failure {
    match error {
        AcquireError::TimedOut { waited, holder, .. } => timed_out(waited, holder.as_ref(), request),
        AcquireError::Invalid(invalid) => Failure::usage(&invalid),
        AcquireError::Backend(error) => error.into(),
        AcquireError::Forgotten { .. } => Failure::new(Exit::Unavailable, error.to_string()),
        AcquireError::Closed | _ => Failure::new(Exit::Internal, error.to_string()),
    }
}

fn timed_out(waited: Duration, holder: Option<&Holder>, request: &LockRequest) -> Failure {
    let name = &request.name;
    let advice = match holder {
        Some(Holder::Foreign) => format!("check with leasehold show {name} whether it expires"),
        Some(holder) if is_gone(holder) == Some(true) => {
            "raise -w: the store frees the lock by itself, at the end of its session or of a fenced transaction if there is one"
                .to_owned()
        }
        Some(Holder::Leasehold { .. }) | None => "raise -w, or contact the holder".to_owned(),
    };
    busy(request, &format!("waited {} for {name}, behind {}; {advice}", rough(waited), name_of(holder)))
}

fn busy(request: &LockRequest, message: &str) -> Failure {
    Failure::new(Exit::Busy(request.busy_code), message)
}
