//! A quorum's list of nodes is changed at one client after the other.

use leasehold::redlock::Purpose;

use crate::failures::by_hand::unplanned;
use crate::failures::history::{Ended, Kind, Tone};
use crate::failures::nodes::{Nodes, pass};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "node-list",
    title: "Two lists of nodes",
    what_happens: "Node 4 takes the place of node 1, and B has the new list of nodes already. A has the old one, and the lock from two \
                   of its three nodes; its network to the third is down. Two nodes of the new list know nothing of A.",
    locks: ["by hand: SET NX PX on a majority of the nodes that a client knows", "leasehold with redlock://"],
    without,
    with,
};

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, one, two, three, four, b] = story.lanes(["A", "node 1", "node 2", "node 3", "node 4", "B"]);
    let nodes = Nodes::start([one, two, three, four]);
    nodes.voted_by_two(story, (a, "A"))?;
    for (node, answer) in [(1, "nil"), (2, "OK"), (3, "OK")] {
        nodes.vote(story, (b, "B"), node, answer)?;
    }
    story.judge_last(Tone::Wrong);
    story.note(b, "has two of three", Tone::Wrong);
    story.begin(b, Kind::Valid);
    Ok(Ended::violation("A and B hold the lock at the same time, each with a majority of its own list"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, one, two, three, four, b] = story.lanes(["A", "node 1", "node 2", "node 3", "node 4", "B"]);
    let nodes = Nodes::start([one, two, three, four]);
    let [old, new] = [[0, 1, 2], [1, 2, 3]].map(|list| nodes.url(list));
    pass(&old, Purpose::Init)?;
    let mut holder = nodes.holder(a, &old)?;
    nodes.granted_by_two(story, a, &mut holder)?;
    nodes.network.heal();
    match leasehold::blocking::connect(&new) {
        Err(error) if error.to_string().contains("belongs to a deployment of other nodes") => {}
        other => return Err(unplanned("a client with another list", &format!("{other:?}"))),
    }
    for node in [two, three] {
        story.refused(b, node, "connect() → refused: it belongs to a deployment of other nodes", Tone::Guarded);
    }
    Ok(Ended::prevented(
        "the nodes know the list of their deployment and refuse B, which has another one: only a move changes the list",
    ))
}
