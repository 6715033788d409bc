//! Wake-ups by a clock that counts suspend.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use lock_core::Moment;

use crate::SharedClock;

/// The longest sleep. Timers of the system stand still while it is suspended, so no sleep is trusted for longer.
pub const NAP_MAX: Duration = Duration::from_secs(1);

/// Something that wants to be woken. Ringing does no I/O and does not block for long.
pub trait Ring: Send + Sync + 'static {
    /// The moment has come; or an earlier one that is not wanted any more.
    fn ring(&self);
}

/// Rings at given moments, on one thread, which ends with this handle.
pub struct Alarms(Arc<Clockwork>);

struct Clockwork {
    clock: SharedClock,
    schedule: Mutex<Schedule>,
    changed: Condvar,
}

#[derive(Default)]
struct Schedule {
    alarms: BTreeMap<(Moment, u64), Weak<dyn Ring>>,
    last: u64,
    ended: bool,
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
        std::thread::Builder::new().name("leasehold-alarms".into()).spawn(move || running.run())?;
        Ok(Self(clockwork))
    }

    /// Rings `whom` at a moment, once, unless it is gone by then.
    pub fn set(&self, at: Moment, whom: Weak<dyn Ring>) {
        let mut schedule = self.0.lock();
        schedule.last += 1;
        let key = (at, schedule.last);
        schedule.alarms.insert(key, whom);
        if schedule.alarms.first_key_value().is_some_and(|(first, _)| *first == key) {
            self.0.changed.notify_all();
        }
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
            let now = self.clock.now();
            if schedule.alarms.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
                let due = schedule.alarms.pop_first();
                drop(schedule);
                if let Some(whom) = due.and_then(|(_, whom)| whom.upgrade()) {
                    whom.ring();
                }
                schedule = self.lock();
            } else {
                let nap = schedule.alarms.first_key_value().map_or(NAP_MAX, |((at, _), _)| at.since(now).min(NAP_MAX));
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
    use crate::{Clock, ManualClock};

    struct Bell(Mutex<mpsc::Sender<&'static str>>, &'static str);

    impl Ring for Bell {
        fn ring(&self) {
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
}
