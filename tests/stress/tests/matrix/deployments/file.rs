//! One SQLite file. Its faults are those of its clients.

use fastrand::Rng;
use stress::crew::Post;
use stress::part::Facade;
use tempfile::TempDir;
use test_support::Machine;

use super::{Deployment, Start, fill_disk, post};

pub(crate) struct SqliteFile {
    directory: TempDir,
}

impl Start for SqliteFile {
    fn start() -> Self {
        Self { directory: test_support::temp_dir() }
    }
}

impl Deployment for SqliteFile {
    fn post(&self, facade: Facade) -> Post {
        post(facade, format!("sqlite:{}", self.directory.path().join("locks.db").display()), Vec::new())
    }

    fn fill_disk(&mut self, _: &mut Rng, clients: &Machine) -> bool {
        fill_disk(clients, self.directory.path())
    }
}
