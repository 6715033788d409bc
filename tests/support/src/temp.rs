//! Directories that are removed when the test ends.

use tempfile::TempDir;

use crate::must;

/// A new temporary directory, removed when dropped.
pub fn temp_dir() -> TempDir {
    must("make a temporary directory", tempfile::Builder::new().prefix("leasehold-test-").tempdir())
}
