//! What each thing that happens does.

use super::action::{Action, is_moved_by, may_move, may_take_over, names};
use super::node::{Belongs, Exchange, Key, Node, Part, Seen, Standing};
use super::pass::{Decision, Look, Pass};
use super::setup::{Form, Setup};
use super::state::{Stage, State};

impl<const N: usize> State<N> {
    /// Does what happens.
    pub(crate) fn apply(&mut self, form: Form, setup: &Setup, action: Action) {
        match action {
            Action::Tick => self.tick(form, setup),
            Action::Lose { node } => {
                self.left.losses -= 1;
                self.node_mut(node).lose();
            }
            Action::Restart { node } => {
                self.left.restarts -= 1;
                self.node_mut(node).standing = Standing::Forgot;
            }
            Action::RollBack { node } => {
                self.left.rollbacks -= 1;
                self.node_mut(node).roll_back(setup.known);
            }
            Action::Step { node } => self.step(node),
            Action::Move { to } => {
                self.left.moves -= 1;
                self.move_all(form, to);
            }
            Action::TakeOver { to } => self.take_over(to),
            Action::Moved { node, to } => self.node_mut(node).hear_move(to),
            Action::Begin { client } => self.begin(form, setup, client),
            Action::Announce { client, node } => self.announce(setup, client, node),
            Action::Ask { client } => self.ask(client),
            Action::Grant { client, node } => {
                let ttl = setup.clients[usize::from(client)].ttl;
                let node = self.node_mut(node);
                node.longest = node.longest.max(ttl);
                node.key = Some(Key { client, left: ttl });
                node.exchanges[usize::from(client)].answered = true;
            }
            Action::Pass { pass, deployment, node } => self.begin_pass(pass, deployment, node),
            Action::Look { pass, node } => self.look(form, setup, pass, node),
            Action::Mark { pass } => self.mark(form, setup, pass),
            Action::PassAtOnce { pass, deployment, node, seen } => {
                self.begin_pass(pass, deployment, node);
                names(N).filter(|node| seen >> node & 1 == 1).for_each(|node| self.look(form, setup, pass, node));
                self.mark(form, setup, pass);
            }
            Action::Install { pass } => self.install(pass),
        }
    }

    fn node_mut(&mut self, node: u8) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }

    fn tick(&mut self, form: Form, setup: &Setup) {
        self.left.ticks -= 1;
        self.nodes.iter_mut().for_each(Node::tick);
        for pass in 0..2 {
            match &mut self.passes[pass] {
                Pass::None => {}
                Pass::Looks(look) => look.since += 1,
                Pass::Installs(decision) => decision.wait = decision.wait.saturating_sub(1),
            }
        }
        for client in 0..2 {
            let ttl = setup.clients[client].ttl;
            self.clients[client] = match self.clients[client] {
                // It took as long as the least dwell: a node that was told may have forgotten it, and be back.
                Stage::Announces if form != Form::SlowAnnouncement => Stage::Idle,
                Stage::Asks(age) if age + 1 < ttl => Stage::Asks(age + 1),
                Stage::Asks(_) => Stage::Over,
                stage @ (Stage::Idle | Stage::Announces | Stage::Announced | Stage::Over) => stage,
            };
            if matches!(self.clients[client], Stage::Idle | Stage::Over) {
                self.end_exchanges(client);
            }
        }
    }

    fn announce(&mut self, setup: &Setup, client: u8, node: u8) {
        let index = usize::from(client);
        let asker = setup.clients[index];
        let node = self.node_mut(node);
        node.longest = node.longest.max(asker.ttl);
        node.exchanges[index].answered = true;
        if self.count(|node| node.exchanges[index].answered)
            >= setup.deployments[usize::from(asker.deployment)].majority()
        {
            self.clients[index] = Stage::Announced;
            self.nodes.iter_mut().for_each(|node| node.exchanges[index].answered = false);
        }
    }

    /// Every epoch that may have been recorded there looks old, and what the node keeps is over.
    fn step(&mut self, node: u8) {
        self.left.steps.0 -= 1;
        self.node_mut(node).key = None;
        for node in &mut self.nodes {
            node.old_records += u8::from(matches!(node.standing, Standing::Abstains(Some(_))));
        }
    }

    pub(crate) fn move_all(&mut self, form: Form, to: u8) {
        let before = *self;
        for node in self.nodes.iter_mut().filter(|node| is_moved_by(form, &before, node, to)) {
            node.moves[usize::from(to) - 1] = Some(Seen::First);
        }
    }

    /// Whether this move, run again where every node answers, leaves a majority that knows its deployment.
    pub(crate) fn settles(&self, form: Form, setup: &Setup, to: u8) -> bool {
        let mut after = *self;
        let deliver = |after: &mut Self| {
            let in_flight = |node: &u8| after.nodes[usize::from(*node)].moves[usize::from(to) - 1].is_some();
            for node in names(N).filter(in_flight).collect::<Vec<_>>() {
                after.apply(form, setup, Action::Moved { node, to });
            }
        };
        if may_move(form, setup, &after, to) || (form != Form::NoProof && self.proves(to)) {
            after.move_all(form, to);
            deliver(&mut after);
            for node in names(N).filter(|node| self.nodes[usize::from(*node)].member_of[usize::from(to)]) {
                let seen = names(N)
                    .filter(|other| *other != node && self.nodes[usize::from(*other)].member_of[usize::from(to)]);
                let seen = seen.map(|other| 1 << other).sum();
                after.apply(form, setup, Action::PassAtOnce { pass: 0, deployment: to, node, seen });
            }
            if may_take_over(form, setup, &after, to) {
                after.take_over(to);
                deliver(&mut after);
            }
        }
        after.known_in(to) >= setup.deployments[usize::from(to)].majority()
    }

    pub(crate) fn take_over(&mut self, to: u8) {
        for node in self.nodes.iter_mut().filter(|node| node.comes_in(to)) {
            node.moves[usize::from(to) - 1] = Some(Seen::Blank);
        }
    }

    /// What its look tells may be enough for its ttl. It asks at once then: later it would know no more.
    fn begin(&mut self, form: Form, setup: &Setup, client: u8) {
        let index = usize::from(client);
        let asker = setup.clients[index];
        let is_voter = |node: &Node| node.votes_in(asker.deployment);
        let know = self.count(|node| is_voter(node) && node.longest >= asker.ttl);
        for node in &mut self.nodes {
            let epoch = is_voter(node).then_some(node.epoch);
            node.exchanges[index] = Exchange { epoch, answered: false };
        }
        self.clients[index] = Stage::Announces;
        let is_known = know >= setup.deployments[usize::from(asker.deployment)].majority();
        if is_known || form == Form::Unannounced {
            self.ask(client);
        }
    }

    fn ask(&mut self, client: u8) {
        self.clients[usize::from(client)] = Stage::Asks(0);
    }

    fn begin_pass(&mut self, pass: u8, deployment: u8, target: u8) {
        let index = usize::from(pass);
        self.end_pass(index);
        self.node_mut(target).parts[index] = Part::Target;
        self.passes[index] = Pass::Looks(Look::begin(deployment));
    }

    fn look(&mut self, form: Form, setup: &Setup, pass: u8, name: u8) {
        let pass = usize::from(pass);
        let node = &mut self.nodes[usize::from(name)];
        if let Pass::Looks(look) = &mut self.passes[pass] {
            node.parts[pass] = Part::Seen;
            look.see(form, setup, node);
        }
    }

    /// Marks what is to be marked, and has those follow that a move left behind.
    fn mark(&mut self, form: Form, setup: &Setup, pass: u8) {
        let index = usize::from(pass);
        let (Pass::Looks(mut look), Some(target)) = (self.passes[index], self.target(index)) else { return };
        look.count_heir(form, setup, &self.nodes[target]);
        let seen = |node: &&mut Node| node.parts[index] == Part::Seen && look.moves(form, setup, node);
        self.nodes.iter_mut().filter(seen).for_each(|node| node.follow(look.deployment));
        let is_stranger = |node: &Node| node.parts[index] == Part::Seen && node.is_stranger_to(look.deployment);
        look.strangers &= !look.follows || self.count(is_stranger) > 0;
        self.end_pass(index);
        let members = setup.deployments[usize::from(look.deployment)];
        let node = &mut self.nodes[target];
        if node.is_stranger_to(look.deployment) {
            if look.moves(form, setup, node) {
                node.follow(look.deployment);
            }
            return;
        }
        if node.standing == Standing::Votes || !look.may_act(form, members, node) {
            return;
        }
        let is_blank = !matches!(node.belongs, Belongs::Written(_));
        if is_blank && !look.may_follow(form, setup, look.is_decided(form, setup)) {
            return;
        }
        if is_blank && look.waits(setup) {
            node.follow(look.deployment);
        }
        if node.standing == Standing::Forgot {
            node.abstain();
            if node.belongs == Belongs::Nowhere {
                node.belongs = Belongs::Marked(look.deployment);
            }
        }
        if node.standing == Standing::Abstains(None) {
            node.standing = Standing::Abstains(Some(0));
        }
        let decision = look.decide(form, setup, node);
        let may_vote = look.may_follow(form, setup, look.is_decided_for_long(form, setup));
        if may_vote && decision.wait < u8::MAX {
            node.parts[index] = Part::Target;
            self.passes[index] = Pass::Installs(decision);
        }
    }

    fn install(&mut self, pass: u8) {
        let index = usize::from(pass);
        let (Pass::Installs(decision), Some(target)) = (self.passes[index], self.target(index)) else { return };
        self.end_pass(index);
        let Decision { deployment, longest, .. } = decision;
        let node = &mut self.nodes[target];
        (node.standing, node.belongs, node.has_voted) = (Standing::Votes, Belongs::Written(deployment), true);
        (node.longest, node.old_records) = (node.longest.max(longest), 0);
    }
}
