//! What each thing that happens does.

use crate::action::{Action, Takes};
use crate::client::{Client, Stage};
use crate::node::{Exchange, Vote};
use crate::rules::{Guard, Rules};
use crate::state::{Order, State};

impl<const N: usize, const C: usize> State<N, C> {
    /// Does what happens.
    pub(crate) fn apply(&mut self, rules: Rules, action: Action) {
        match action {
            Action::Grant { client, node, proposal } => self.grant(client, node, proposal, Takes::Second),
            Action::GrantAgain { client, node, proposal, takes } => {
                self.left.duplicates -= 1;
                self.grant(client, node, proposal, takes);
            }
            Action::Choose { client, token } => self.choose(rules, client, token),
            Action::Acknowledge { client, node } => self.acknowledge(client, node),
            Action::HandOut { client } => self.hand_out(client),
            Action::Foreign { node } => {
                self.left.foreign -= 1;
                self.node_mut(node).counter += 1;
            }
            Action::Crash { node } => self.crash(rules, node),
            Action::EndDwell { node, floor } => self.end_dwell(rules, node, floor),
            Action::Recover { node, counter } => {
                let node = self.node_mut(node);
                (node.counter, node.vote) = (counter, Vote::Votes);
            }
        }
    }

    fn grant(&mut self, client: u8, node: u8, proposal: u8, takes: Takes) {
        self.begin(client);
        let (stage, since) = (self.client(client).stage, self.crashes);
        let node = self.node_mut(node);
        let grant = node.grant(client, proposal, since);
        let exchange = match (node.exchange(client), takes, stage) {
            (Exchange::Asked, _, Stage::Fencing(_) | Stage::Out(_)) => Exchange::Told,
            (Exchange::Asked, _, Stage::Idle | Stage::Asking) => Exchange::Granted(grant),
            (Exchange::Granted(_), Takes::Second, _) => Exchange::Granted(grant),
            (old, _, _) => old,
        };
        node.set_exchange(client, exchange);
    }

    /// A client begins with the first grant to it: as late as can be.
    fn begin(&mut self, client: u8) {
        if self.client(client).stage == Stage::Idle {
            let after = self.tokens().max().unwrap_or(0);
            *self.client_mut(client) = Client { stage: Stage::Asking, after, began: self.crashes };
        }
    }

    fn choose(&mut self, rules: Rules, client: u8, token: u8) {
        self.client_mut(client).stage = Stage::Fencing(token);
        for node in &mut self.nodes {
            if let Exchange::Granted(grant) = node.exchange(client) {
                let counts = rules.rounds.count(grant, token);
                node.set_exchange(client, if counts { Exchange::Counted } else { Exchange::Told });
            }
        }
    }

    fn acknowledge(&mut self, client: u8, node: u8) {
        let Client { stage, .. } = *self.client(client);
        let node = self.node_mut(node);
        match stage {
            Stage::Idle | Stage::Asking => {}
            Stage::Fencing(token) => {
                node.counter = node.counter.max(token);
                node.set_exchange(client, Exchange::Acknowledged);
            }
            Stage::Out(token) => node.counter = node.counter.max(token),
        }
    }

    fn hand_out(&mut self, client: u8) {
        let Some(token) = self.client(client).token() else { return };
        let holds = self.majority(|node| node.exchange(client).is_done() && node.key_of(client).is_some());
        if holds && self.tokens().any(|earlier| earlier >= token) {
            self.order = Order::Broken;
        }
        self.client_mut(client).stage = Stage::Out(token);
        // What it had counted no longer matters, and states that differ in that alone are to be the same.
        for node in &mut self.nodes {
            if node.exchange(client).is_done() {
                node.set_exchange(client, Exchange::Told);
            }
        }
    }

    fn crash(&mut self, rules: Rules, node: u8) {
        self.left.crashes -= 1;
        self.crashes += 1;
        let vote = if rules.guard == Guard::Nothing { Vote::Votes } else { Vote::Abstains(self.crashes) };
        let node = self.node_mut(node);
        (node.counter, node.key, node.vote) = (0, None, vote);
    }

    fn end_dwell(&mut self, rules: Rules, node: u8, floor: u8) {
        let Vote::Abstains(crash) = self.node(node).vote else { return };
        self.dwelt = self.dwelt.max(crash);
        if rules.guard != Guard::Complete {
            self.nodes.iter_mut().for_each(|node| node.key = node.key.filter(|key| key.since >= crash));
        }
        self.node_mut(node).vote = Vote::Reads(floor);
    }
}
