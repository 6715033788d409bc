//! A ttl for a lock, from how long it is held.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stderr};
use std::thread::sleep;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock, Moment};
use leasehold::{LockName, Ttl};

use crate::durations::{human, rough};
use crate::exit::Failure;
use crate::locks::Locks;
use crate::store::Store;
use crate::visible::visible;
use leasehold::inspect::Check;

/// How often to look. Chosen: a hold that is shorter needs no ttl but the default.
const EVERY: Duration = Duration::from_millis(100);
/// How many holds are remembered at most: the last ones.
const HOLDS_MAX: usize = 10_000;

/// Suggests a ttl from holds that begin and end in this time.
pub(super) fn ttl(name: &LockName, store: &Store, time: Duration) -> Result<Check, Failure> {
    let (locks, began) = (Locks::connect(store)?, HostClock.now());
    if stderr().is_terminal() {
        writeln!(stderr(), "leasehold: watching {} for {}", visible(name.as_str()), human(time)).ok();
    }
    let mut holds = Holds::default();
    while HostClock.now().since(began) < time {
        let entry = locks.holder(name)?;
        let leases = entry.iter().flat_map(|entry| &entry.holders).filter_map(|held| held.holder.tokens());
        holds.note(HostClock.now(), leases.map(|tokens| tokens.low().get()).collect());
        sleep(EVERY.min(time));
    }
    if holds.over.is_empty() {
        let problem = format!("no hold of {name} began and ended within {}", human(time));
        let remedy = "watch longer, with --for 10m; without a reason, keep the default of 30s";
        return Ok(Check::remark("ttl", problem).with_remedy(remedy));
    }
    Ok(suggested(name, holds.over, time))
}

/// Holds of one lock, by the lowest token of the lease.
#[derive(Debug, Default)]
struct Holds {
    /// When each was seen first; `None` if it was held already when this began.
    now: BTreeMap<u64, Option<Moment>>,
    over: Vec<Duration>,
    begun: bool,
}

impl Holds {
    fn note(&mut self, at: Moment, tokens: Vec<u64>) {
        let before = std::mem::take(&mut self.now);
        let first = self.begun.then_some(at);
        self.begun = true;
        self.now = tokens.into_iter().map(|token| (token, before.get(&token).copied().unwrap_or(first))).collect();
        let ended = before.iter().filter(|(token, _)| !self.now.contains_key(token));
        self.over.extend(ended.filter_map(|(_, since)| since.map(|since| at.since(since))));
        let surplus = self.over.len().saturating_sub(HOLDS_MAX);
        self.over.drain(..surplus);
    }
}

/// Three to five times the 99th percentile.
fn suggested(name: &LockName, mut holds: Vec<Duration>, time: Duration) -> Check {
    holds.sort_unstable();
    let longest = holds.get((holds.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default();
    let (least, most) = (whole_seconds(longest.saturating_mul(3)), whole_seconds(longest.saturating_mul(5)));
    let suggestion = if least == most {
        format!("use the shortest ttl, {}", human(least))
    } else {
        format!("use a ttl of {} to {} (three to five times that)", human(least), human(most))
    };
    let text = format!(
        "{} {} of {name} in {}, 99 % of them shorter than {}: {suggestion}",
        holds.len(),
        if holds.len() == 1 { "hold" } else { "holds" },
        human(time),
        rough(longest)
    );
    let remark = "a holder that renews its lease, as leasehold run does, may have a shorter ttl: it is how long the lock stays \
                  held after its holder has died";
    Check::ok("ttl", text).with_remedy(remark)
}

/// In whole seconds, and no shorter than what `leasehold run` takes.
fn whole_seconds(time: Duration) -> Duration {
    let least = Duration::from_secs(2);
    Duration::from_secs(time.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)).max(least).min(Ttl::MAX.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_three_to_five_times_the_longest_hold_but_for_the_rarest() {
        let mut holds = Holds::default();
        let name = "a".parse().unwrap();
        let at = |millis| Moment::ORIGIN + Duration::from_millis(millis);
        holds.note(at(0), vec![1]);
        holds.note(at(1000), vec![2]);
        holds.note(at(5000), vec![]);
        assert_eq!(holds.over, [Duration::from_secs(4)], "nobody knows how long the first one was held");
        holds.over.extend(vec![Duration::from_millis(500); 100]);
        holds.over.push(Duration::from_secs(90));
        let said = suggested(&name, holds.over, Duration::from_secs(60)).message;
        assert!(said.contains("102 holds of a") && said.contains("a ttl of 12s to 20s"), "{said}");
    }
}
