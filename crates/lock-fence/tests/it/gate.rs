//! The check in memory.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lock_fence::{Gate, Refused};
use test_support::bounds::{PATIENCE, wait_for, within};

use crate::{token, write_token};

#[test]
fn a_lower_token_is_refused_and_an_equal_one_passes() {
    let gate = Gate::new();
    assert_eq!(gate.write("a", token(33), || "first"), Ok("first"));
    assert_eq!(gate.check("a", token(33)), Ok(()));
    assert_eq!(gate.check("a", token(34)), Ok(()));
    let refused = Refused { token: token(33), highest: token(34) };
    assert_eq!(gate.write("a", token(33), || panic!("it must not run")), Err(refused));
    assert_eq!(gate.check("a", token(33)), Err(refused));
    let text = refused.to_string();
    assert!(text.contains("token 33 comes too late") && text.contains("has seen 34"), "{text}");
    assert_eq!((gate.highest("a"), gate.highest("b")), (Some(token(34)), None));
}

#[test]
fn a_reader_raises_nothing() {
    let gate = Gate::new();
    assert_eq!(gate.check_read("a", token(90)), Ok(()));
    assert_eq!(gate.highest("a"), None);
    gate.check("a", token(33)).unwrap();
    assert_eq!(gate.check_read("a", token(90)), Ok(()));
    assert_eq!(gate.check("a", token(33)), Ok(()), "the reader shut out the writer");
    assert_eq!(gate.check_read("a", token(32)), Err(Refused { token: token(32), highest: token(33) }));
}

#[test]
fn slots_and_odd_names_are_resources_of_their_own() {
    let gate = Gate::new();
    for (place, name) in ["gpu/0", "gpu/1", "", " gpu/0", "gpu\0", "späť"].into_iter().enumerate() {
        gate.check(name, token(90 - u64::try_from(place).unwrap())).unwrap();
    }
}

#[test]
fn a_later_holder_waits_for_an_earlier_write_that_was_let_in() {
    let (gate, value) = (Gate::new(), Mutex::new(0));
    let (entered, has_entered) = channel();
    let (go, goes) = channel();
    within("the end of both writes", || {
        thread::scope(|scope| {
            let (gate, value) = (&gate, &value);
            scope.spawn(move || {
                gate.write("a", token(33), || {
                    entered.send(()).unwrap();
                    goes.recv_timeout(PATIENCE).unwrap();
                    *value.lock().unwrap() = 33;
                })
            });
            has_entered.recv_timeout(PATIENCE).unwrap();
            let later = scope.spawn(|| gate.write("a", token(34), || *value.lock().unwrap() = 34));
            wait_for("the later holder at the gate", || (gate.highest("a") == Some(token(34))).then_some(()));
            assert!(gate.write("a", token(33), || ()).is_err(), "an earlier holder is let in while a later one waits");
            assert_eq!(gate.write("b", token(1), || ()), Ok(()), "another resource waits as well");
            thread::sleep(Duration::from_millis(20));
            assert!(!later.is_finished());
            go.send(()).unwrap();
        })
    });
    assert_eq!(*value.lock().unwrap(), 34);
}

#[test]
fn a_write_that_panics_ends() {
    let gate = Gate::new();
    let panicked = thread::scope(|scope| scope.spawn(|| gate.write("a", token(33), || panic!("on purpose"))).join());
    assert!(panicked.is_err());
    assert_eq!(within("the next write", || gate.write("a", token(34), || ())), Ok(()));
}

#[tokio::test]
async fn writes_of_one_holder_run_at_once_and_a_dropped_wait_lets_nothing_in() {
    let gate = Arc::new(Gate::new());
    let [first, second] =
        [gate.begin_write("a", token(33)).await.unwrap(), gate.begin_write("a", token(33)).await.unwrap()];
    let waits = tokio::time::timeout(Duration::from_millis(20), gate.begin_write("a", token(34))).await;
    assert!(waits.is_err(), "it was let in beside an earlier holder");
    drop(first);
    let behind = Arc::clone(&gate);
    let behind = tokio::spawn(async move { behind.begin_write("a", token(35)).await.map(drop) });
    tokio::time::timeout(PATIENCE, async {
        while gate.highest("a") != Some(token(35)) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the last holder comes to the gate");
    let overtaken = gate.begin_write("a", token(34)).await.map(drop);
    assert_eq!(overtaken, Err(Refused { token: token(34), highest: token(35) }));
    drop(second);
    tokio::time::timeout(PATIENCE, behind).await.expect("the last holder is let in").unwrap().unwrap();
}

/// What a later holder reads once it has raised the fence, while a write of an earlier one that was let in is in flight.
fn read_after(raise: impl Fn(&Gate) -> Result<(), Refused> + Sync) -> u32 {
    let (gate, value) = (Gate::new(), Mutex::new(0));
    let ((entered, has_entered), (read, is_read)) = (channel(), channel());
    within("the end of the write", || {
        thread::scope(|scope| {
            let (gate, value) = (&gate, &value);
            scope.spawn(move || {
                gate.write("a", token(33), || {
                    entered.send(()).unwrap();
                    _ = is_read.recv_timeout(Duration::from_millis(300)); // a raise that waits for this reads later
                    *value.lock().unwrap() = 33;
                })
            });
            has_entered.recv_timeout(PATIENCE).unwrap();
            raise(gate).unwrap();
            let seen = *value.lock().unwrap();
            _ = read.send(());
            seen
        })
    })
}

#[test]
fn a_fence_is_raised_when_the_writes_of_earlier_holders_have_ended() {
    assert_eq!(read_after(|gate| gate.raise("a", write_token(34))), 33);
    assert_eq!(read_after(|gate| gate.check("a", token(34))), 0, "a check alone waits for nothing, and was not found");
    let gate = Gate::new();
    gate.raise("a", write_token(34)).unwrap();
    let refused = Refused { token: token(33), highest: token(34) };
    assert_eq!((gate.raise("a", write_token(33)), gate.write("a", token(33), || ())), (Err(refused), Err(refused)));
    assert_eq!((gate.raise("a", write_token(34)), gate.write("a", token(34), || ())), (Ok(()), Ok(())));
}

#[tokio::test]
async fn an_admission_ends_with_its_last_clone_and_a_raise_can_be_awaited() {
    let gate = Gate::new();
    let first = gate.begin_write("a", token(33)).await.unwrap();
    let second = first.clone();
    drop(first);
    let raise = || tokio::time::timeout(Duration::from_millis(20), gate.raise_async("a", write_token(34)));
    assert!(raise().await.is_err(), "a clone is not counted");
    drop(second);
    let raised = tokio::time::timeout(PATIENCE, gate.raise_async("a", write_token(34))).await;
    raised.expect("the write has ended").unwrap();
}
