//! A request to the store about one hold.

use std::time::Duration;

use lock_core::station::Input;
use lock_core::{Ability, Copies, FencingToken, Lease, Lost, Moment, Note, Renewed, TokenRange};

use crate::client_context::ClientContext;
use crate::proof::Proof;
use crate::site::{Driver, Site};
use crate::sync::Arc;

/// A request to the store about one hold. The station gets the answer.
pub struct HoldCall<'a, D: Driver> {
    site: &'a Arc<Site<D>>,
    proof: &'a Proof,
    asked_at: Moment,
}

impl<'a, D: Driver> HoldCall<'a, D> {
    /// Begins to ask. Send the request right after this.
    ///
    /// # Errors
    /// `Lost` if the hold has already ended.
    pub(crate) fn new(site: &'a Arc<Site<D>>, proof: &'a Proof) -> Result<Self, Lost> {
        proof.check()?;
        Ok(Self { site, proof, asked_at: site.context().clock.now() })
    }

    /// The way to the store.
    pub fn context(&self) -> &'a ClientContext<D> {
        self.site.context()
    }

    /// Whether the store can say who revoked a lease.
    pub fn may_know_by_whom(&self) -> bool {
        self.context().policy.store.abilities.contains(&Ability::Inspect)
    }

    /// The token under which the store notes who revoked the lease.
    pub fn noted_token(&self) -> FencingToken {
        noted_token(self.context().policy.store.copies, self.lease().tokens)
    }

    /// The lease of the hold.
    pub fn lease(&self) -> &'a Lease {
        Proof::hold(self.proof).lease()
    }

    /// The same, for a renewal.
    pub fn leases(&self) -> &'a [Lease] {
        std::slice::from_ref(self.lease())
    }

    /// How long the request may take.
    pub fn within(&self) -> Duration {
        self.site.context().policy.within(self.lease().terms.ttl)
    }

    /// The store has the lease no more: the station loses it, to whom revoked it if that is known.
    ///
    /// # Errors
    /// `Lost`, as the hold has ended.
    pub fn gone(self, revoked_by: Option<Note>) -> Result<(), Lost> {
        self.tell(revoked_by.map_or(Renewed::NotHeld, |by| Renewed::Revoked { by }));
        self.proof.check()
    }

    /// Gives the answer to a renewal to the station.
    ///
    /// # Errors
    /// `Lost` if the hold has ended.
    pub fn renewed(self, answers: Vec<Renewed>) -> Result<(), Lost> {
        answers.into_iter().for_each(|answer| self.tell(answer));
        self.proof.check()
    }

    fn tell(&self, answer: Renewed) {
        let (owner, asked_at) = (self.lease().owner, self.asked_at);
        self.site.handle(Input::Renewal { owner, asked_at, answer: Ok(answer) });
    }
}

/// Each of several servers has a highest token of its own for a lease, and all have the same lowest one.
fn noted_token(copies: Copies, tokens: TokenRange) -> FencingToken {
    match copies {
        Copies::One => tokens.high(),
        Copies::Several => tokens.low(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_servers_are_asked_by_the_lowest_token() {
        let tokens = TokenRange::new(FencingToken::new(7).unwrap(), FencingToken::new(9).unwrap()).unwrap();
        assert_eq!([Copies::One, Copies::Several].map(|copies| noted_token(copies, tokens).get()), [9, 7]);
    }
}
