//! Nobody relies on a lease that an operator ended for longer than its ttl: it is not renewed any more, unless the store forgets that.

use super::{Holding, Watch};

impl Watch {
    pub(crate) fn ends_when_revoked(&self, holding: &Holding<'_>) -> Result<(), String> {
        let lease = holding.hold.lease();
        let grant = self.grants.get(&lease.name).and_then(|grants| grants.get(&lease.tokens));
        let grant = grant.filter(|grant| grant.epoch == self.epoch);
        match grant.and_then(|grant| grant.revoked).filter(|revoked| *revoked + lease.terms.ttl.get() < holding.until) {
            Some(revoked) => Err(format!("{holding:?} was revoked at {revoked:?}, and is relied on")),
            None => Ok(()),
        }
    }
}
