//! Requests that arrive one by one, in an order that the test chooses.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::node::{Ask, BlockingQuorumNode, Told};
use lock_core::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Evidence, Operation, ReleaseRequest, Terms, Ttl,
};
use lock_host::Clock;
use lock_redlock::HostEpochs;
use lock_redlock::quorum::{Outcome, Outgoing, Output, Purpose, Quorum, Report, Request, RequestId, Verdict};

use crate::support::{MAX_TTL, Rig, WITHIN, claim, votes};

/// How long a claim may take if nothing answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client whose requests arrive when they are delivered.
struct Slow<'a> {
    rig: &'a Rig,
    quorum: Quorum,
    /// The requests that were not delivered yet.
    outgoing: Vec<Outgoing>,
    verdicts: BTreeMap<RequestId, Verdict>,
}

impl<'a> Slow<'a> {
    fn connected(rig: &'a Rig) -> Self {
        let addresses: Vec<_> = (0..rig.nodes.len()).map(|index| format!("node-{index}")).collect();
        let quorum = Quorum::new(&addresses, Ttl::new(MAX_TTL).unwrap(), Box::new(HostEpochs)).unwrap();
        let mut slow = Self { rig, quorum, outgoing: Vec::new(), verdicts: BTreeMap::new() };
        slow.watch();
        slow
    }

    fn watch(&mut self) -> Report {
        let pass = self.begin_pass();
        self.deliver_all(pass);
        self.report(pass)
    }

    fn acquire(&mut self, owner: u8) -> RequestId {
        self.acquire_for(owner, Ttl::DEFAULT)
    }

    fn acquire_for(&mut self, owner: u8, ttl: Ttl) -> RequestId {
        self.begin(Request::Acquire(Claim { terms: Terms::exclusive(ttl), ..claim(owner) }), PATIENCE)
    }

    /// A recovery pass that has looked at no node yet.
    fn begin_pass(&mut self) -> RequestId {
        self.begin(Request::Pass(Purpose::Watch), WITHIN)
    }

    fn begin(&mut self, request: Request, within: Duration) -> RequestId {
        let id = self.quorum.begin(self.rig.clock.now(), request, within);
        self.take_outputs();
        id
    }

    fn take_outputs(&mut self) {
        while let Some(output) = self.quorum.poll() {
            match output {
                Output::Send(sent) => self.outgoing.push(sent),
                Output::Done(id, verdict) => {
                    let earlier = self.verdicts.insert(id, verdict);
                    assert!(earlier.is_none(), "{id:?} has two verdicts: {earlier:?}");
                }
            }
        }
    }

    /// What this request has to send now.
    fn take(&mut self, id: RequestId) -> Vec<Outgoing> {
        self.outgoing.extract_if(.., |sent| sent.request == id).collect()
    }

    fn heard(&mut self, sent: Outgoing, outcome: Outcome) {
        self.quorum.heard(self.rig.clock.now(), sent, outcome);
        self.take_outputs();
    }

    fn deliver(&mut self, sent: Outgoing) {
        let outcome = self.rig.ask(&sent);
        self.heard(sent, outcome);
    }

    fn deliver_all(&mut self, id: RequestId) {
        let all: Vec<_> = (0..self.rig.nodes.len()).collect();
        let kept = self.deliver_to(id, &all);
        assert!(kept.is_empty(), "{kept:?}");
    }

    /// Delivers those of these requests that are for this node.
    fn deliver_kept(&mut self, kept: &mut Vec<Outgoing>, node: usize) {
        kept.extract_if(.., |sent| sent.node.0 == node).for_each(|sent| self.deliver(sent));
    }

    /// Delivers the parts of a request that are for these nodes, and returns the rest.
    fn deliver_to(&mut self, id: RequestId, nodes: &[usize]) -> Vec<Outgoing> {
        let mut kept = Vec::new();
        while let Some(next) = self.outgoing.iter().position(|sent| sent.request == id) {
            let sent = self.outgoing.remove(next);
            if nodes.contains(&sent.node.0) {
                self.deliver(sent);
            } else {
                kept.push(sent);
            }
        }
        kept
    }

    fn verdict(&mut self, id: RequestId) -> Option<Result<Answer, BackendError>> {
        let Verdict::Acquire(verdict) = self.verdicts.remove(&id)? else { panic!("{id:?} is no claim") };
        Some(verdict)
    }

    fn is_granted(&mut self, id: RequestId) -> bool {
        matches!(self.verdict(id), Some(Ok(Answer::Granted { .. })))
    }

    fn report(&mut self, pass: RequestId) -> Report {
        let verdict = self.verdicts.remove(&pass);
        let Some(Verdict::Pass(Ok(report))) = verdict else { panic!("a pass ended with {verdict:?}") };
        report
    }
}

impl Rig {
    fn ask(&self, sent: &Outgoing) -> Outcome {
        BlockingQuorumNode::ask(&self.nodes[sent.node.0], &sent.ask, sent.within)
    }
}

/// The first claim of a deployment is in flight: one node has granted it, and forgets. The others do not know of it, so the
/// dwell must not be shorter than its ttl.
#[test]
fn a_node_that_forgets_a_claim_in_flight_abstains_for_its_ttl() {
    let rig = Rig::founded(3);
    let (mut one, mut other) = (Slow::connected(&rig), Slow::connected(&rig));
    let first = one.acquire(1);
    let mut late = one.deliver_to(first, &[0]);
    rig.nodes[0].forget();
    rig.clock.advance(Duration::from_millis(20));
    other.watch();
    rig.clock.advance(Duration::from_secs(1));
    other.watch();
    let second = other.acquire(2);
    other.deliver_to(second, &[0, 2]);
    one.deliver_kept(&mut late, 1);
    one.deliver_to(first, &[0, 1]);
    assert_ne!([one.is_granted(first), other.is_granted(second)], [true, true], "two holders");
}

/// Once a majority knows of its ttl, a claim goes out at once.
#[test]
fn a_ttl_is_announced_once() {
    let rig = Rig::founded(3);
    let mut client = Slow::connected(&rig);
    for (owner, requests) in [(1, 6), (2, 3)] {
        let acquire = client.acquire(owner);
        let mut count = 0;
        while let Some(sent) = client.outgoing.pop() {
            count += 1;
            client.deliver(sent);
        }
        assert!(client.is_granted(acquire));
        assert_eq!(count, requests, "owner {owner}");
        rig.clock.advance(Ttl::DEFAULT.get());
    }
    let mut next = Slow::connected(&rig);
    let third = next.acquire(3);
    let sent = next.take(third);
    let claims = sent.iter().filter(|sent| matches!(sent.ask, Ask::Acquire { .. })).count();
    assert_eq!((sent.len(), claims), (3, 3), "others learn it when they connect: {sent:?}");
}

/// The nodes learned of the ttl, and have forgotten it when their answers arrive. They vote again, for a shorter ttl.
#[test]
fn an_announcement_does_not_count_in_a_later_epoch() {
    let rig = Rig::founded(3);
    let mut client = Slow::connected(&rig);
    let acquire = client.acquire(1);
    let announcements = client.take(acquire);
    let answers: Vec<_> = announcements.iter().map(|sent| rig.ask(sent)).collect();
    rig.nodes.iter().for_each(lock_memory::node::MemoryNode::forget);
    client.watch();
    rig.clock.advance(Duration::from_secs(310));
    client.watch();
    for (sent, answer) in announcements.into_iter().zip(answers) {
        assert!(matches!(answer, Ok(Told::Fenced(_))), "{answer:?}");
        client.heard(sent, answer);
    }
    assert!(client.take(acquire).is_empty(), "nobody knows of the ttl");
    assert!(matches!(client.verdict(acquire), Some(Err(_))));
}

const SHORT: Duration = Duration::from_millis(200);
/// Longer than the shortest dwell.
const SLOW: Duration = Duration::from_millis(2500);

/// Three nodes that know of a short ttl, and no longer have records about each other.
fn knows_short() -> Rig {
    let rig = Rig::founded(3);
    rig.clock.advance(Duration::from_secs(500 * 24 * 60 * 60));
    let mut client = Slow::connected(&rig);
    let acquire = client.acquire_for(250, Ttl::new(SHORT).unwrap());
    client.deliver_all(acquire);
    assert!(client.is_granted(acquire));
    rig.clock.advance(SHORT * 2);
    rig
}

/// A node forgets, and votes again as soon as the others' answers allow. Nobody could record that it abstained.
fn forget_and_come_back(rig: &Rig, node: usize) {
    let mut client = Slow::connected(rig);
    rig.nodes[node].forget();
    let mut votes_after_pass = || {
        let pass = client.begin_pass();
        while let Some(next) = client.outgoing.iter().position(|sent| sent.request == pass) {
            let sent = client.outgoing.remove(next);
            if matches!(sent.ask, Ask::Record { .. }) {
                let told = "no room for a record";
                let full = BackendError::new("memory", Operation::Connect, ErrorKind::Unavailable, Effect::None, told);
                client.heard(sent, Err(full));
            } else {
                client.deliver(sent);
            }
        }
        votes(&client.report(pass))[node]
    };
    assert!(!votes_after_pass());
    rig.clock.advance(SLOW);
    assert!(votes_after_pass(), "its dwell is over");
}

/// One client asks with a long ttl. Node 1 grants it, and forgets, and then node 2 grants it. The other client has 0 and 1.
fn grant_twice(rig: &Rig, one: &mut Slow<'_>, first: RequestId) -> [bool; 2] {
    let mut claims = one.take(first);
    one.deliver_kept(&mut claims, 1);
    forget_and_come_back(rig, 1);
    let mut other = Slow::connected(rig);
    let second = other.acquire_for(2, Ttl::new(SHORT).unwrap());
    other.deliver_to(second, &[0, 1]);
    one.deliver_kept(&mut claims, 2);
    one.deliver_to(first, &[1, 2]);
    [one.is_granted(first), other.is_granted(second)]
}

/// No ttl is known yet when a pass looks at the others. Before it comes to the node that forgets, one is announced, and the
/// node grants a claim for it.
#[test]
fn a_node_is_not_installed_by_the_look_that_found_it_forgetful() {
    let rig = Rig::founded(3);
    let (mut one, mut other) = (Slow::connected(&rig), Slow::connected(&rig));
    let pass = other.begin_pass();
    let mut looks = other.take(pass);
    other.deliver_kept(&mut looks, 1);
    other.deliver_kept(&mut looks, 2);
    let first = one.acquire(1);
    let mut announcements = one.take(first);
    one.deliver_kept(&mut announcements, 0);
    one.deliver_kept(&mut announcements, 1);
    let mut claims = one.take(first);
    one.deliver_kept(&mut claims, 0);
    rig.nodes[0].forget();
    other.deliver_kept(&mut looks, 0);
    other.deliver_all(pass);
    let report = other.report(pass);
    let second = other.acquire(2);
    other.deliver_to(second, &[0, 2]);
    one.deliver_kept(&mut claims, 1);
    assert_ne!([one.is_granted(first), other.is_granted(second)], [true, true], "two holders");
    assert!(report.nodes[0].votes_in.is_some_and(|left| left >= Duration::from_secs(2)), "{report:?}");
}

/// The node that learns of the ttl first forgets it, and votes again, before the second one learns of it.
#[test]
fn nodes_that_learned_of_a_ttl_at_different_times_are_no_majority() {
    let rig = knows_short();
    let mut one = Slow::connected(&rig);
    let first = one.acquire(1);
    let mut announcements = one.take(first);
    assert!(announcements.iter().all(|sent| sent.within < Duration::from_secs(2)), "{announcements:?}");
    one.deliver_kept(&mut announcements, 0);
    forget_and_come_back(&rig, 0);
    one.deliver_kept(&mut announcements, 1);
    let told = one.verdict(first);
    assert_ne!(grant_twice(&rig, &mut one, first), [true, true], "two holders");
    let error = told.expect("it took too long").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}

/// Another client's announcement reaches node 0 before the look does, and node 1 long after, when the first has forgotten it.
#[test]
fn answers_of_a_slow_look_at_different_times_are_no_majority() {
    let rig = knows_short();
    let (mut one, mut gone) = (Slow::connected(&rig), Slow::connected(&rig));
    let announced = gone.acquire(9);
    let mut announcements = gone.take(announced);
    gone.deliver_kept(&mut announcements, 0);
    let pass = one.begin_pass();
    let mut looks = one.take(pass);
    one.deliver_kept(&mut looks, 0);
    forget_and_come_back(&rig, 0);
    gone.deliver_kept(&mut announcements, 1);
    one.deliver_kept(&mut looks, 1);
    one.deliver_kept(&mut looks, 2);
    one.deliver_all(pass);
    one.report(pass);
    // It looks again only where a node is known not to vote.
    let first = one.acquire(1);
    assert_ne!(grant_twice(&rig, &mut one, first), [true, true], "two holders");
}

/// A claim whose outcome nobody will report may still arrive. Its release leaves a tombstone for as long as a lease lasts.
#[test]
fn a_claim_that_is_forgotten_may_still_arrive() {
    let rig = Rig::in_use(3);
    let mut client = Slow::connected(&rig);
    let first = client.acquire(1);
    for sent in client.take(first) {
        client.quorum.forget(rig.clock.now(), sent);
    }
    assert!(client.quorum.is_quiet(), "nothing is waited for");
    let Claim { name, owner, terms, .. } = claim(1);
    let request =
        ReleaseRequest { name, owner, terms, certainty: Certainty::Answered, keep: None, evidence: Evidence::Nothing };
    let release = client.begin(Request::Release(request), WITHIN);
    for sent in client.take(release) {
        let Ask::Release(told) = &sent.ask else { panic!("{sent:?}") };
        assert_eq!((told.certainty, told.terms.ttl.get()), (Certainty::Unknown, MAX_TTL), "{sent:?}");
        client.deliver(sent);
    }
    assert!(client.verdicts.remove(&release).is_some());
}

/// A verb found a node that does not vote. One pass runs at a time, and belongs to no request.
#[test]
fn a_pass_begins_when_it_is_due() {
    let rig = Rig::in_use(3);
    let mut client = Slow::connected(&rig);
    rig.nodes[0].forget();
    rig.clock.advance(Duration::from_secs(2));
    let mut looks = Vec::new();
    for owner in [1, 2] {
        let acquire = client.acquire(owner);
        client.deliver_all(acquire);
        assert!(client.verdict(acquire).is_some_and(|verdict| verdict.is_ok()));
        looks.append(&mut client.outgoing);
    }
    let asked: Vec<_> = looks.iter().map(|sent| (sent.node.0, matches!(sent.ask, Ask::Look))).collect();
    assert_eq!(asked, [(0, true), (1, true), (2, true)], "{looks:?}");
    let pass = looks[0].request;
    looks.into_iter().for_each(|sent| client.deliver(sent));
    client.deliver_all(pass);
    assert_eq!(votes(&client.report(pass)), [false, true, true]);
}
