//! The files for TLS.

use std::error::Error;
use std::fs;
use std::path::Path;

use lock_core::{BackendError, Effect, ErrorKind, Operation};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tonic::transport::{ClientTlsConfig, Identity};

use crate::config::TlsFiles;
use crate::error;

/// Reads the files.
pub(super) fn settings(files: &TlsFiles) -> Result<ClientTlsConfig, BackendError> {
    let settings = ClientTlsConfig::new().trust_anchors(authorities(files.authority.as_deref())?.roots);
    let Some([certificate, key]) = &files.identity else { return Ok(settings) };
    let read = |file: &Path| fs::read(file).map_err(|failure| unreadable(file, failure));
    Ok(settings.identity(Identity::from_pem(read(certificate)?, read(key)?)))
}

/// The authorities to trust.
fn authorities(file: Option<&Path>) -> Result<RootCertStore, BackendError> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let certificates = CertificateDer::pem_file_iter(file).map_err(|failure| unreadable(file, failure))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|failure| unreadable(file, failure))?;
                roots.add(certificate).map_err(|failure| unreadable(file, failure))?;
            }
        }
        None => _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
    }
    if roots.is_empty() {
        return Err(refused("there are no certificates of authorities to trust".to_owned()));
    }
    Ok(roots)
}

fn unreadable(file: &Path, failure: impl Error + Send + Sync + 'static) -> BackendError {
    refused(format!("{} cannot be read: {failure}", file.display())).with_source(failure)
}

fn refused(message: String) -> BackendError {
    let told = error::new(Operation::Connect, ErrorKind::Config, Effect::None, message);
    told.with_remedy("name PEM files by sslrootcert=FILE, sslcert=FILE and sslkey=FILE")
}
