//! How long a lease of etcd lasts at least, if the servers hear nothing more from the client.

use std::time::Duration;

use lock_core::Moment;

/// An answer to a request.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The raft term of its entry in the log. `None` for a request that only reads: a server that was suspended may answer it late.
    pub term: Option<u64>,
    /// When the request was sent.
    pub sent: Moment,
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
}

/// The proof that the leader has renewed a lease.
///
/// The leader alone counts leases down, in its memory, and a new leader begins anew with all of them. A server that was the leader answers
/// renewals until it finds out that it is not, and the new leader knows nothing of them. It also has the leases ended that it takes for
/// ended, although the new leader has renewed them.
///
/// So the renewals of a lease count only in the term in which it was granted: earlier leaders do not know it, and there are no later ones. A
/// renewal counts, from when it was sent, once a request that was sent after its answer is in the log of this term, too. In a later
/// term, the entry of the lease has to be moved to another one.
///
/// # Source
/// etcd: `LeaseRenew`, and issues 12528, 15247 and 20418.
#[derive(Debug)]
pub struct LeaseProof {
    until: Moment,
    granted_in: Option<u64>,
    renewal: Option<Renewal>,
}

impl LeaseProof {
    /// A lease that lasts until then: the leader has ordered its grant, in this raft term, if that is known.
    pub const fn new(until: Moment, granted_in: Option<u64>) -> Self {
        Self { until, granted_in, renewal: None }
    }

    /// The term in which the lease was granted, if that is known.
    pub const fn granted_in(&self) -> Option<u64> {
        self.granted_in
    }

    /// A renewal was answered.
    pub fn renewed(&mut self, renewal: Renewal) {
        self.renewal = Some(renewal);
    }

    /// Counts the latest renewal, if this answer proves it.
    pub fn prove(&mut self, seen: &Seen) {
        let is_in_term = seen.term.is_some() && self.granted_in == seen.term;
        if let Some(renewal) = self.renewal.take_if(|renewal| is_in_term && renewal.answered <= seen.sent) {
            self.until = self.until.max(renewal.sent + renewal.ttl);
        }
    }

    /// Whether a renewal was answered that is not proved yet.
    pub const fn is_pending(&self) -> bool {
        self.renewal.is_some()
    }

    /// How long the lease is sure to last.
    pub fn lasts(&self, now: Moment) -> Duration {
        self.until.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(100);

    fn at(step: u64) -> Moment {
        Moment::ORIGIN + Duration::from_secs(1000 + step)
    }

    fn seen(term: u64, sent: u64) -> Seen {
        Seen { term: Some(term), sent: at(sent) }
    }

    /// From when a renewal counts, of a lease that was granted in this term.
    fn since(granted_in: Option<u64>, after: Seen) -> Moment {
        let mut proof = LeaseProof::new(at(0) + TTL, granted_in);
        proof.renewed(Renewal { sent: at(3), answered: at(4), ttl: TTL });
        proof.prove(&after);
        at(0) + proof.lasts(at(0)).saturating_sub(TTL)
    }

    #[test]
    fn a_renewal_counts_once_a_later_request_was_ordered_in_the_term_of_the_grant() {
        assert_eq!(since(Some(2), seen(2, 5)), at(3), "from when it was sent");
        assert_eq!(since(Some(2), seen(3, 5)), at(0), "another term");
        assert_eq!(since(Some(1), seen(2, 5)), at(0), "an earlier leader knows the lease");
        assert_eq!(since(None, seen(2, 5)), at(0), "one may know it");
        for granted_in in [Some(2), None] {
            assert_eq!(since(granted_in, Seen { term: None, ..seen(2, 5) }), at(0), "nothing was written into the log");
        }
        assert_eq!(since(Some(2), seen(2, 3)), at(0), "sent before the renewal was answered");
    }

    #[test]
    fn a_proof_counts_once_and_takes_nothing_back() {
        let mut proof = LeaseProof::new(at(50) + TTL, Some(1));
        proof.renewed(Renewal { sent: at(3), answered: at(4), ttl: TTL });
        proof.prove(&seen(1, 5));
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
        Order,
    }

    fn twin(ignored: Ignored, proof: &mut LeaseProof, seen: &Seen) {
        let (mut seen, Some(renewal)) = (*seen, &mut proof.renewal) else { return };
        match ignored {
            Ignored::Nothing => {}
            Ignored::Terms => seen.term = Some(1),
            Ignored::After | Ignored::Order => renewal.answered = at(0),
        }
        proof.prove(&seen);
    }

    /// Plays these requests, each sent one step after the other. Returns false if the client relies on a renewal that the leader has not heard
    /// of. Also returns whether it relied on any.
    fn play(ignored: Ignored, course: Course, requests: &[Request]) -> (bool, bool) {
        let (mut proof, mut relied) = (LeaseProof::new(at(0) + TTL, Some(1)), false);
        let sent = || (1..).zip(requests).filter_map(|(sent, request)| Some((sent, (*request)?)));
        let renewed = || sent().filter(|(_, (renews, ..))| *renews).map(|(sent, (_, wait, _))| sent + wait);
        for now in 1..=u64::from(STEPS) + LATE {
            for (sent, (renews, wait, back)) in sent() {
                if sent + wait + back != now {
                    continue;
                }
                if renews {
                    proof.renewed(Renewal { sent: at(sent), answered: at(now), ttl: TTL });
                } else if let Some(term) = course.term(sent + wait) {
                    twin(ignored, &mut proof, &seen(term, sent));
                }
                if ignored == Ignored::After && renews {
                    twin(ignored, &mut proof, &seen(1, sent));
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
        assert_eq!(explore(Ignored::Order), (false, true), "the other request may be sent before the answer");
    }
}
