//! At most one holder at a time, in each holder's own view.

use crate::invariants::{Holding, Watch};

/// This holds if no clock went wrong since both asked, nor anything else that nodes cannot notice.
pub(crate) fn check(watch: &Watch, holdings: &[Holding<'_>]) -> Result<(), String> {
    let certain = |holding: &&Holding<'_>| watch.epoch_of(holding.hold.lease()) == Some(watch.epoch());
    let certain: Vec<_> = holdings.iter().filter(certain).collect();
    for (index, one) in certain.iter().enumerate() {
        for other in &certain[index + 1..] {
            if other.hold.lease().name == one.hold.lease().name {
                return Err(format!("two hold: {:?} and {:?}", one.hold, other.hold));
            }
        }
    }
    Ok(())
}
