//! One node.

/// Whether a node's vote counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It has forgotten, and no pass has marked it yet.
    Forgot,
    /// It waits; the first pass that saw that was this long ago.
    Abstains(Option<u8>),
    /// It votes.
    Votes,
}

/// Which deployment a node says that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Belongs {
    /// To none: it is blank.
    Nowhere,
    /// To that of the client that marked it when it was blank.
    Marked(u8),
    /// To the one that it was installed in, or moved to.
    Written(u8),
}

impl Belongs {
    /// The number of the deployment.
    pub fn to(self) -> Option<u8> {
        match self {
            Self::Nowhere => None,
            Self::Marked(deployment) | Self::Written(deployment) => Some(deployment),
        }
    }
}

/// Who owns the lock at a node, and for how much longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The owner.
    pub client: u8,
    /// How long the node keeps it.
    pub left: u8,
}

/// What has passed between a node and a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exchange {
    /// The epoch that the client knows it to vote in.
    pub epoch: Option<u8>,
    /// Whether it has answered the announcement, or after that the claim.
    pub answered: bool,
}

/// What a pass has to do with a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Nothing yet.
    #[default]
    None,
    /// It was looked at.
    Seen,
    /// It is the one that is to vote again.
    Target,
}

/// What the sender of a move saw of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Seen {
    /// It was in the first deployment.
    First,
    /// It was blank, or only marked.
    Blank,
}

/// A node, and what others know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// Which of the deployments list it.
    pub member_of: [bool; 3],
    /// Whether it is the first one of the first deployment.
    pub is_first: bool,
    /// Whether it votes.
    pub standing: Standing,
    /// The number of its epoch: how often it was marked or moved.
    pub epoch: u8,
    /// Its deployment.
    pub belongs: Belongs,
    /// Whether it names the first deployment as the one before its own.
    pub follows: bool,
    /// Whether it has voted in its deployment.
    pub has_voted: bool,
    /// The longest ttl that it knows.
    pub longest: u8,
    /// Who owns the lock.
    pub key: Option<Key>,
    /// How many nodes have a record of its epoch that looks old, since their clocks stepped.
    pub old_records: u8,
    /// Whether a move to the second deployment is in progress to it, and one to the third.
    pub moves: [Option<Seen>; 2],
    /// What has passed between it and each client.
    pub exchanges: [Exchange; 2],
    /// What each pass has to do with it.
    pub parts: [Part; 2],
}

impl Node {
    pub(crate) const BLANK: Self = Self {
        member_of: [false; 3],
        is_first: false,
        standing: Standing::Forgot,
        epoch: 0,
        belongs: Belongs::Nowhere,
        follows: false,
        has_voted: false,
        longest: 0,
        key: None,
        old_records: 0,
        moves: [None; 2],
        exchanges: [Exchange { epoch: None, answered: false }; 2],
        parts: [Part::None; 2],
    };

    /// It votes in the first deployment.
    pub(crate) fn found(&mut self, longest: u8) {
        (self.standing, self.epoch) = (Standing::Votes, 1);
        (self.belongs, self.longest, self.has_voted) = (Belongs::Written(0), longest, true);
    }

    /// It restarts with what it had at the beginning. Its connections end, with what is in flight.
    pub(crate) fn roll_back(&mut self, longest: u8) {
        let epoch = self.epoch;
        self.found(longest);
        (self.standing, self.epoch) = (Standing::Forgot, epoch);
        (self.follows, self.key, self.moves) = (false, None, [None; 2]);
    }

    /// Whether it can lose anything that matters.
    pub(crate) fn keeps_anything(&self) -> bool {
        (self.standing, self.belongs, self.key) != (Standing::Forgot, Belongs::Nowhere, None)
    }

    /// Whether it votes in this deployment.
    pub fn votes_in(&self, deployment: u8) -> bool {
        self.standing == Standing::Votes && self.belongs.to() == Some(deployment)
    }

    /// Whether it belongs to another deployment.
    pub fn is_stranger_to(&self, deployment: u8) -> bool {
        self.belongs.to().is_some_and(|own| own != deployment)
    }

    /// Abstains under a new epoch.
    pub(crate) fn abstain(&mut self) {
        (self.standing, self.epoch, self.old_records) = (Standing::Abstains(None), self.epoch + 1, 0);
    }

    /// Whether it waits.
    pub fn abstains(&self) -> bool {
        matches!(self.standing, Standing::Abstains(_))
    }

    /// It belongs to this deployment from now on, and names the one before it.
    pub(crate) fn follow(&mut self, to: u8) {
        self.abstain();
        // A blank one is told what the others say.
        self.follows |= !matches!(self.belongs, Belongs::Written(1..));
        (self.belongs, self.has_voted) = (Belongs::Written(to), false);
    }

    /// A move that is in progress to it arrives.
    pub(crate) fn hear_move(&mut self, to: u8) {
        let found = match self.moves[usize::from(to) - 1].take() {
            Some(Seen::First) => Some(0),
            Some(Seen::Blank) => None,
            None => return,
        };
        if self.belongs.to() == found {
            self.follow(to);
        }
    }

    /// Whether it is blank, and listed by this deployment.
    pub(crate) fn comes_in(&self, to: u8) -> bool {
        self.member_of[usize::from(to)] && self.belongs.to().is_none()
    }

    /// Whether it was in the first deployment and is in this one now.
    pub(crate) fn is_heir_in(&self, deployment: u8) -> bool {
        self.member_of[0] && self.belongs == Belongs::Written(deployment)
    }

    /// Whether it shows that the move from the first deployment to this one was decided.
    pub(crate) fn proves(&self, deployment: u8) -> bool {
        !self.member_of[0] && self.follows && self.belongs == Belongs::Written(deployment)
    }

    /// Whether it followed a move from the first deployment to another one than this, or was marked for one, which may have.
    pub(crate) fn is_ahead_of(&self, deployment: u8) -> bool {
        (self.follows || matches!(self.belongs, Belongs::Marked(_))) && self.is_stranger_to(deployment)
    }

    /// Whether it abstains since a move from the first deployment.
    pub(crate) fn is_fresh_in(&self, deployment: u8) -> bool {
        self.follows && !self.has_voted && self.belongs.to() == Some(deployment)
    }

    /// How long it had waited when somebody began to look, so long ago. One that votes has waited.
    pub(crate) fn waited(&self, since: u8) -> u8 {
        match self.standing {
            Standing::Forgot | Standing::Abstains(None) => 0,
            Standing::Abstains(Some(age)) => age.saturating_sub(since),
            Standing::Votes => u8::MAX,
        }
    }

    /// Everything that it kept is lost.
    pub(crate) fn lose(&mut self) {
        (self.standing, self.belongs, self.follows) = (Standing::Forgot, Belongs::Nowhere, false);
        (self.longest, self.key, self.has_voted) = (0, None, false);
    }

    /// Whether what this client sent would be run here.
    pub(crate) fn hears(&self, client: usize) -> bool {
        let Exchange { epoch, answered } = self.exchanges[client];
        self.standing == Standing::Votes && epoch == Some(self.epoch) && !answered
    }

    pub(crate) fn tick(&mut self) {
        if let Standing::Abstains(Some(age)) = &mut self.standing {
            *age += 1;
        }
        self.key = self.key.and_then(|Key { client, left }| (left > 1).then(|| Key { client, left: left - 1 }));
    }
}
