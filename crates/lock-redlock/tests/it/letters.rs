//! Letters that arrive one by one, in the order that a test wants.

use std::collections::VecDeque;
use std::time::Duration;

use lock_core::node::{Ask, BlockingQuorumNode, Epoch, Told};
use lock_core::{Answer, Ttl};
use lock_host::Clock;
use lock_redlock::quorum::{Acquire, Errand, Guard, Letter, Purpose, Quorum, Report};

use crate::support::{MAX_TTL, Rig, WITHIN, claim};

/// A client whose letters arrive when they are delivered.
struct Slow<'a> {
    rig: &'a Rig,
    quorum: Quorum,
}

impl<'a> Slow<'a> {
    fn connected(rig: &'a Rig) -> Self {
        let addresses: Vec<_> = (0..rig.nodes.len()).map(|index| format!("node-{index}")).collect();
        let mut slow = Self { rig, quorum: Quorum::new(&addresses, Ttl::new(MAX_TTL).unwrap()).unwrap() };
        slow.watch();
        slow
    }

    fn watch(&mut self) -> Report {
        let random = || Epoch::from_random(lock_host::random_u64().unwrap());
        let epochs = self.rig.nodes.iter().map(|_| random()).collect();
        let mut guard = Guard::begin(&mut self.quorum, self.rig.clock.now(), Purpose::Watch, WITHIN, epochs);
        while let Some(letter) = guard.next_letter() {
            self.deliver(&mut guard, &letter);
        }
        guard.take_verdict().unwrap().unwrap()
    }

    fn acquire(&mut self, owner: u8) -> Acquire {
        Acquire::begin(&mut self.quorum, self.rig.clock.now(), &claim(owner), WITHIN)
    }

    fn deliver<E: Errand>(&mut self, errand: &mut E, letter: &Letter) {
        let outcome = BlockingQuorumNode::ask(&self.rig.nodes[letter.node.0], &letter.ask, letter.within);
        errand.heard(&mut self.quorum, self.rig.clock.now(), letter, outcome);
    }

    /// Delivers everything that is for these nodes.
    fn deliver_to<E: Errand>(&mut self, errand: &mut E, nodes: &[usize]) -> VecDeque<Letter> {
        let mut kept = VecDeque::new();
        while let Some(letter) = errand.next_letter() {
            if nodes.contains(&letter.node.0) {
                self.deliver(errand, &letter);
            } else {
                kept.push_back(letter);
            }
        }
        kept
    }
}

/// The first claim of a deployment is under way: one node has granted it, and forgets. The others do not know of it, so the
/// dwell must not be shorter than its ttl.
#[test]
fn a_node_that_forgets_a_claim_under_way_abstains_for_its_ttl() {
    let rig = Rig::founded(3);
    let (mut one, mut other) = (Slow::connected(&rig), Slow::connected(&rig));
    let mut first = one.acquire(1);
    let late = one.deliver_to(&mut first, &[0]);
    rig.nodes[0].forget();
    rig.clock.advance(Duration::from_millis(20));
    other.watch();
    rig.clock.advance(Duration::from_secs(1));
    other.watch();
    let mut second = other.acquire(2);
    other.deliver_to(&mut second, &[0, 2]);
    for letter in late {
        if letter.node.0 == 1 {
            one.deliver(&mut first, &letter);
        }
    }
    one.deliver_to(&mut first, &[0, 1]);
    let granted = |verdict| matches!(verdict, Some(Ok(Answer::Granted { .. })));
    let both = [granted(first.take_verdict()), granted(second.take_verdict())];
    assert_ne!(both, [true, true], "two holders");
}

/// Once a majority knows of its ttl, a claim goes out at once.
#[test]
fn a_ttl_is_announced_once() {
    let rig = Rig::founded(3);
    let mut client = Slow::connected(&rig);
    for (owner, letters) in [(1, 6), (2, 3)] {
        let mut errand = client.acquire(owner);
        let mut count = 0;
        while let Some(letter) = errand.next_letter() {
            count += 1;
            client.deliver(&mut errand, &letter);
        }
        assert_eq!(count, letters, "owner {owner}");
        rig.clock.advance(Ttl::DEFAULT.get());
    }
    let mut next = Slow::connected(&rig);
    let mut errand = next.acquire(3);
    let letters: Vec<_> = std::iter::from_fn(|| errand.next_letter()).collect();
    let claims = letters.iter().filter(|letter| matches!(letter.ask, Ask::Acquire { .. })).count();
    assert_eq!((letters.len(), claims), (3, 3), "others learn it when they connect: {letters:?}");
}

/// The nodes were told, and have forgotten it when their answers arrive. They vote again, for a shorter ttl.
#[test]
fn an_announcement_does_not_count_in_a_later_epoch() {
    let rig = Rig::founded(3);
    let mut client = Slow::connected(&rig);
    let mut errand = client.acquire(1);
    let letters: Vec<_> = std::iter::from_fn(|| errand.next_letter()).collect();
    let ask = |letter: &Letter| BlockingQuorumNode::ask(&rig.nodes[letter.node.0], &letter.ask, letter.within);
    let answers: Vec<_> = letters.iter().map(ask).collect();
    rig.nodes.iter().for_each(lock_memory::node::MemoryNode::forget);
    client.watch();
    rig.clock.advance(Duration::from_secs(310));
    client.watch();
    for (letter, answer) in letters.iter().zip(answers) {
        assert!(matches!(answer, Ok(Told::Fenced(_))), "{answer:?}");
        errand.heard(&mut client.quorum, rig.clock.now(), letter, answer);
    }
    assert!(errand.next_letter().is_none(), "nobody knows of the ttl");
    assert!(matches!(errand.take_verdict(), Some(Err(_))));
}
