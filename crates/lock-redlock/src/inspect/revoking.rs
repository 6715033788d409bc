//! The end of a lease by an operator, and who ended it.

use std::sync::Arc;

use lock_core::inspect::{REMEMBERED_MIN, Revoked};
use lock_core::node::{Inspection, Revocation, Told};
use lock_core::{BackendError, Effect, FencingToken, Lease, LockName, Note, Renewed};

use crate::quorum::Answers;

/// Ends the lease that has a token; `None` if no node has one, nor remembers that one was revoked by this token. Owners that failed to get the
/// lock may have drawn the same token at other nodes: what they left ends, too.
pub(crate) fn revocation(answers: &Answers, name: &LockName, token: FencingToken, by: &Note) -> Option<Inspection> {
    let told = answers.told().filter_map(|(_, told)| if let Told::Owners(owners) = told { Some(owners) } else { None });
    let mut owners: Vec<_> = told.flatten().cloned().collect();
    owners.sort_unstable();
    owners.dedup();
    let lasts = answers.max_ttl.get().max(REMEMBERED_MIN);
    let revocation = Revocation { name: name.clone(), token, owners, by: by.clone(), lasts };
    (!revocation.owners.is_empty()).then(|| Inspection::Revoke(Arc::new(revocation)))
}

/// The lease has ended once a majority does not have it, and grants its owner nothing: no renewal has a majority any more.
pub(crate) fn revoked(answers: &Answers) -> Result<Revoked, BackendError> {
    let told: Vec<_> =
        answers.told().filter_map(|(_, told)| if let Told::Revoked(told) = told { Some(told) } else { None }).collect();
    let ended = told.iter().filter(|told| ***told == Revoked::Revoked).count();
    if told.len() < answers.majority {
        let (all, majority) = (answers.nodes.len(), answers.majority);
        let told = format!(
            "{} of {all} nodes confirmed that the lease has ended, {majority} are needed; it may have ended or not",
            told.len()
        );
        return Err(answers
            .error(Effect::Unknown, &told)
            .with_remedy("repeat it with the same token once a majority answers"));
    }
    Ok(if ended > 0 { Revoked::Revoked } else { Revoked::NotHeld })
}

/// The leases that a renewal found gone, each by its lock and lowest token. That one stays the same, whatever tokens other nodes drew.
pub(crate) fn gone(leases: &[Lease], answers: &[Renewed]) -> Arc<[(LockName, FencingToken)]> {
    let gone = leases.iter().zip(answers).filter(|(_, answer)| **answer == Renewed::NotHeld);
    gone.map(|(lease, _)| (lease.name.clone(), lease.tokens.low())).collect()
}

/// For each of the leases that was asked for, who revoked it, if a node knows.
pub(crate) fn notes(answers: &Answers) -> Vec<Option<Note>> {
    let mut all: Vec<Option<Note>> = Vec::new();
    for told in answers.told().filter_map(|(_, told)| if let Told::RevokedBy(told) = told { Some(told) } else { None })
    {
        all.resize(told.len(), None);
        all.iter_mut().zip(told).for_each(|(known, told)| *known = known.take().or_else(|| told.clone()));
    }
    all
}

/// Says of the leases that are gone who revoked them, where that is known.
pub(crate) fn noted(answers: &mut [Renewed], notes: Vec<Option<Note>>) {
    for (answer, by) in answers.iter_mut().filter(|answer| **answer == Renewed::NotHeld).zip(notes) {
        *answer = by.map_or(Renewed::NotHeld, |by| Renewed::Revoked { by });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lock_core::{ErrorKind, Operation, Ttl};

    use super::*;
    use crate::quorum::Heard;

    fn told(nodes: [Option<Revoked>; 3]) -> Result<Revoked, BackendError> {
        let lost = || BackendError::new("a", Operation::Inspect, ErrorKind::Timeout, Effect::Unknown, "no answer");
        let outcome = |told: Option<Revoked>| Heard::Outcome(told.map(Told::Revoked).ok_or_else(lost));
        let nodes = ["a", "b", "c"].iter().zip(nodes).map(|(node, told)| ((*node).to_owned(), outcome(told)));
        let nodes = nodes.collect();
        revoked(&Answers { majority: 2, max_ttl: Ttl::DEFAULT, abstaining: BTreeSet::new(), nodes })
    }

    #[test]
    fn a_revocation_is_done_once_a_majority_has_answered_and_else_unknown() {
        let (ended, absent) = (|| Some(Revoked::Revoked), || Some(Revoked::NotHeld));
        assert_eq!(told([ended(), absent(), None]).unwrap(), Revoked::Revoked);
        assert_eq!(
            told([ended(), absent(), absent()]).unwrap(),
            Revoked::Revoked,
            "an earlier try may have ended the rest"
        );
        assert_eq!(told([None, absent(), absent()]).unwrap(), Revoked::NotHeld);
        let error = told([None, ended(), None]).unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown);
        let said = error.to_string();
        for words in ["1 of 3 nodes", "2 are needed", "not answering: a, c", "repeat it"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
