//! Gates in procedures, where one client is stopped.

use test_support::bounds::wait_for;

use crate::support::{Place, Session};

/// What a fragment of a procedure becomes so that the first one that comes there stops while the gate is closed. The others pass.
pub(crate) const GATE: &str = "IF GET_LOCK(CONCAT(DATABASE(), '.first'), 0) THEN DO GET_LOCK(CONCAT(DATABASE(), '.gate'), 40); \
     DO RELEASE_LOCK(CONCAT(DATABASE(), '.gate')); DO RELEASE_LOCK(CONCAT(DATABASE(), '.first')); END IF; ";

/// A gate that is closed until this is dropped.
pub(crate) struct Gate {
    session: Session,
    watcher: Session,
    database: String,
}

impl Gate {
    pub(crate) fn close(place: &Place) -> Self {
        let (session, watcher, database) = (place.session(), place.watcher(), place.database().to_owned());
        assert!(session.value::<bool>("SELECT GET_LOCK(CONCAT(DATABASE(), '.gate'), 0)"));
        Self { session, watcher, database }
    }

    /// Waits until somebody stands before it.
    pub(crate) fn wait_for_one(&self) {
        let waits = format!(
            "SELECT EXISTS (SELECT 1 FROM information_schema.PROCESSLIST WHERE db = '{}' AND state = 'User lock')",
            self.database
        );
        wait_for("somebody stands before the gate", || self.watcher.value::<bool>(&waits));
    }

    pub(crate) fn open(self) {
        self.session.run("DO RELEASE_ALL_LOCKS()").unwrap();
    }
}
