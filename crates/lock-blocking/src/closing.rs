//! Runs what is left at the sites of a client that closes.

use std::time::{Duration, Instant};

use lock_core::FLUSH_WITHIN;
use lock_core::station::ActionId;

use crate::driver::{Site, dispatch, run_one};
use crate::sync::{Arc, Mutex, PoisonError, thread};

/// How many threads a client that closes uses. Chosen: hundreds of locks are released in well under a second where a
/// request takes a few milliseconds.
const THREADS_MAX: usize = 16;

/// The actions that a site still has to send as the client closes.
struct Open {
    site: Arc<Site>,
    /// The last action of all.
    last: ActionId,
    /// The longest time that one of them may take.
    longest: Duration,
}

/// Sends the store what closed sites have left, once: begins nothing after the longest time that a request may take,
/// and waits as long again for the answers. Returns how long is left of that.
pub(crate) fn finish(sites: Vec<Arc<Site>>) -> Duration {
    let open: Vec<_> = sites.into_iter().filter_map(Open::of).collect();
    let longest = open.iter().map(|open| open.longest).max().unwrap_or(FLUSH_WITHIN);
    let begin = Instant::now();
    run_all(open.iter().map(|open| Arc::clone(&open.site)).collect(), begin + longest);
    let end = begin + longest * 2;
    open.iter().for_each(|open| open.settle(end));
    end.saturating_duration_since(Instant::now())
}

/// Runs what is left at sites, on the present thread and on a few others, but begins nothing after `until`.
fn run_all(sites: Vec<Arc<Site>>, until: Instant) {
    let others = sites.len().min(THREADS_MAX).saturating_sub(1);
    let sites = Arc::new(Mutex::new(sites));
    for _ in 0..others {
        let sites = Arc::clone(&sites);
        // If no thread can be started, the present one runs everything.
        _ = thread::Builder::new().name("leasehold-closing".into()).spawn(move || work_off(&sites, until));
    }
    work_off(&sites, until);
}

fn work_off(sites: &Mutex<Vec<Arc<Site>>>, until: Instant) {
    let next = || sites.lock().unwrap_or_else(PoisonError::into_inner).pop();
    while let Some(site) = next() {
        while Instant::now() < until && run_one(&site) {}
        // Nobody waits for the rest any more.
        let threads = &mut site.lock().waiters;
        threads.attended = false;
        dispatch(&site, threads);
    }
}

impl Open {
    fn of(site: Arc<Site>) -> Option<Self> {
        let later = |a: (ActionId, Duration), b: (ActionId, Duration)| (a.0.max(b.0), a.1.max(b.1));
        let (last, longest) = site.lock().waiters.actions().reduce(later)?;
        Some(Self { site, last, longest })
    }

    /// Waits until everything up to the last of these is answered, but not beyond `until`. What follows from the answers
    /// is not waited for.
    fn settle(&self, until: Instant) {
        let mut inner = self.site.lock();
        let quiet = Arc::clone(&inner.waiters.quiet);
        inner.waiters.settling += 1;
        while inner.waiters.actions().any(|(id, _)| id <= self.last) && Instant::now() < until {
            inner = inner.sleep(&quiet, until.saturating_duration_since(Instant::now()));
        }
        inner.waiters.settling -= 1;
    }
}
