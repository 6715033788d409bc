//! What went wrong with a connection.

use std::error::Error;
use std::{io, iter};

use lock_core::{Effect, ErrorKind};
use tonic::{ConnectError, Status};

use super::meaning::{CHECK_SERVERS, Meaning};

/// What a failure of a connection means; `None` if a server has answered.
pub(super) fn meaning(status: &Status) -> Option<Meaning> {
    let source = status.source()?;
    #[cfg(feature = "tls")]
    if let Some(meaning) = inside(source).find_map(tls::meaning) {
        return Some(meaning);
    }
    let is_before = inside(source).any(|error| error.is::<ConnectError>());
    let effect = if is_before { Effect::None } else { Effect::Unknown };
    Some(Meaning::new(ErrorKind::Unreachable, effect).remedy(CHECK_SERVERS))
}

/// An error and all that it comes from. Errors of sockets do not tell theirs in the usual way.
fn inside<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(of_socket) => Some(of_socket),
            None => error.source(),
        }
    })
}

#[cfg(feature = "tls")]
mod tls {
    use std::error::Error;

    use lock_core::{Effect, ErrorKind};
    use rustls::CertificateError::{
        BadSignature, Expired, ExpiredContext, NotValidForName, NotValidForNameContext, UnknownIssuer,
    };
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};

    use crate::error::meaning::Meaning;

    /// What TLS found wrong.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most faults of TLS are those of a broken connection")]
    pub(super) fn meaning(error: &(dyn Error + 'static)) -> Option<Meaning> {
        let refused = Meaning::new(ErrorKind::Config, Effect::None);
        Some(match error.downcast_ref::<rustls::Error>()? {
            InvalidCertificate(UnknownIssuer | BadSignature) => refused.remedy("name a file with the authority of the servers by sslrootcert=FILE"),
            InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
                refused.remedy("name the servers as their certificates do")
            }
            InvalidCertificate(Expired | ExpiredContext { .. }) => {
                refused.remedy("renew the certificate of the server, or set the clock of this machine right")
            }
            InvalidCertificate(_) => refused.remedy("check that the certificate of the server is valid for a TLS server"),
            AlertReceived(_) => refused.remedy("name the client's certificate and its key by sslcert=FILE and sslkey=FILE: the servers' authority has to have signed it"),
            InvalidMessage(_) => refused.remedy("write etcd://, or name the port for TLS"),
            _ => return None,
        })
    }
}
