//! One pass of the guard, as far as it concerns one node.

use super::node::{Belongs, Node, Standing};
use super::setup::{Deployment, Form, Setup};

/// The least that a dwell lasts.
const LEAST: u8 = 1;

/// How far a pass has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// There is none.
    None,
    /// It looks at the nodes.
    Looks(Look),
    /// It has decided when its node is to be installed.
    Installs(Decision),
}

/// What a pass has seen of the nodes but its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Look {
    /// Whose pass it is.
    pub deployment: u8,
    /// How long ago it began.
    pub since: u8,
    /// How many vote in the deployment.
    pub voters: u8,
    /// How many do not vote, or not in this one.
    pub others: u8,
    /// The longest ttl that a voter knows.
    pub longest: u8,
    /// Whether one belongs to another deployment.
    pub strangers: bool,
    /// Whether one belongs to this deployment.
    pub known: bool,
    /// How many are of this deployment, or blank.
    pub fitting: u8,
    /// Whether one says that this deployment follows another one.
    pub follows: bool,
    /// How many nodes of the first deployment say so.
    pub heirs: u8,
    /// Whether the first of them does.
    pub has_first: bool,
    /// Whether one of them has not voted since.
    pub is_fresh: bool,
    /// How many of them have waited until what they had granted has expired.
    pub waited: u8,
    /// Whether the first has.
    pub has_first_waited: bool,
    /// Whether a new node shows that the move was decided.
    pub proof: bool,
    /// Whether one that has waited does.
    pub proof_waited: bool,
    /// Whether one followed a move of which this deployment knows nothing.
    pub is_behind: bool,
}

/// What comes of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decision {
    /// Whose pass it is.
    pub deployment: u8,
    /// The epoch that its node is to be installed in.
    pub epoch: u8,
    /// The longest ttl that it is to know.
    pub longest: u8,
    /// How long its dwell is counted yet.
    pub wait: u8,
}

impl Look {
    pub(crate) fn begin(deployment: u8) -> Self {
        Self {
            deployment,
            since: 0,
            voters: 0,
            others: 0,
            longest: 0,
            strangers: false,
            known: false,
            fitting: 0,
            follows: false,
            heirs: 0,
            has_first: false,
            is_fresh: false,
            waited: 0,
            has_first_waited: false,
            proof: false,
            proof_waited: false,
            is_behind: false,
        }
    }

    /// Looks at a node that is not its own.
    pub(crate) fn see(&mut self, form: Form, setup: &Setup, node: &Node) {
        if node.votes_in(self.deployment) {
            (self.voters, self.longest) = (self.voters + 1, self.longest.max(node.longest));
        } else {
            self.others += 1;
        }
        let is_stranger = node.is_stranger_to(self.deployment);
        self.strangers |= is_stranger;
        self.known |= node.belongs.to() == Some(self.deployment);
        self.fitting += u8::from(!is_stranger);
        self.follows |= node.follows && !is_stranger;
        self.is_behind |= self.deployment == 0 && node.is_ahead_of(0);
        self.count_heir(form, setup, node);
    }

    /// Counts a node that was moved from the first deployment.
    pub(crate) fn count_heir(&mut self, form: Form, setup: &Setup, node: &Node) {
        self.is_fresh |= node.is_fresh_in(self.deployment);
        let max_ttl = setup.deployments[usize::from(self.deployment)].max_ttl;
        let has_waited = node.waited(self.since) >= if form == Form::LeftVoters { LEAST } else { max_ttl };
        let is_heir = node.is_heir_in(self.deployment);
        self.heirs += u8::from(is_heir);
        self.has_first |= is_heir && node.is_first;
        self.waited += u8::from(is_heir && has_waited);
        self.has_first_waited |= is_heir && has_waited && node.is_first;
        let proves = form != Form::NoProof && node.proves(self.deployment);
        self.proof |= proves;
        self.proof_waited |= proves && has_waited;
    }

    /// Whether nodes were moved here and have not voted since, and no majority shows that they may.
    pub(crate) fn waits(&self, setup: &Setup) -> bool {
        self.is_fresh && usize::from(self.voters) < setup.deployments[usize::from(self.deployment)].majority()
    }

    /// Whether enough nodes were moved, or a new one shows that they were.
    pub(crate) fn is_decided(&self, form: Form, setup: &Setup) -> bool {
        self.proof || setup.deployments[0].is_left_by(form, self.heirs.into(), self.has_first)
    }

    /// The same of those that have waited.
    pub(crate) fn is_decided_for_long(&self, form: Form, setup: &Setup) -> bool {
        self.proof_waited || setup.deployments[0].is_left_by(form, self.waited.into(), self.has_first_waited)
    }

    /// Whether its node may be installed, or marked if it is blank: no majority may be left in the deployment before this one, unless
    /// a majority votes here.
    pub(crate) fn may_follow(&self, form: Form, setup: &Setup, is_decided: bool) -> bool {
        form == Form::Hasty || !self.waits(setup) || is_decided
    }

    /// Whether it moves this node along, which a move left behind, or which followed another move that can win no more.
    pub(crate) fn moves(&self, form: Form, setup: &Setup, node: &Node) -> bool {
        if self.deployment == 0 || !node.is_stranger_to(self.deployment) {
            return false;
        }
        if node.belongs.to() == Some(0) {
            return self.follows;
        }
        form != Form::NoSibling && node.follows && self.is_decided(Form::Complete, setup)
    }

    /// Whether its node may be marked or installed. A blank one may have been moved before it forgot, where nodes of
    /// another deployment answer; then it is ours only if no majority can have been moved.
    pub(crate) fn may_act(&self, form: Form, deployment: Deployment, target: &Node) -> bool {
        let is_ours = target.belongs.to() == Some(self.deployment);
        let remembers =
            target.belongs == Belongs::Written(self.deployment) && (form == Form::Outdated || !self.is_behind);
        if !self.strangers || (form != Form::Strangers && remembers) {
            return true;
        }
        if form == Form::Strangers {
            return (self.known || is_ours) && usize::from(self.fitting) + 1 >= deployment.majority();
        }
        usize::from(self.voters) >= deployment.majority()
    }

    /// When its node is to be installed, now that it is known to be marked.
    pub(crate) fn decide(&self, form: Form, setup: &Setup, target: &Node) -> Decision {
        let deployment = setup.deployments[usize::from(self.deployment)];
        let known = self.longest.max(target.longest);
        let all = usize::from(self.voters + self.others) + 1 == deployment.members.count_ones() as usize;
        let nobody_votes = all && self.voters == 0 && !self.strangers;
        let may_shorten = form == Form::LeftVoters || !self.waits(setup);
        let (lasts, longest) = if usize::from(self.voters) >= deployment.overlap() && may_shorten {
            (known, known)
        } else if nobody_votes || form == Form::LowLongest {
            (most(form, setup, deployment, target), known)
        } else {
            (most(form, setup, deployment, target), deployment.max_ttl)
        };
        let least = if form == Form::NoLeast { 0 } else { LEAST };
        let enough = if form == Form::OneRecord { 1 } else { deployment.majority() };
        let wait =
            if usize::from(target.old_records) >= enough { 0 } else { self.left(form, target, lasts.max(least)) };
        Decision { deployment: self.deployment, epoch: target.epoch, longest, wait }
    }

    /// How long its node has to be waited for yet. A dwell counts up to when the look began, so a pass that comes too early
    /// is for nothing.
    fn left(&self, form: Form, target: &Node, lasts: u8) -> u8 {
        let Standing::Abstains(Some(age)) = target.standing else { return u8::MAX };
        if form == Form::PastLook {
            return lasts.saturating_sub(age);
        }
        if age.saturating_sub(self.since) >= lasts { 0 } else { u8::MAX }
    }
}

/// How long a node dwells that nobody can tell anything of.
fn most(form: Form, setup: &Setup, deployment: Deployment, target: &Node) -> u8 {
    match target.belongs {
        Belongs::Nowhere | Belongs::Marked(_) if form != Form::ShortBlank => deployment.max_ttl.max(setup.default),
        Belongs::Nowhere | Belongs::Marked(_) | Belongs::Written(_) => deployment.max_ttl,
    }
}
