//! How long a lease of etcd lasts at least, if the servers hear nothing more from the client.

use std::time::Duration;

use lock_core::Moment;

/// An answer to a request that the leader has ordered.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The connection, or the number of the address. It is another one after each change of servers.
    pub server: usize,
    /// The server that has answered. There may be several behind one address.
    pub member: u64,
    /// The raft term in which it did.
    pub term: u64,
    /// When the request was sent.
    pub sent: Moment,
    /// When it was answered.
    pub answered: Moment,
}

impl Seen {
    /// Whether both are answers of one server in one term.
    fn suits(&self, other: &Self) -> bool {
        (self.server, self.member, self.term) == (other.server, other.member, other.term)
    }
}

/// A renewal that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Renewal {
    /// When it was sent.
    pub sent: Moment,
    /// When it was answered.
    pub answered: Moment,
    /// How long the lease then lasts.
    pub ttl: Duration,
    /// The latest answer of the server that it was sent to, if there was one.
    pub before: Option<Seen>,
    /// The member that has answered.
    pub by: u64,
}

/// The proof that the leader has renewed a lease.
///
/// The leader alone counts leases down, in its memory, and a new leader begins anew with all of them. A server that was the leader answers
/// renewals until it finds out that it is not, and the new leader knows nothing of them. So a renewal counts, from when it was sent, only if the
/// same server has answered requests that were ordered in one raft term before and after it: one was answered before the renewal was
/// sent, and the other was sent after the renewal was answered. In between, that server knew who led.
///
/// # Source
/// etcd: `LeaseRenew`, and issue 15247.
#[derive(Debug)]
pub struct LeaseProof {
    until: Moment,
    renewal: Option<Renewal>,
}

impl LeaseProof {
    /// A lease that lasts until then: the leader has ordered its grant.
    pub const fn new(until: Moment) -> Self {
        Self { until, renewal: None }
    }

    /// A renewal was answered.
    pub fn renewed(&mut self, renewal: Renewal) {
        self.renewal = Some(renewal);
    }

    /// Counts the latest renewal, if this answer proves it.
    pub fn prove(&mut self, seen: &Seen) {
        if let Some(renewal) = self.renewal.take_if(|renewal| renewal.is_proved_by(seen)) {
            self.until = self.until.max(renewal.sent + renewal.ttl);
        }
    }

    /// How long the lease is sure to last.
    pub fn lasts(&self, now: Moment) -> Duration {
        self.until.since(now)
    }
}

impl Renewal {
    fn is_proved_by(&self, after: &Seen) -> bool {
        let is_before = |before: &Seen| before.answered <= self.sent && before.member == self.by;
        let before = self.before.filter(is_before);
        before.is_some_and(|before| before.suits(after)) && self.answered <= after.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(100);

    fn at(step: u64) -> Moment {
        Moment::ORIGIN + Duration::from_secs(1000 + step)
    }

    fn seen(term: u64, sent: u64, answered: u64) -> Seen {
        Seen { server: 0, member: 7, term, sent: at(sent), answered: at(answered) }
    }

    fn since(before: Option<Seen>, by: u64, after: Seen) -> Moment {
        let mut proof = LeaseProof::new(at(0) + TTL);
        proof.renewed(Renewal { sent: at(3), answered: at(4), ttl: TTL, before, by });
        proof.prove(&after);
        at(0) + proof.lasts(at(0)).saturating_sub(TTL)
    }

    #[test]
    fn a_renewal_counts_between_two_answers_of_one_server_in_one_term() {
        let (before, after) = (seen(1, 1, 2), seen(1, 5, 6));
        assert_eq!(since(Some(before), 7, after), at(3), "from when it was sent");
        assert_eq!(since(None, 7, after), at(0), "nothing was heard of the server before");
        assert_eq!(since(Some(before), 8, after), at(0), "another server behind the same address has answered it");
        assert_eq!(since(Some(before), 7, Seen { member: 8, ..after }), at(0), "and here the second request");
        assert_eq!(since(Some(before), 7, Seen { server: 3, ..after }), at(0), "another address");
        assert_eq!(since(Some(before), 7, seen(2, 5, 6)), at(0), "another term");
        assert_eq!(since(Some(seen(1, 1, 4)), 7, after), at(0), "answered after the renewal was sent");
        assert_eq!(since(Some(before), 7, seen(1, 3, 6)), at(0), "sent before the renewal was answered");
    }

    #[test]
    fn a_proof_counts_once_and_takes_nothing_back() {
        let mut proof = LeaseProof::new(at(50) + TTL);
        let renewal = Renewal { sent: at(3), answered: at(4), ttl: TTL, before: Some(seen(1, 1, 2)), by: 7 };
        proof.renewed(renewal);
        proof.prove(&seen(1, 5, 6));
        assert_eq!(proof.lasts(at(50)), TTL);
        assert!(proof.renewal.is_none());
    }

    /// How far the model plays.
    const STEPS: u32 = 4;
    /// How much later than that everything is answered.
    const LATE: u64 = 3;

    /// A request of the model's client: whether it is a renewal, and after how many steps it is carried out and then answered.
    type Request = Option<(bool, u64, u64)>;

    /// The server that the model's client asks leads in term 1, until another one is elected; it learns of that later, and leads again
    /// later still.
    #[derive(Clone, Copy)]
    struct Course {
        deposed: u64,
        learns: u64,
        back: u64,
    }

    impl Course {
        /// The term in which a request is ordered that arrives now. `None` if it cannot be.
        fn term(self, step: u64) -> Option<u64> {
            let knows = 1 + u64::from(step >= self.learns) + u64::from(step >= self.back);
            (step < self.deposed || step >= self.learns).then_some(knows)
        }

        /// When the lease was renewed last, by the leader that counts, if it has heard of renewals then.
        fn heard(self, renewed: impl Iterator<Item = u64>, now: u64) -> Moment {
            let counts = renewed.filter(|step| *step <= now && self.term(*step).is_some());
            let begun = [self.deposed, self.back].into_iter().filter(|step| *step <= now);
            counts.chain(begun).max().map_or(at(0), at)
        }
    }

    /// What a twin ignores.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Ignored {
        Nothing,
        After,
        Terms,
        OrderBefore,
        OrderAfter,
    }

    fn twin(ignored: Ignored, proof: &mut LeaseProof, seen: &Seen) {
        let mut seen = *seen;
        let Some(renewal) = &mut proof.renewal else { return };
        let before = renewal.before.get_or_insert(seen);
        match ignored {
            Ignored::Nothing => {}
            Ignored::After => (seen, renewal.answered) = (*before, before.sent),
            Ignored::Terms => seen.term = before.term,
            Ignored::OrderBefore => before.answered = at(0),
            Ignored::OrderAfter => renewal.answered = at(0),
        }
        proof.prove(&seen);
    }

    /// Plays these requests, each sent one step after the other. Returns false if the client relies on a renewal that the leader has not heard
    /// of. Also returns whether it relied on any.
    fn play(ignored: Ignored, course: Course, requests: &[Request]) -> (bool, bool) {
        let (mut proof, mut latest, mut relied) = (LeaseProof::new(at(0) + TTL), None::<Seen>, false);
        let sent = || (1..).zip(requests).filter_map(|(sent, request)| Some((sent, (*request)?)));
        let renewed = || sent().filter(|(_, (renews, ..))| *renews).map(|(sent, (_, wait, _))| sent + wait);
        let mut befores = std::collections::BTreeMap::new();
        for now in 1..=u64::from(STEPS) + LATE {
            for (sent, (renews, wait, back)) in sent() {
                if sent == now && renews {
                    befores.insert(sent, latest);
                }
                if sent + wait + back != now {
                    continue;
                }
                if renews {
                    let before = if ignored == Ignored::OrderBefore { latest } else { befores[&sent] };
                    proof.renewed(Renewal { sent: at(sent), answered: at(now), ttl: TTL, before, by: 7 });
                } else if let Some(term) = course.term(sent + wait) {
                    let seen = seen(term, sent, now);
                    latest = Some(seen);
                    twin(ignored, &mut proof, &seen);
                }
                if ignored == Ignored::After && renews {
                    twin(ignored, &mut proof, &seen(1, sent, now));
                }
            }
            let since = at(0) + proof.lasts(at(0)).saturating_sub(TTL);
            relied |= since > at(0);
            if since > course.heard(renewed(), now) {
                return (false, relied);
            }
        }
        (true, relied)
    }

    fn explore(ignored: Ignored) -> (bool, bool) {
        let kinds = [
            (false, 0, 0),
            (false, 0, 1),
            (false, 0, 3),
            (false, 1, 0),
            (true, 0, 0),
            (true, 0, 1),
            (true, 1, 0),
            (true, 1, 1),
        ];
        let choices: Vec<Request> = kinds.into_iter().map(Some).chain([None]).collect();
        let end = u64::from(STEPS) + 2;
        let courses = (1..=end).flat_map(|deposed| {
            (deposed..=end).flat_map(move |learns| (learns..=end).map(move |back| Course { deposed, learns, back }))
        });
        let courses: Vec<_> = courses.collect();
        let (mut is_safe, mut has_relied) = (true, false);
        for number in 0..choices.len().pow(STEPS) {
            let requests: Vec<_> =
                (0..STEPS).map(|place| choices[number / choices.len().pow(place) % choices.len()]).collect();
            for course in &courses {
                let (safe, relied) = play(ignored, *course, &requests);
                (is_safe, has_relied) = (is_safe && safe, has_relied || relied);
            }
        }
        (is_safe, has_relied)
    }

    #[test]
    fn nobody_relies_on_what_the_leader_has_not_heard() {
        assert_eq!(explore(Ignored::Nothing), (true, true));
        // Twins.
        assert_eq!(explore(Ignored::After), (false, true), "a renewal counts when it is answered");
        assert_eq!(explore(Ignored::Terms), (false, true), "terms are not compared");
        assert_eq!(
            explore(Ignored::OrderBefore),
            (false, true),
            "the first answer may come after the renewal was sent"
        );
        assert_eq!(explore(Ignored::OrderAfter), (false, true), "the second request may be sent before the answer");
    }
}
