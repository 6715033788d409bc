//! What TLS needs.

use std::fs;
use std::path::Path;

use lock_core::{BackendError, Effect, ErrorKind, Operation};
use zookeeper_client::TlsOptions;

use crate::config::TlsFiles;
use crate::error;

/// Reads the files.
pub(super) fn options(files: &TlsFiles) -> Result<TlsOptions, BackendError> {
    // Its crates bring two.
    lock_host::tls::choose_provider();
    let options = TlsOptions::new().with_pem_ca(&read(&files.authority)?);
    let options = options.map_err(|failure| refused(&files.authority, failure))?;
    let Some([certificate, key]) = &files.identity else { return Ok(options) };
    let identified = options.with_pem_identity(&read(certificate)?, &read(key)?);
    identified.map_err(|failure| refused(certificate, failure))
}

fn read(file: &Path) -> Result<String, BackendError> {
    fs::read_to_string(file).map_err(|failure| refused(file, failure))
}

fn refused(file: &Path, failure: impl std::error::Error + Send + Sync + 'static) -> BackendError {
    let message = format!("{} cannot be read: {failure}", file.display());
    let told = error::new(Operation::Connect, ErrorKind::Config, Effect::None, message).with_source(failure);
    told.with_remedy("name PEM files by sslrootcert=FILE, sslcert=FILE and sslkey=FILE")
}
