//! Threads that share two connections to a server that answers each request with twice its number.

use std::time::{Duration, Instant};

use crate::sync::{Arc, thread};

/// Some threads send the requests of others, one connection breaks, and all requests are answered.
macro_rules! threads_share {
    ($module:path) => {{
        use $module::{Outcome, Slot, Slots};
        type Shared = Slots<u32, u32, Option<u32>>;

        fn lead(mut slot: Slot<'_, u32, u32, Option<u32>>, request: u32) -> Option<u32> {
            let uses = slot.connection().unwrap_or(0) + 1;
            thread::yield_now();
            let others = slot.take_others(2, |other| other % 2 == request % 2);
            let breaks = uses == 2;
            others.into_iter().for_each(|other| slot.answer((!breaks).then_some(2 * other)));
            thread::yield_now();
            if !breaks {
                slot.put_back(uses);
            }
            (!breaks).then_some(2 * request)
        }

        fn ask(slots: &Shared, request: u32) -> Option<u32> {
            if let Some(slot) = slots.take() {
                return lead(slot, request);
            }
            match slots.wait(request, Instant::now() + Duration::from_secs(3600)) {
                Outcome::Answered(answer) => answer,
                Outcome::Leads(slot) => lead(slot, request),
                Outcome::NotSent | Outcome::Unanswered | Outcome::Dropped => {
                    panic!("nothing was over, and none failed")
                }
            }
        }

        let slots: Arc<Shared> = Arc::new(Slots::new(2, |_, _| false));
        let asking: Vec<_> = (1..=4)
            .map(|thread| {
                let slots = Arc::clone(&slots);
                thread::spawn(move || {
                    for request in [thread, thread + 10] {
                        // A connection that broke is made again.
                        while ask(&slots, request).inspect(|answer| assert_eq!(*answer, 2 * request)).is_none() {}
                    }
                })
            })
            .collect();
        asking.into_iter().for_each(|thread| thread.join().unwrap());
        let free = [slots.take(), slots.take(), slots.take()];
        assert!(matches!(free, [Some(_), Some(_), None]), "a slot was lost, or made");
    }};
}

/// All get their own answers, and both slots are free in the end.
pub fn all_are_answered() {
    threads_share!(crate::slots);
}

/// The same with a mistake.
pub fn all_are_answered_by_hasty_slots() {
    threads_share!(crate::broken::hasty_slots);
}
