//! What may happen next.

use super::node::{Belongs, Node, Part, Standing};
use super::pass::{Decision, Pass};
use super::setup::{Bounds, Form, Looks, Setup, Steps};
use super::state::{Stage, State};

/// Something that happens at one moment. Nodes, clients, deployments and passes have numbers for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named after what they name")]
pub enum Action {
    /// Time advances.
    Tick,
    /// A node loses everything.
    Lose { node: u8 },
    /// A node restarts with its data.
    Restart { node: u8 },
    /// A node restarts with the data that it had at the beginning.
    RollBack { node: u8 },
    /// A node's clock steps forward: what it has recorded looks old.
    Step { node: u8 },
    /// An operator moves the nodes of the first deployment that answer, to the second or the third.
    Move { to: u8 },
    /// The operator goes on: blank nodes that come in are moved, too.
    TakeOver { to: u8 },
    /// The move reaches a node.
    Moved { node: u8, to: u8 },
    /// A client learns which nodes vote.
    Begin { client: u8 },
    /// A client's ttl is made known to a node.
    Announce { client: u8, node: u8 },
    /// A client asks for the lock.
    Ask { client: u8 },
    /// A node grants a client's claim.
    Grant { client: u8, node: u8 },
    /// A pass begins that may have this node vote again, instead of any before it.
    Pass { pass: u8, deployment: u8, node: u8 },
    /// A pass looks at a node that is not its own.
    Look { pass: u8, node: u8 },
    /// A pass looks at its own node, marks it if nobody did before, and decides.
    Mark { pass: u8 },
    /// A pass does all of that in one moment. Of the other nodes it looks at those of `seen`, a bit for each.
    PassAtOnce { pass: u8, deployment: u8, node: u8, seen: u8 },
    /// A node is installed.
    Install { pass: u8 },
}

/// The names of this many.
pub(crate) fn names(count: usize) -> impl Iterator<Item = u8> + Clone {
    (0..u8::MAX).take(count)
}

impl Action {
    /// All that may happen next.
    pub(crate) fn all<const N: usize>(form: Form, setup: &Setup, state: &State<N>) -> Vec<Self> {
        let mut all = Vec::new();
        if state.clients == [Stage::Over; 2] {
            return all; // Nothing that follows can break a claim.
        }
        all.extend((state.left.ticks > 0).then_some(Self::Tick));
        for node in names(N) {
            all.extend(mishaps(state, node));
        }
        for to in [1, 2].into_iter().filter(|to| setup.deployments[usize::from(*to)].members != 0) {
            all.extend((state.left.moves > 0 && may_move(form, setup, state, to)).then_some(Self::Move { to }));
            let comes_in =
                state.nodes.iter().any(|node| node.comes_in(to) && node.moves[usize::from(to) - 1].is_none());
            all.extend((comes_in && may_take_over(form, setup, state, to)).then_some(Self::TakeOver { to }));
        }
        for client in names(2) {
            all.extend(of_client(setup, state, client));
        }
        for pass in names(state.left.passes.into()) {
            all.extend(of_pass(setup, state, pass));
        }
        all
    }
}

/// Whether a move reaches enough nodes that know the first deployment, or are there already.
pub(crate) fn may_move<const N: usize>(form: Form, setup: &Setup, state: &State<N>, to: u8) -> bool {
    let is_there = |node: &Node| node.member_of[0] && node.belongs.to() == Some(to);
    state.count(|node| is_there(node) || is_moved_by(form, state, node, to)) >= setup.deployments[0].overlap()
}

/// Whether a move finds the node in the first deployment. Of one that restarted that is sure only while no node answers that
/// followed another move.
pub(crate) fn is_moved_by<const N: usize>(form: Form, state: &State<N>, node: &Node, to: u8) -> bool {
    let is_ahead = |node: &Node| node.member_of[0] && node.is_ahead_of(to);
    let remembers = form == Form::Outdated || node.standing == Standing::Votes || state.count(is_ahead) == 0;
    node.member_of[0] && node.belongs == Belongs::Written(0) && remembers
}

/// Whether enough of the old nodes were moved, or a new one shows that, and no others of another deployment are in the way.
pub(crate) fn may_take_over<const N: usize>(form: Form, setup: &Setup, state: &State<N>, to: u8) -> bool {
    let is_stranger = |node: &Node| node.member_of[usize::from(to)] && node.is_stranger_to(to);
    let is_moved = |node: &Node| node.is_heir_in(to);
    let has_first = state.count(|node| node.is_first && is_moved(node)) > 0;
    let is_proved = form != Form::NoProof && state.proves(to);
    (is_proved || setup.deployments[0].is_left_by(Form::Complete, state.count(is_moved), has_first))
        && (state.count(is_stranger) == 0 || state.known_in(to) >= setup.deployments[usize::from(to)].majority())
}

fn mishaps<const N: usize>(state: &State<N>, name: u8) -> Vec<Action> {
    let (node, Bounds { losses, restarts, rollbacks, steps: (steps, when), .. }) =
        (&state.nodes[usize::from(name)], state.left);
    let mut all = Vec::new();
    // What forgot already loses nothing that matters.
    all.extend((losses > 0 && node.keeps_anything()).then_some(Action::Lose { node: name }));
    all.extend((restarts > 0 && node.standing != Standing::Forgot).then_some(Action::Restart { node: name }));
    all.extend((rollbacks > 0 && node.member_of[0]).then_some(Action::RollBack { node: name }));
    let may_step = steps > 0 && (when == Steps::AnyTime || node.key.is_none());
    all.extend(may_step.then_some(Action::Step { node: name }));
    let in_flight = [1, 2].into_iter().filter(|to| node.moves[usize::from(*to) - 1].is_some());
    all.extend(in_flight.map(|to| Action::Moved { node: name, to }));
    all
}

fn of_client<const N: usize>(setup: &Setup, state: &State<N>, client: u8) -> Vec<Action> {
    let index = usize::from(client);
    let deployment = setup.deployments[usize::from(setup.clients[index].deployment)];
    let to = |action: fn(u8, u8) -> Action, may: fn(&Node, usize) -> bool| {
        let nodes = names(N).filter(move |node| may(&state.nodes[usize::from(*node)], index));
        nodes.map(move |node| action(client, node)).collect::<Vec<_>>()
    };
    match state.clients[index] {
        Stage::Idle => {
            let voters = state.count(|node| node.votes_in(setup.clients[index].deployment));
            let can = voters >= deployment.majority();
            can.then_some(Action::Begin { client }).into_iter().collect()
        }
        Stage::Announces => to(|client, node| Action::Announce { client, node }, Node::hears),
        Stage::Announced => vec![Action::Ask { client }],
        Stage::Asks(_) => to(
            |client, node| Action::Grant { client, node },
            |node, client| node.hears(client) && node.key.is_none_or(|key| usize::from(key.client) == client),
        ),
        Stage::Over => Vec::new(),
    }
}

fn of_pass<const N: usize>(setup: &Setup, state: &State<N>, pass: u8) -> Vec<Action> {
    let mut all = beginnings(setup, state, pass);
    let index = usize::from(pass);
    let Some(target) = state.target(index).map(|node| &state.nodes[node]) else { return all };
    match state.passes[index] {
        Pass::None => {}
        Pass::Looks(look) => {
            let open: Vec<u8> = others(state, look.deployment, index).collect();
            all.extend(open.iter().map(|node| Action::Look { pass, node: *node }));
            let may = open.len() <= state.left.silent.into() && !target.votes_in(look.deployment);
            all.extend(may.then_some(Action::Mark { pass }));
        }
        Pass::Installs(Decision { epoch, wait, .. }) => {
            let is_due = wait == 0 && target.epoch == epoch && target.abstains();
            all.extend(is_due.then_some(Action::Install { pass }));
        }
    }
    all
}

/// The members that a pass has not looked at, but for its own.
fn others<const N: usize>(state: &State<N>, deployment: u8, pass: usize) -> impl Iterator<Item = u8> {
    names(N).filter(move |node| {
        let node = &state.nodes[usize::from(*node)];
        node.member_of[usize::from(deployment)] && node.parts[pass] == Part::None
    })
}

/// A pass may begin if something is wrong, or may be wrong before the pass is over.
fn beginnings<const N: usize>(setup: &Setup, state: &State<N>, pass: u8) -> Vec<Action> {
    let at_once = state.left.looks == Looks::AtOnce;
    let may_forget = !at_once && state.left.losses + state.left.restarts + state.left.rollbacks > 0;
    let mut all = Vec::new();
    for deployment in names(3).filter(|name| setup.clients.iter().any(|client| client.deployment == *name)) {
        let is_member = |node: &Node| node.member_of[usize::from(deployment)];
        let concerned = |node: &u8| {
            let node = &state.nodes[usize::from(*node)];
            is_member(node) && (may_forget || !node.votes_in(deployment))
        };
        for node in names(N).filter(concerned) {
            if at_once {
                let others = names(N).filter(|other| *other != node && is_member(&state.nodes[usize::from(*other)]));
                let all_others = others.map(|other| 1 << other).sum::<u8>();
                let missed = |seen: u8| (all_others & !seen).count_ones() <= state.left.silent.into();
                let seen = (0..=all_others).filter(|seen| seen & !all_others == 0 && missed(*seen));
                all.extend(seen.map(|seen| Action::PassAtOnce { pass, deployment, node, seen }));
            } else {
                all.push(Action::Pass { pass, deployment, node });
            }
        }
    }
    all
}
