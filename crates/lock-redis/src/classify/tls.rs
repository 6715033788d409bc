//! What TLS found wrong with a server.

use lock_core::{Effect, ErrorKind};
use redis::RedisError;
use rustls::CertificateError::{Expired, ExpiredContext, NotValidForName, NotValidForNameContext, UnknownIssuer};
use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage, PeerIncompatible};

use super::source::{inside, of_socket};
use crate::failure::Failure;

/// What it means that TLS failed, with this effect on a request. `None` if that is no matter of the server's configuration.
#[expect(clippy::wildcard_enum_match_arm, reason = "most faults of TLS are those of a broken connection")]
pub(super) fn failure(server: &str, error: &RedisError, effect: Effect) -> Option<Failure> {
    let (told, remedy) = match fault(error)? {
        InvalidMessage(_) => return Some(Failure::speaks_no_tls(server)),
        AlertReceived(_) | PeerIncompatible(_) => {
            let message = format!("{server} and this client have no TLS version in common");
            let remedy = "allow TLS 1.2 or 1.3 without client certificates at the server";
            return Some(Failure::new(ErrorKind::Config, effect, message).remedy(remedy).dropping());
        }
        InvalidCertificate(UnknownIssuer) => {
            let told = "is signed by an authority that this system does not trust";
            (told, "make the system trust the server's authority")
        }
        InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            ("is for another name", "use the name that the certificate is for")
        }
        InvalidCertificate(Expired | ExpiredContext { .. }) => {
            ("has expired", "renew it at the server, or set the clock of this machine right")
        }
        InvalidCertificate(_) => {
            let remedy = "make the system trust the server's authority, and use the name that the certificate is for";
            ("is not accepted", remedy)
        }
        _ => return None,
    };
    let message = format!("the certificate of {server} {told}");
    Some(Failure::new(ErrorKind::Config, Effect::None, message).remedy(remedy).dropping())
}

/// What TLS says inside an error of the client library, which may wrap it in one of a socket.
fn fault(error: &RedisError) -> Option<&rustls::Error> {
    inside(error)?.downcast_ref().or_else(|| of_socket(error)?.get_ref()?.downcast_ref())
}
