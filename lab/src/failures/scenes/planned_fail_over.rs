//! After a planned fail-over, the old primary goes on serving clients.

use leasehold::redis::{RedisConfig, declare_new};
use test_support::sentinels::url_of;
use test_support::{Fault, Proxy, RedisServer, Sentinel, Trio};

use crate::failures::by_hand::{ByHand, unplanned};
use crate::failures::history::{Ended, Lane, Tone};
use crate::failures::one_redis::set_for_long;
use crate::failures::pair::{has_the_lock, holder, until_replicated};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "planned-fail-over",
    title: "Planned fail-over",
    what_happens: "An operator has the sentinels replace the primary, and nothing fails. They promote a replica at once, and make the old \
                   primary a replica only seconds later. Until then, a client that has not heard of it gets the lock at the old primary.",
    locks: [
        "by hand: SET NX PX on the primary that a sentinel named",
        "leasehold with redis+sentinel://, whose default is failover=dwell",
    ],
    without,
    with,
};

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, old, new, b] = story.lanes(["A", "old primary", "new primary", "B"]);
    let trio = Trio::start();
    let mut holder = ByHand::connect(a, &trio.primary().url())?;
    fail_over(story, &trio, [old, new]);
    holder.expect(story, old, &set_for_long("A"), "OK")?;
    story.granted(old, a);
    let mut other = ByHand::connect(b, &trio.primary().url())?;
    other.expect(story, new, &set_for_long("B"), "OK")?;
    story.judge_last(Tone::Wrong);
    story.granted(new, b);
    Ok(Ended::violation("A and B hold the lock at the same time: A had not heard that its primary was replaced"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, old, new, b] = story.lanes(["A", "old primary", "new primary", "B"]);
    let trio = Trio::start();
    declare(&trio)?;
    let [sentinel, ..] = trio.sentinels.as_slice() else { return Err(unplanned("sentinels", "there is none")) };
    let network = Proxy::start(sentinel.port());
    let mut late = holder(a, old, trio.primary(), &dwelling(&[network.port()]))?;
    network.set(Fault::Hold);
    story.note(a, "hears nothing from its sentinel", Tone::Fault);
    let replaced = fail_over(story, &trio, [old, new]);
    late.acquire(story)?;
    has_the_lock(replaced)?;
    let ports: Vec<_> = trio.sentinels.iter().map(Sentinel::port).collect();
    let mut other = holder(b, new, trio.primary(), &dwelling(&ports))?;
    other.is_refused_for_now(story)?;
    network.heal();
    story.note(a, "hears of the new primary", Tone::Plain);
    late.loses(story)?;
    Ok(Ended::prevented(
        "the new primary may lack leases that the old one grants, and grants no free lock for so long: B was refused, and A lost its lease",
    ))
}

/// The URL of the primary that these sentinels name.
fn dwelling(ports: &[u16]) -> String {
    url_of(ports).replace("failover=grant", "failover=dwell&max_ttl=2s&op_timeout=500ms")
}

/// Declares that the servers are new, and waits until all know it.
fn declare(trio: &Trio) -> Result<(), Failure> {
    let ports: Vec<_> = trio.sentinels.iter().map(Sentinel::port).collect();
    declare_new(&RedisConfig::from_url(&dwelling(&ports))?)?;
    let primary = trio.primary();
    let mut replicas = trio.servers.iter().filter(|server| server.port() != primary.port());
    replicas.try_for_each(|replica| until_replicated(primary, replica))
}

/// The sentinels promote a replica. Returns the old primary, which they have not told yet.
fn fail_over<'a>(story: &mut Recorder, trio: &'a Trio, [old, new]: [Lane; 2]) -> &'a RedisServer {
    let replaced = trio.fail_over();
    story.note(new, "is promoted (SENTINEL FAILOVER)", Tone::Fault);
    story.note(old, "still takes writes", Tone::Fault);
    replaced
}
