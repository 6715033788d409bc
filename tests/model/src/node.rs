//! One node.

use crate::rules::Check;

/// Who owns the lock at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The owner.
    pub client: u8,
    /// What the node answered when it granted.
    pub grant: u8,
    /// How many crashes there had been then.
    pub since: u8,
}

/// Whether a node takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vote {
    /// It grants and acknowledges.
    Votes,
    /// It forgot everything in the crash of this number, and its dwell is not over.
    Abstains(u8),
    /// Its dwell is over, and others are read for it. This is the least that their counters can have been.
    Reads(u8),
}

/// What has passed between a node and a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exchange {
    /// The client's acquire is in flight.
    Asked,
    /// The node granted and answered this, and the client has not chosen a token.
    Granted(u8),
    /// The node granted, and the client has chosen a token.
    Told,
    /// The node's grant counts as an acknowledgement of the token.
    Counted,
    /// The node has acknowledged the token.
    Acknowledged,
}

impl Exchange {
    /// Whether the client has what it needs of the node to be handed out.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Counted | Self::Acknowledged)
    }
}

/// A node: its counter, the one lock, and its exchange with each of `C` clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node<const C: usize> {
    /// The highest number that it has granted or acknowledged, for any lock.
    pub counter: u8,
    /// Whether it takes part.
    pub vote: Vote,
    /// Who owns the lock.
    pub key: Option<Key>,
    /// What has passed between it and each client.
    pub exchanges: [Exchange; C],
}

impl<const C: usize> Node<C> {
    pub(crate) const NEW: Self = Self { counter: 0, vote: Vote::Votes, key: None, exchanges: [Exchange::Asked; C] };

    /// The key by which this client owns the lock here.
    pub fn key_of(&self, client: u8) -> Option<Key> {
        self.key.filter(|key| key.client == client)
    }

    /// What has passed between it and this client.
    pub fn exchange(&self, client: u8) -> Exchange {
        self.exchanges[usize::from(client)]
    }

    pub(crate) fn set_exchange(&mut self, client: u8, exchange: Exchange) {
        self.exchanges[usize::from(client)] = exchange;
    }

    /// Whether it would acknowledge this token of this client.
    pub fn accepts(&self, client: u8, token: u8, check: Check) -> bool {
        let passes = |key: Key| match check {
            Check::Nothing => true,
            Check::Counter => self.counter <= token,
            Check::Grant => key.grant <= token,
        };
        self.vote == Vote::Votes && self.key_of(client).is_some_and(passes)
    }

    /// Grants, even if another client had the lock, and answers this.
    pub(crate) fn grant(&mut self, client: u8, proposal: u8, since: u8) -> u8 {
        self.counter = proposal.max(self.counter + 1);
        self.key = Some(Key { client, grant: self.counter, since });
        self.counter
    }

    /// The same node when the client `old[i]` is called `i`.
    pub(crate) fn renamed(&self, old: [u8; C]) -> Self {
        let new = |client| (0..).zip(old).find(|(_, name)| *name == client).map_or(client, |(name, _)| name);
        let key = self.key.map(|key| Key { client: new(key.client), ..key });
        Self { key, exchanges: old.map(|name| self.exchange(name)), ..*self }
    }
}
