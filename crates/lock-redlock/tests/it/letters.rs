//! Letters that arrive one by one, in the order that a test wants.

use std::collections::VecDeque;
use std::time::Duration;

use lock_core::node::{Ask, BlockingQuorumNode, Epoch, Told};
use lock_core::{Answer, BackendError, Claim, Effect, ErrorKind, Operation, Terms, Ttl};
use lock_host::Clock;
use lock_redlock::quorum::{Acquire, Errand, Guard, Letter, Purpose, Quorum, Report};

use crate::support::{MAX_TTL, Rig, WITHIN, claim, votes};

/// How long a claim may take, where nothing answers.
const PATIENCE: Duration = Duration::from_secs(60);

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
        let (mut guard, looks) = self.begin_pass();
        looks.iter().for_each(|letter| self.deliver(&mut guard, letter));
        self.deliver_all(&mut guard);
        guard.take_verdict().unwrap().unwrap()
    }

    fn acquire(&mut self, owner: u8) -> Acquire {
        self.acquire_for(owner, Ttl::DEFAULT)
    }

    fn acquire_for(&mut self, owner: u8, ttl: Ttl) -> Acquire {
        Acquire::begin(
            &mut self.quorum,
            self.rig.clock.now(),
            &Claim { terms: Terms::exclusive(ttl), ..claim(owner) },
            PATIENCE,
        )
    }

    /// A pass of the guard that has looked at no node yet, and its looks.
    fn begin_pass(&mut self) -> (Guard, Vec<Letter>) {
        let random = || Epoch::from_random(lock_host::random_u64().unwrap());
        let epochs = self.rig.nodes.iter().map(|_| random()).collect();
        let mut guard = Guard::begin(&mut self.quorum, self.rig.clock.now(), Purpose::Watch, WITHIN, epochs);
        let looks = std::iter::from_fn(|| guard.next_letter()).collect();
        (guard, looks)
    }

    fn deliver<E: Errand>(&mut self, errand: &mut E, letter: &Letter) {
        let outcome = BlockingQuorumNode::ask(&self.rig.nodes[letter.node.0], &letter.ask, letter.within);
        errand.heard(&mut self.quorum, self.rig.clock.now(), letter, outcome);
    }

    fn deliver_all<E: Errand>(&mut self, errand: &mut E) {
        let all: Vec<_> = (0..self.rig.nodes.len()).collect();
        self.deliver_to(errand, &all);
    }

    /// Delivers those of these letters that are for this node.
    fn deliver_kept<E: Errand>(&mut self, errand: &mut E, kept: &[Letter], node: usize) {
        kept.iter().filter(|letter| letter.node.0 == node).for_each(|letter| self.deliver(errand, letter));
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

const SHORT: Duration = Duration::from_millis(200);
/// Longer than the shortest dwell.
const SLOW: Duration = Duration::from_millis(2500);

/// Three nodes that know of a short ttl, and have no notes of each other any more.
fn knows_short() -> Rig {
    let rig = Rig::founded(3);
    rig.clock.advance(Duration::from_secs(500 * 24 * 60 * 60));
    let mut client = Slow::connected(&rig);
    let mut errand = client.acquire_for(250, Ttl::new(SHORT).unwrap());
    client.deliver_all(&mut errand);
    assert!(is_granted(&mut errand));
    rig.clock.advance(SHORT * 2);
    rig
}

fn is_granted(errand: &mut Acquire) -> bool {
    matches!(errand.take_verdict(), Some(Ok(Answer::Granted { .. })))
}

/// A node forgets, and comes back as soon as the others' word for it allows. Nobody could note that it abstained.
fn forget_and_come_back(rig: &Rig, node: usize) {
    let mut client = Slow::connected(rig);
    rig.nodes[node].forget();
    let mut pass_by = || {
        let (mut pass, looks) = client.begin_pass();
        looks.iter().for_each(|letter| client.deliver(&mut pass, letter));
        while let Some(letter) = pass.next_letter() {
            if matches!(letter.ask, Ask::Note { .. }) {
                let told = "no room for a note";
                let full = BackendError::new("memory", Operation::Connect, ErrorKind::Unavailable, Effect::None, told);
                pass.heard(&mut client.quorum, rig.clock.now(), &letter, Err(full));
            } else {
                client.deliver(&mut pass, &letter);
            }
        }
        votes(&pass.take_verdict().unwrap().unwrap())[node]
    };
    assert!(!pass_by());
    rig.clock.advance(SLOW);
    assert!(pass_by(), "its dwell is over");
}

/// One asks with a long ttl, is granted by node 1 and, after that has forgotten, by node 2. The other has 0 and 1 meanwhile.
fn grant_twice(rig: &Rig, one: &mut Slow<'_>, first: &mut Acquire) -> [bool; 2] {
    let claims: Vec<_> = std::iter::from_fn(|| first.next_letter()).collect();
    one.deliver_kept(first, &claims, 1);
    forget_and_come_back(rig, 1);
    let mut other = Slow::connected(rig);
    let mut second = other.acquire_for(2, Ttl::new(SHORT).unwrap());
    other.deliver_to(&mut second, &[0, 1]);
    one.deliver_kept(first, &claims, 2);
    one.deliver_to(first, &[1, 2]);
    [is_granted(first), is_granted(&mut second)]
}

/// No ttl is known yet when a pass looks at the others. Before it comes to the node that forgets, one is announced, and the
/// node grants a claim for it.
#[test]
fn a_node_is_not_installed_by_the_look_that_found_it_forgetful() {
    let rig = Rig::founded(3);
    let (mut one, mut other) = (Slow::connected(&rig), Slow::connected(&rig));
    let (mut pass, looks) = other.begin_pass();
    other.deliver_kept(&mut pass, &looks, 1);
    other.deliver_kept(&mut pass, &looks, 2);
    let mut first = one.acquire(1);
    let announcements: Vec<_> = std::iter::from_fn(|| first.next_letter()).collect();
    one.deliver_kept(&mut first, &announcements, 0);
    one.deliver_kept(&mut first, &announcements, 1);
    let claims: Vec<_> = std::iter::from_fn(|| first.next_letter()).collect();
    one.deliver_kept(&mut first, &claims, 0);
    rig.nodes[0].forget();
    other.deliver_kept(&mut pass, &looks, 0);
    other.deliver_all(&mut pass);
    let report = pass.take_verdict().unwrap().unwrap();
    let mut second = other.acquire(2);
    other.deliver_to(&mut second, &[0, 2]);
    one.deliver_kept(&mut first, &claims, 1);
    assert_ne!([is_granted(&mut first), is_granted(&mut second)], [true, true], "two holders");
    assert!(report.nodes[0].votes_in.is_some_and(|left| left >= Duration::from_secs(2)), "{report:?}");
}

/// The node that was told first has forgotten it, and votes again, before the second one is told.
#[test]
fn nodes_that_were_told_of_a_ttl_at_different_times_are_no_majority() {
    let rig = knows_short();
    let mut one = Slow::connected(&rig);
    let mut first = one.acquire(1);
    let announcements: Vec<_> = std::iter::from_fn(|| first.next_letter()).collect();
    assert!(announcements.iter().all(|letter| letter.within < Duration::from_secs(2)), "{announcements:?}");
    one.deliver_kept(&mut first, &announcements, 0);
    forget_and_come_back(&rig, 0);
    one.deliver_kept(&mut first, &announcements, 1);
    let told = first.take_verdict();
    assert_ne!(grant_twice(&rig, &mut one, &mut first), [true, true], "two holders");
    let error = told.expect("it took too long").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}

/// Another client's announcement reaches node 0 before the look does, and node 1 long after, when the first has forgotten it.
#[test]
fn what_a_slow_look_saw_at_different_times_is_not_known_to_a_majority() {
    let rig = knows_short();
    let (mut one, mut gone) = (Slow::connected(&rig), Slow::connected(&rig));
    let mut announced = gone.acquire(9);
    let announcements: Vec<_> = std::iter::from_fn(|| announced.next_letter()).collect();
    gone.deliver_kept(&mut announced, &announcements, 0);
    let (mut pass, looks) = one.begin_pass();
    one.deliver_kept(&mut pass, &looks, 0);
    forget_and_come_back(&rig, 0);
    gone.deliver_kept(&mut announced, &announcements, 1);
    one.deliver_kept(&mut pass, &looks, 1);
    one.deliver_kept(&mut pass, &looks, 2);
    one.deliver_all(&mut pass);
    assert!(pass.take_verdict().unwrap().is_ok());
    // It looks again only where a node is known not to vote.
    let mut first = one.acquire(1);
    assert_ne!(grant_twice(&rig, &mut one, &mut first), [true, true], "two holders");
}
