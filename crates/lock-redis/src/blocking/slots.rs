//! A few connections for many threads. No I/O.
//!
//! A thread that finds a free connection uses it alone. If all are in use, the thread puts its request in the line. When
//! another thread is done, it passes its connection to the first thread in the line, which sends its own request together
//! with those behind it.

use std::collections::VecDeque;
use std::mem;
use std::time::Instant;

use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Slots for connections of type `C`, and the line of requests `R`, which wait for a connection or an answer `A`.
pub(crate) struct Slots<C, R, A> {
    state: Mutex<State<C, R, A>>,
    max: usize,
    /// Whether a connection was idle for too long, compared with one that was used just now.
    is_stale: fn(&C, &C) -> bool,
}

struct State<C, R, A> {
    /// The most recently used one is at the end.
    idle: Vec<C>,
    /// How many slots are in use.
    taken: usize,
    /// Empty while a slot is free.
    line: VecDeque<Arc<Waiter<C, R, A>>>,
}

/// A request in the line, or taken from it.
struct Waiter<C, R, A> {
    progress: Mutex<Progress<C, R, A>>,
    changed: Condvar,
}

enum Progress<C, R, A> {
    /// It is in the line.
    Waits(R),
    /// Another thread sends it.
    Sent,
    /// Another thread has sent it, and got this answer.
    Answered(A),
    /// Another thread took it, may have sent it, and gave up.
    Dropped,
    /// Its thread has a slot, with a connection unless it has to make one.
    Leads(Option<C>),
    /// Its thread does not wait any more.
    Over,
}

/// What became of a request that was put in the line.
pub(crate) enum Outcome<'a, C, R, A> {
    /// Another thread has sent it, and got this answer.
    Answered(A),
    /// This thread has a slot, and has to send it.
    Leads(Slot<'a, C, R, A>),
    /// The time was over before anybody sent it.
    NotSent,
    /// It was sent, and the time was over before it was answered.
    Unanswered,
    /// Another thread took it, may have sent it, and failed.
    Dropped,
}

/// The right to use a connection. When it is dropped, the next thread in the line gets the slot.
pub(crate) struct Slot<'a, C, R, A> {
    slots: &'a Slots<C, R, A>,
    /// `None` while it is in use, broken, or not made yet.
    connection: Option<C>,
    /// The unanswered requests of other threads that this thread sends, in their order.
    others: VecDeque<Arc<Waiter<C, R, A>>>,
}

impl<C, R, A> Slots<C, R, A> {
    /// At most `max` slots, and no connection yet.
    pub(crate) fn new(max: usize, is_stale: fn(&C, &C) -> bool) -> Self {
        Self { state: Mutex::new(State { idle: Vec::new(), taken: 0, line: VecDeque::new() }), max, is_stale }
    }

    /// A slot, if one is free.
    pub(crate) fn take(&self) -> Option<Slot<'_, C, R, A>> {
        self.take_from(&mut self.lock())
    }

    /// Puts a request in the line, and waits for its answer or for a slot, at most until `until`.
    pub(crate) fn wait(&self, request: R, until: Instant) -> Outcome<'_, C, R, A> {
        let mut state = self.lock();
        if let Some(slot) = self.take_from(&mut state) {
            return Outcome::Leads(slot);
        }
        let waiter = Arc::new(Waiter { progress: Mutex::new(Progress::Waits(request)), changed: Condvar::new() });
        state.line.push_back(Arc::clone(&waiter));
        drop(state);
        match waiter.sleep(until).unwrap_or_else(|| self.leave(&waiter)) {
            Progress::Waits(_) => Outcome::NotSent,
            Progress::Sent => Outcome::Unanswered,
            Progress::Answered(answer) => Outcome::Answered(answer),
            Progress::Dropped | Progress::Over => Outcome::Dropped,
            Progress::Leads(connection) => Outcome::Leads(self.slot(connection)),
        }
    }

    /// Takes all idle connections away.
    pub(crate) fn clear(&self) -> Vec<C> {
        mem::take(&mut self.lock().idle)
    }

    fn slot(&self, connection: Option<C>) -> Slot<'_, C, R, A> {
        Slot { slots: self, connection, others: VecDeque::new() }
    }

    fn take_from(&self, state: &mut State<C, R, A>) -> Option<Slot<'_, C, R, A>> {
        if state.taken == self.max {
            return None;
        }
        state.taken += 1;
        Some(self.slot(state.idle.pop()))
    }

    /// Takes the request out of the line, unless another thread has taken it.
    fn leave(&self, waiter: &Arc<Waiter<C, R, A>>) -> Progress<C, R, A> {
        let mut state = self.lock();
        state.line.retain(|other| !Arc::ptr_eq(other, waiter));
        mem::replace(&mut *waiter.lock(), Progress::Over)
    }

    /// Gives a slot to the first thread in the line, or frees it.
    fn pass(&self, connection: Option<C>) {
        let mut state = self.lock();
        if let Some(next) = state.line.pop_front() {
            // A request leaves the line only while the line is locked, so this one still waits.
            *next.lock() = Progress::Leads(connection);
            drop(state);
            return next.changed.notify_one();
        }
        state.taken -= 1;
        state.idle.extend(connection);
        let is_stale = matches!(&state.idle[..], [oldest, .., newest] if (self.is_stale)(oldest, newest));
        let stale = is_stale.then(|| state.idle.remove(0));
        drop(state);
        drop(stale);
    }

    fn lock(&self) -> MutexGuard<'_, State<C, R, A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C, R, A> Waiter<C, R, A> {
    /// Sleeps until another thread is done with the request or the time is over. `None` if the request is still in the line.
    fn sleep(&self, until: Instant) -> Option<Progress<C, R, A>> {
        let mut progress = self.lock();
        while matches!(*progress, Progress::Waits(_) | Progress::Sent) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            progress = self.changed.wait_timeout(progress, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let is_over = !matches!(*progress, Progress::Waits(_));
        is_over.then(|| mem::replace(&mut *progress, Progress::Over))
    }

    /// The request, if it fits, to be sent by another thread.
    fn give(&self, fits: impl FnOnce(&R) -> bool) -> Option<R> {
        let mut progress = self.lock();
        if !matches!(&*progress, Progress::Waits(request) if fits(request)) {
            return None;
        }
        let Progress::Waits(request) = mem::replace(&mut *progress, Progress::Sent) else { return None };
        Some(request)
    }

    fn end(&self, progress: Progress<C, R, A>) {
        *self.lock() = progress;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Progress<C, R, A>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C, R, A> Slot<'_, C, R, A> {
    /// Takes the connection, which is dropped unless it is put back.
    pub(crate) fn connection(&mut self) -> Option<C> {
        self.connection.take()
    }

    /// Takes at most `max` requests from the beginning of the line, up to the first that does not fit. This thread sends
    /// them.
    pub(crate) fn take_others(&mut self, max: usize, fits: impl Fn(&R) -> bool) -> Vec<R> {
        let (mut state, mut requests) = (self.slots.lock(), Vec::new());
        while requests.len() < max
            && let Some(request) = state.line.front().and_then(|next| next.give(&fits))
        {
            requests.push(request);
            self.others.extend(state.line.pop_front());
        }
        requests
    }

    /// Answers the first of the requests that were taken and have no answer yet.
    pub(crate) fn answer(&mut self, answer: A) {
        if let Some(other) = self.others.pop_front() {
            other.end(Progress::Answered(answer));
        }
    }

    /// Gives back a connection whose replies are in step with its requests.
    pub(crate) fn put_back(mut self, connection: C) {
        self.connection = Some(connection);
    }
}

impl<C, R, A> Drop for Slot<'_, C, R, A> {
    fn drop(&mut self) {
        self.others.drain(..).for_each(|other| other.end(Progress::Dropped));
        self.slots.pass(self.connection.take());
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ScopedJoinHandle};
    use std::time::Duration;

    use super::*;

    type Shared = Slots<&'static str, u32, u32>;

    const SOON: Duration = Duration::from_secs(20);

    fn shared(max: usize) -> Shared {
        Slots::new(max, |_, _| false)
    }

    fn soon() -> Instant {
        Instant::now() + SOON
    }

    /// Puts a request in the line, on a separate thread.
    fn wait<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        slots: &'scope Shared,
        request: u32,
    ) -> ScopedJoinHandle<'scope, Outcome<'scope, &'static str, u32, u32>> {
        let before = slots.lock().line.len();
        let waiting = scope.spawn(move || slots.wait(request, soon()));
        let give_up_at = soon();
        while slots.lock().line.len() == before {
            assert!(Instant::now() < give_up_at, "it is not in the line");
            thread::yield_now();
        }
        waiting
    }

    #[test]
    fn a_connection_is_made_only_if_none_is_idle_and_there_are_few() {
        let slots = shared(2);
        let mut first = slots.take().unwrap();
        assert_eq!(first.connection(), None);
        first.put_back("first");
        let (mut again, mut second) = (slots.take().unwrap(), slots.take().unwrap());
        assert_eq!((again.connection(), second.connection()), (Some("first"), None));
        assert!(slots.take().is_none());
        again.put_back("first");
        // The second one broke.
        drop(second);
        assert_eq!(slots.clear(), ["first"]);
        assert_eq!(slots.take().unwrap().connection(), None);
    }

    #[test]
    fn the_first_in_the_line_gets_the_connection_and_sends_what_fits_behind_it() {
        let slots = shared(1);
        thread::scope(|scope| {
            let holder = slots.take().unwrap();
            let first = wait(scope, &slots, 1);
            let [second, third, other, last] = [2, 3, 70, 4].map(|request| wait(scope, &slots, request));
            holder.put_back("one");
            let Outcome::Leads(mut slot) = first.join().unwrap() else { panic!("it has no slot") };
            assert_eq!(slot.connection(), Some("one"));
            assert_eq!(slot.take_others(9, |request| *request < 10), [2, 3], "nobody is overtaken");
            [20, 30].into_iter().for_each(|answer| slot.answer(answer));
            for (thread, answer) in [(second, 20), (third, 30)] {
                assert!(matches!(thread.join().unwrap(), Outcome::Answered(told) if told == answer));
            }
            slot.put_back("one");
            let Outcome::Leads(mut slot) = other.join().unwrap() else { panic!("it has no slot") };
            assert_eq!(slot.connection(), Some("one"));
            assert!(slot.take_others(0, |_| true).is_empty());
            assert_eq!(slot.take_others(1, |_| true), [4]);
            // This thread fails, and loses the connection.
            drop(slot);
            assert!(matches!(last.join().unwrap(), Outcome::Dropped));
        });
        assert_eq!(slots.take().unwrap().connection(), None);
    }

    #[test]
    fn whose_time_is_over_was_sent_or_not_and_holds_nobody_up() {
        let slots = shared(1);
        let mut slot = slots.take().unwrap();
        assert!(matches!(slots.wait(1, Instant::now()), Outcome::NotSent));
        thread::scope(|scope| {
            let sent = scope.spawn(|| slots.wait(2, Instant::now() + Duration::from_millis(300)));
            let give_up_at = soon();
            while slot.take_others(1, |_| true).is_empty() {
                assert!(Instant::now() < give_up_at, "it is not in the line");
                thread::yield_now();
            }
            assert!(matches!(sent.join().unwrap(), Outcome::Unanswered));
            let next = wait(scope, &slots, 3);
            slot.answer(2);
            slot.put_back("one");
            let Outcome::Leads(mut slot) = next.join().unwrap() else { panic!("it has no slot") };
            assert_eq!(slot.connection(), Some("one"));
        });
    }

    #[test]
    fn a_thread_that_panics_leaves_its_slot_to_the_next() {
        let slots = shared(1);
        thread::scope(|scope| {
            let mut holder = slots.take().unwrap();
            let [first, second] = [1, 2].map(|request| wait(scope, &slots, request));
            assert_eq!(holder.take_others(1, |_| true), [1]);
            let panicking = scope.spawn(move || {
                let _connection = (holder.connection(), holder);
                panic!("on purpose");
            });
            assert!(panicking.join().is_err());
            assert!(matches!(first.join().unwrap(), Outcome::Dropped));
            assert!(matches!(second.join().unwrap(), Outcome::Leads(_)));
        });
        assert!(slots.take().is_some());
    }

    #[test]
    fn of_the_idle_connections_the_one_that_is_stale_is_closed() {
        let slots: Slots<u32, (), ()> = Slots::new(3, |oldest, newest| oldest + 60 < *newest);
        let taken = [(); 3].map(|()| slots.take().unwrap());
        taken.into_iter().zip([100, 160, 161]).for_each(|(slot, used_at)| slot.put_back(used_at));
        assert_eq!(slots.clear(), [160, 161]);
        slots.take().unwrap().put_back(900);
        assert_eq!(slots.clear(), [900], "the only one stays");
    }
}
