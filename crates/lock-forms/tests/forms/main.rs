//! One source in both forms.

#![expect(clippy::duplicate_mod, reason = "one source is compiled in both forms")]

mod for_tasks;
mod for_threads;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use lock_forms::two_forms;

#[two_forms]
trait AsyncBackend {
    async fn twice(&self) -> u32;
}

impl AsyncBackend for u8 {
    async fn twice(&self) -> u32 {
        u32::from(*self) * 2
    }
}

impl BlockingBackend for u16 {
    fn twice(&self) -> u32 {
        u32::from(*self) * 2
    }
}

#[test]
fn one_source_makes_both_forms() {
    let counter = for_threads::source::Counter(3);
    assert_eq!(counter.add(|more| more + 4), Some(10));
    assert_eq!(counter.only_here(), 3);
    let counter = for_tasks::source::Counter(3);
    let added = pin!(counter.add(async |more| more + 4));
    assert_eq!(added.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Some(10)));
}

/// What would mean something else for threads does not compile. `TRYBUILD=overwrite` writes what the compiler says now; review the diff.
#[test]
fn async_blocks_are_refused_in_both_forms() {
    trybuild::TestCases::new().compile_fail("tests/mistakes/*.rs");
}

#[test]
fn an_item_makes_both_forms_in_one_place() {
    let twice = pin!(AsyncBackend::twice(&3_u8));
    assert_eq!(twice.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(6));
    assert_eq!(BlockingBackend::twice(&4_u16), 8);
}
