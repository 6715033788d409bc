//! A pool of threads for work that no caller waits for.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::sync::{Arc, Mutex, PoisonError, thread};

/// How many threads there are at most. Chosen: requests for all but one of as many locks can hang without delaying the
/// others.
const THREADS_MAX: usize = 4;

/// Something to do.
pub(crate) trait Work: Send + Sized + 'static {
    /// Does a part of it. The rest is returned, and goes to the end of the queue.
    fn run(self) -> Option<Self>;
}

/// A queue of work, and the threads that do it: none while there is nothing to do, and a few at most.
pub(crate) struct Pool<W>(Arc<Mutex<Queue<W>>>);

struct Queue<W> {
    work: VecDeque<W>,
    threads: usize,
}

impl<W> Default for Pool<W> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Queue { work: VecDeque::new(), threads: 0 })))
    }
}

impl<W> fmt::Debug for Pool<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl<W: Work> Pool<W> {
    /// Queues work for a thread of the pool. Returns whether there is one.
    pub(crate) fn submit(&self, work: W) -> bool {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.threads < THREADS_MAX {
            let shared = Arc::clone(&self.0);
            let thread = thread::Builder::new().name("leasehold-driver".into());
            queue.threads += usize::from(thread.spawn(move || run_queue(&shared)).is_ok());
        }
        let is_taken = queue.threads > 0;
        if is_taken {
            queue.work.push_back(work);
        }
        is_taken
    }
}

fn run_queue<W: Work>(shared: &Mutex<Queue<W>>) {
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let mut queue = lock();
        let Some(work) = queue.work.pop_front() else {
            queue.threads -= 1;
            return;
        };
        drop(queue);
        // A panic in one piece of work leaves the thread available for the next.
        let more = catch_unwind(AssertUnwindSafe(|| work.run())).unwrap_or(None);
        lock().work.extend(more);
    }
}
