//! How long a session of ZooKeeper lasts at least, if the servers hear nothing more from the client.

use std::collections::VecDeque;
use std::time::Duration;

use lock_core::{Moment, drift};

/// The proof that the leader knows the session is alive.
///
/// A session ends a timeout after the leader has last heard of it. A follower answers reads by itself, and forwards writes, which do not
/// count as signs of life at the leader: it tells the leader of them only when that pings it, at least once a tick. So a request counts from
/// the moment at which it was sent, and only once a write that was sent a tick after its answer was answered too: on its way
/// to the leader, this has followed the report.
///
/// # Source
/// ZooKeeper: `LearnerHandler` and `Leader.lead`.
#[derive(Debug)]
pub struct SessionProof {
    /// That of the session, less what two clocks may differ by.
    timeout: Duration,
    tick: Duration,
    /// From when the timeout counts.
    since: Moment,
    /// When the connection was made.
    connected: Moment,
    /// When requests were sent and answered that the leader may not have heard of.
    answered: VecDeque<(Moment, Moment)>,
}

impl SessionProof {
    /// A session that was asked for at this time. Its leader pings its followers at least once a tick.
    pub fn new(asked: Moment, timeout: Duration, tick: Duration) -> Self {
        Self {
            timeout: timeout.saturating_sub(drift(timeout)),
            tick,
            since: asked,
            connected: asked,
            answered: VecDeque::new(),
        }
    }

    /// How long a session is usually proved to last, of a client that shows signs of life several times a tick.
    pub fn proved(timeout: Duration, tick: Duration) -> Duration {
        timeout.saturating_sub(drift(timeout)).saturating_sub(tick * 3 / 2)
    }

    /// Any request was answered.
    pub fn answer(&mut self, sent: Moment, answered: Moment) {
        if sent < self.connected {
            return;
        }
        // Of those that are old, the newest is enough.
        let old = self.answered.iter().take_while(|(_, earlier)| *earlier + self.tick * 2 <= answered).count();
        self.answered.drain(..old.saturating_sub(1));
        self.answered.push_back((sent, answered));
    }

    /// A write was answered, which the leader has ordered.
    pub fn write(&mut self, sent: Moment, answered: Moment) {
        let known = self.answered.iter().take_while(|(_, answered)| *answered + self.tick <= sent).count();
        self.since = self.answered.drain(..known).map(|(earlier, _)| earlier).fold(self.since, Moment::max);
        self.answer(sent, answered);
    }

    /// The connection broke before this time, or there is a new one. What the old server has answered may never reach the leader, even what
    /// is reported only now.
    pub fn disconnect(&mut self, now: Moment) {
        self.answered.clear();
        self.connected = now;
    }

    /// Whether the session must be over: nothing has proved that it lives for three timeouts.
    pub fn is_long_over(&self, now: Moment) -> bool {
        now.since(self.since) > self.timeout * 3
    }

    /// How long the session is sure to last.
    pub fn lasts(&self, now: Moment) -> Duration {
        self.timeout.saturating_sub(now.since(self.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_answer_counts_once_the_leader_is_sure_to_have_been_told() {
        let begin = Moment::ORIGIN + SECOND * 100;
        let at = |tenths: u32| begin + SECOND / 10 * tenths;
        let mut proof = SessionProof::new(at(0), 10 * SECOND, SECOND);
        // What two clocks may differ by is not promised.
        let promised = 10 * SECOND - drift(10 * SECOND);
        assert_eq!(proof.lasts(at(10)), promised - SECOND);
        proof.answer(at(20), at(21));
        proof.write(at(30), at(31));
        assert_eq!(proof.lasts(at(31)), promised - SECOND / 10 * 31, "sent less than a tick after that answer");
        proof.write(at(31), at(32));
        assert_eq!(proof.lasts(at(32)), promised - SECOND / 10 * 12);
        proof.write(at(50), at(51));
        assert_eq!(proof.lasts(at(51)), promised - SECOND * 2, "two earlier writes were answered by then");
        assert_eq!(proof.lasts(at(500)), Duration::ZERO);
        assert!(proof.is_long_over(at(500)) && !proof.is_long_over(at(300)));
    }

    #[test]
    fn an_idle_client_remembers_little() {
        let begin = Moment::ORIGIN + SECOND * 100;
        let mut proof = SessionProof::new(begin, 10 * SECOND, SECOND);
        (1..1000).for_each(|touch| proof.answer(begin + SECOND / 4 * touch, begin + SECOND / 4 * touch));
        assert!(proof.answered.len() < 12, "{}", proof.answered.len());
        let now = begin + SECOND / 4 * 1000;
        proof.write(now, now);
        assert_eq!(proof.since, now - SECOND);
    }

    #[test]
    fn what_another_server_has_answered_proves_nothing() {
        let begin = Moment::ORIGIN + SECOND * 100;
        let mut proof = SessionProof::new(begin, 10 * SECOND, SECOND);
        proof.answer(begin + SECOND, begin + SECOND);
        proof.disconnect(begin + 2 * SECOND);
        proof.answer(begin + SECOND, begin + 3 * SECOND);
        proof.write(begin + 5 * SECOND, begin + 5 * SECOND);
        assert_eq!(proof.lasts(begin + 5 * SECOND), 5 * SECOND - drift(10 * SECOND));
    }

    /// How far the model plays, and how many of its steps are a tick.
    const STEPS: u32 = 4;
    const TICK: u32 = 2;

    /// A request of the model's client, and how many steps later it is answered.
    type Request = Option<(Kind, u32)>;

    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Kind {
        Read,
        Write,
    }

    /// What a client concludes from the answers that it gets.
    trait Rule {
        fn hear(&mut self, kind: Kind, sent: Moment, answered: Moment);
        fn since(&self) -> Moment;
    }

    impl Rule for SessionProof {
        fn hear(&mut self, kind: Kind, sent: Moment, answered: Moment) {
            match kind {
                Kind::Read => self.answer(sent, answered),
                Kind::Write => self.write(sent, answered),
            }
        }

        fn since(&self) -> Moment {
            self.since
        }
    }

    /// A twin: the newest request of this kind counts as soon as it is answered.
    struct Newest(Kind, Moment);

    impl Rule for Newest {
        fn hear(&mut self, kind: Kind, sent: Moment, _: Moment) {
            if kind == self.0 {
                self.1 = self.1.max(sent);
            }
        }

        fn since(&self) -> Moment {
            self.1
        }
    }

    /// Plays a follower and its leader, which hears of the client only by pings; at each step, the follower may die. Returns false if the
    /// client then relies on a time at which the leader had not heard of it. Also returns whether it ever relied on more than the beginning.
    fn play(mut rule: impl Rule, begin: Moment, pings: u32, requests: &[Request]) -> (bool, bool) {
        let at = |step: u32| begin + SECOND * step;
        let (mut touched, mut heard, mut relied) = (false, begin, false);
        for step in 1..=STEPS + TICK {
            // The worst order: what arrives with a ping is reported by the next one.
            if pings >> step & 1 != 0 && touched {
                (touched, heard) = (false, at(step));
            }
            for (sent, request) in (1..).zip(requests) {
                if let Some((kind, after)) = *request
                    && sent + after == step
                {
                    touched = true;
                    rule.hear(kind, at(sent), at(step));
                }
            }
            relied |= rule.since() > begin;
            if rule.since() > heard {
                return (false, relied);
            }
        }
        (true, relied)
    }

    /// Plays all requests with all pings that have at most a tick between them. Returns whether the rule never relied on too much, and whether
    /// it ever relied on anything.
    fn explore<R: Rule>(rule: impl Fn(Moment) -> R) -> (bool, bool) {
        let kinds = [Kind::Read, Kind::Write].into_iter();
        let choices: Vec<Request> =
            kinds.flat_map(|kind| (0..=TICK).map(move |after| Some((kind, after)))).chain([None]).collect();
        // One bit for each step.
        let in_time = |pings: &u32| (0..STEPS + TICK).all(|step| pings >> step & 3 != 0);
        let pings: Vec<u32> = (0..1 << (STEPS + TICK + 1)).filter(in_time).collect();
        let begin = Moment::ORIGIN + SECOND * 100;
        let (mut is_safe, mut has_relied) = (true, false);
        for number in 0..choices.len().pow(STEPS) {
            let digit = |place| choices[number / choices.len().pow(place) % choices.len()];
            let requests: Vec<Request> = (0..STEPS).map(digit).collect();
            for &pings in &pings {
                let (safe, relied) = play(rule(begin), begin, pings, &requests);
                (is_safe, has_relied) = (is_safe && safe, has_relied || relied);
            }
        }
        (is_safe, has_relied)
    }

    #[test]
    fn nobody_relies_on_what_the_leader_may_not_have_heard() {
        let proof = |tick| move |begin| SessionProof::new(begin, 10 * SECOND, tick);
        assert_eq!(explore(proof(SECOND * TICK)), (true, true));
        // Twins.
        assert_eq!(explore(proof(SECOND * (TICK - 1))), (false, true), "an answer counts before the leader has pinged");
        assert_eq!(explore(|begin| Newest(Kind::Write, begin)), (false, true), "the newest write counts");
        assert_eq!(explore(|begin| Newest(Kind::Read, begin)), (false, true), "the newest read counts");
    }
}
