//! A node of a quorum forgets its vote, and votes again at once.

use leasehold::redlock::Purpose;

use crate::failures::by_hand::unplanned;
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::nodes::{Nodes, pass};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "quorum-restart",
    title: "Forgotten vote",
    what_happens: "A has the lock from two of three independent servers; its network to the third is down. One of the two restarts without \
                   its data. Now two servers know nothing of A, and two are a majority.",
    locks: [
        "by hand: SET NX PX on a majority of three servers, as in the description of Redlock",
        "leasehold with redlock://",
    ],
    without,
    with,
};

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, one, two, three, b] = story.lanes(["A", "node 1", "node 2", "node 3", "B"]);
    let mut nodes = Nodes::start([one, two, three]);
    nodes.voted_by_two(story, (a, "A"))?;
    restart_second(story, &mut nodes, two, a);
    nodes.vote(story, (b, "B"), 0, "nil")?;
    for node in [1, 2] {
        nodes.vote(story, (b, "B"), node, "OK")?;
        story.judge_last(Tone::Wrong);
    }
    story.note(b, "has two of three", Tone::Wrong);
    story.begin(b, Kind::Valid);
    story.deceives(a);
    Ok(Ended::violation("A and B hold the lock at the same time, each with a majority: node 2 voted for both"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, one, two, three, b] = story.lanes(["A", "node 1", "node 2", "node 3", "B"]);
    let mut nodes = Nodes::start([one, two, three]);
    let url = nodes.url([0, 1, 2]);
    pass(&url, Purpose::Init)?;
    let mut holder = nodes.holder(a, &url)?;
    nodes.granted_by_two(story, a, &mut holder)?;
    restart_second(story, &mut nodes, two, a);
    nodes.network.heal();
    let mut other = nodes.holder(b, &url)?;
    other.is_refused(story)?;
    let report = pass(&url, Purpose::Look)?;
    let Some(wait) = report.nodes.get(1).and_then(|node| node.votes_in) else {
        return Err(unplanned("a node that restarted", "it votes"));
    };
    story.note(two, format!("abstains for {} s", wait.as_secs()), Tone::Guarded);
    Ok(Ended::prevented(
        "the restarted node may have forgotten a vote, so it abstains until every lease that it may have granted has ended",
    ))
}

/// The second node loses its data.
fn restart_second(story: &mut Recorder, nodes: &mut Nodes<3>, lane: Lane, holder: Lane) {
    let [_, server, _] = &mut nodes.servers;
    server.kill();
    story.note(lane, "dies", Tone::Fault);
    story.end(lane, Kind::Stored(holder));
    story.begin(lane, Kind::Down);
    server.restart_empty();
    story.note(lane, "is back, empty", Tone::Fault);
    story.end(lane, Kind::Down);
}
