//! Wake-ups by a clock that counts suspend.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lock_core::Moment;

use crate::SharedClock;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, thread};

/// The longest sleep. The timers of the system stop while it is suspended, so no sleep is trusted for longer.
pub const NAP_MAX: Duration = Duration::from_secs(1);

/// Something that alarms wake. Ringing does no I/O and does not block for long.
pub trait Ring: Send + Sync + 'static {
    /// The alarm is due. It may have been unset meanwhile.
    fn ring(self: Arc<Self>, alarm: Alarm);
}

/// Rings at given moments, on one thread, which ends with this handle.
pub struct Alarms(Arc<Clockwork>);

/// An alarm that was set. It rings once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alarm {
    at: Moment,
    number: u64,
}

impl Alarm {
    /// When it rings.
    pub fn at(self) -> Moment {
        self.at
    }
}

struct Clockwork {
    clock: SharedClock,
    schedule: Mutex<Schedule>,
    changed: Condvar,
}

#[derive(Default)]
struct Schedule {
    alarms: BTreeMap<Alarm, Weak<dyn Ring>>,
    /// How many alarms were set so far.
    count: u64,
    /// When the thread last planned to wake by itself; `None` at first, or if its clock failed.
    next_wake: Option<Moment>,
    ended: bool,
}

impl Schedule {
    fn next(&self) -> Option<Moment> {
        self.alarms.first_key_value().map(|(alarm, _)| alarm.at)
    }

    fn take_due(&mut self, now: Moment) -> Option<(Alarm, Weak<dyn Ring>)> {
        self.next().filter(|at| *at <= now).and_then(|_| self.alarms.pop_first())
    }
}

impl Alarms {
    /// Starts the thread.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub fn start(clock: SharedClock) -> io::Result<Self> {
        let clockwork = Arc::new(Clockwork { clock, schedule: Mutex::default(), changed: Condvar::new() });
        let leaps = Arc::downgrade(&clockwork);
        clockwork.clock.on_leap(Box::new(move || {
            if let Some(clockwork) = leaps.upgrade() {
                drop(clockwork.lock());
                clockwork.changed.notify_all();
            }
        }));
        let running = Arc::clone(&clockwork);
        thread::Builder::new().name("leasehold-alarms".into()).spawn(move || running.run())?;
        Ok(Self(clockwork))
    }

    /// Rings `whom` once at the given moment, unless it has been dropped by then.
    pub fn set(&self, at: Moment, whom: Weak<dyn Ring>) -> Alarm {
        let mut schedule = self.0.lock();
        schedule.count += 1;
        let alarm = Alarm { at, number: schedule.count };
        schedule.alarms.insert(alarm, whom);
        // The thread finds later alarms by itself when it wakes, and most of them are unset by then.
        if schedule.next_wake.is_none_or(|wake| at < wake) {
            self.0.changed.notify_all();
        }
        alarm
    }

    /// Cancels an alarm, if it has not rung yet.
    pub fn unset(&self, alarm: Alarm) {
        self.0.lock().alarms.remove(&alarm);
    }
}

impl Drop for Alarms {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_all();
    }
}

impl Clockwork {
    fn run(&self) {
        let mut schedule = self.lock();
        while !schedule.ended {
            // A clock that panics is asked again after a nap: all stations depend on this thread.
            let now = catch_unwind(AssertUnwindSafe(|| self.clock.now())).ok();
            if let Some((alarm, whom)) = now.and_then(|now| schedule.take_due(now)) {
                drop(schedule);
                // After a panic this alarm is gone, and all others still ring.
                _ = catch_unwind(AssertUnwindSafe(|| whom.upgrade().into_iter().for_each(|whom| whom.ring(alarm))));
                schedule = self.lock();
            } else {
                let until_next = |now| Some(schedule.next()?.since(now).min(NAP_MAX));
                let nap = now.and_then(until_next).unwrap_or(NAP_MAX);
                schedule.next_wake = now.map(|now| now + nap);
                schedule = self.changed.wait_timeout(schedule, nap).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Alarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarms").field("set", &self.0.lock().alarms.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::sync::atomic::{AtomicU64, Ordering};
    use crate::{Clock, ManualClock};

    struct Bell(Mutex<mpsc::Sender<&'static str>>, &'static str);

    impl Ring for Bell {
        fn ring(self: Arc<Self>, _: Alarm) {
            self.0.lock().unwrap().send(self.1).unwrap();
        }
    }

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn alarms_ring_in_order_when_the_clock_leaps() {
        let clock = ManualClock::new();
        let alarms = Alarms::start(Arc::new(clock.clone())).unwrap();
        let (sender, rung) = mpsc::channel();
        let late: Arc<dyn Ring> = Arc::new(Bell(Mutex::new(sender.clone()), "late"));
        let early: Arc<dyn Ring> = Arc::new(Bell(Mutex::new(sender.clone()), "early"));
        let gone: Arc<dyn Ring> = Arc::new(Bell(Mutex::new(sender), "gone"));
        alarms.set(clock.now() + SOON * 2, Arc::downgrade(&late));
        alarms.set(clock.now() + SOON, Arc::downgrade(&early));
        alarms.set(clock.now() + SOON, Arc::downgrade(&gone));
        drop(gone);
        clock.advance(SOON);
        assert_eq!(rung.recv_timeout(SOON), Ok("early"));
        assert_eq!(rung.try_recv(), Err(mpsc::TryRecvError::Empty));
        clock.advance(SOON);
        assert_eq!(rung.recv_timeout(SOON), Ok("late"));
    }

    /// Counts how often the alarms read it.
    #[derive(Clone, Debug, Default)]
    struct Counting(Arc<AtomicU64>);

    impl Clock for Counting {
        fn now(&self) -> Moment {
            if thread::current().name() == Some("leasehold-alarms") {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
            crate::HostClock.now()
        }
    }

    #[test]
    fn an_alarm_that_is_unset_in_time_does_not_wake_the_thread() {
        let clock = Counting::default();
        let alarms = Alarms::start(Arc::new(clock.clone())).unwrap();
        let (sender, rung) = mpsc::channel();
        let bell: Arc<dyn Ring> = Arc::new(Bell(Mutex::new(sender), "rung"));
        for _ in 0..100 {
            alarms.unset(alarms.set(clock.now() + SOON, Arc::downgrade(&bell)));
            thread::sleep(Duration::from_millis(1));
        }
        let wakes = clock.0.load(Ordering::SeqCst);
        assert!(wakes < 50, "{wakes} wake-ups for 100 alarms");
        alarms.set(clock.now() + Duration::from_millis(5), Arc::downgrade(&bell));
        assert_eq!(rung.recv_timeout(SOON), Ok("rung"));
    }

    struct Broken;

    impl Ring for Broken {
        fn ring(self: Arc<Self>, _: Alarm) {
            panic!("on purpose");
        }
    }

    /// Shows the time to everybody, but to the alarms only from the second reading on.
    #[derive(Clone, Debug)]
    struct Stutters(ManualClock, Arc<AtomicU64>);

    impl Clock for Stutters {
        fn now(&self) -> Moment {
            let alarms = thread::current().name() == Some("leasehold-alarms");
            assert!(!alarms || self.1.fetch_add(1, Ordering::SeqCst) > 0, "on purpose");
            self.0.now()
        }

        fn on_leap(&self, wake: Box<dyn Fn() + Send + Sync>) {
            self.0.on_leap(wake);
        }
    }

    #[test]
    fn a_panic_of_one_who_is_rung_or_of_the_clock_is_not_the_end_of_the_others() {
        let clock = ManualClock::new();
        let alarms = Alarms::start(Arc::new(Stutters(clock.clone(), Arc::default()))).unwrap();
        let (sender, rung) = mpsc::channel();
        let broken: Arc<dyn Ring> = Arc::new(Broken);
        let bell: Arc<dyn Ring> = Arc::new(Bell(Mutex::new(sender), "rung"));
        alarms.set(clock.now() + SOON, Arc::downgrade(&broken));
        alarms.set(clock.now() + SOON * 2, Arc::downgrade(&bell));
        clock.advance(SOON * 2);
        assert_eq!(rung.recv_timeout(SOON), Ok("rung"));
    }

    #[test]
    fn the_thread_ends_with_the_handle() {
        let clock: SharedClock = Arc::new(ManualClock::new());
        let shared = Arc::downgrade(&clock);
        drop(Alarms::start(clock).unwrap());
        let give_up_at = std::time::Instant::now() + SOON;
        while shared.upgrade().is_some() {
            assert!(std::time::Instant::now() < give_up_at, "the thread still has the clock");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_alarm_that_was_unset_does_not_ring() {
        let clock = ManualClock::new();
        let alarms = Alarms::start(Arc::new(clock.clone())).unwrap();
        let (sender, rung) = mpsc::channel();
        let bell: Arc<dyn Ring> = Arc::new(Bell(Mutex::new(sender), "rung"));
        let [early, late] = [SOON, SOON * 2].map(|soon| alarms.set(clock.now() + soon, Arc::downgrade(&bell)));
        assert!(early.at() < late.at());
        // Two at the same moment are two.
        alarms.unset(alarms.set(early.at(), Arc::downgrade(&bell)));
        alarms.unset(late);
        assert_eq!(format!("{alarms:?}"), "Alarms { set: 1 }");
        clock.advance(SOON * 3);
        assert_eq!(rung.recv_timeout(SOON), Ok("rung"));
        assert_eq!(rung.recv_timeout(Duration::from_millis(50)), Err(mpsc::RecvTimeoutError::Timeout));
        assert_eq!(format!("{alarms:?}"), "Alarms { set: 0 }");
    }
}
