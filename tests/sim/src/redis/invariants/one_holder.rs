//! At most one holder at a time, in each holder's own view.

use lock_core::LockName;

use crate::clock::Time;
use crate::invariants::{Epoch, Holding, Watch};

/// A holder of the plain layout, and when it thinks that its hold ends.
#[derive(Clone, Debug)]
pub(crate) struct Outsider {
    pub(crate) name: LockName,
    pub(crate) value: u64,
    pub(crate) until: Time,
    pub(crate) epoch: Epoch,
}

/// Holders of one memory of the store exclude each other. If it lost data, there can be two: no more is guaranteed.
pub(crate) fn check(watch: &Watch, holdings: &[Holding<'_>], outsider: Option<&Outsider>) -> Result<(), String> {
    let known = |holding: &Holding<'_>| watch.epoch_of(holding.hold.lease());
    for (index, one) in holdings.iter().enumerate() {
        let Some(epoch) = known(one) else { continue };
        let name = &one.hold.lease().name;
        if let Some(outsider) = outsider.filter(|outsider| outsider.name == *name && outsider.epoch == epoch) {
            return Err(format!("{:?} holds beside {outsider:?}", one.hold));
        }
        for other in &holdings[index + 1..] {
            if other.hold.lease().name == *name && known(other) == Some(epoch) {
                return Err(format!("two hold: {:?} and {:?}", one.hold, other.hold));
            }
        }
    }
    Ok(())
}
