//! Directories that are gone when the test is over.

use tempfile::TempDir;

use crate::must;

/// A new directory of its own, removed when dropped.
pub fn temp_dir() -> TempDir {
    must("make a temporary directory", tempfile::Builder::new().prefix("leasehold-test-").tempdir())
}
