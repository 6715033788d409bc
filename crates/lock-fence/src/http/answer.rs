//! What a request says, and the answers to one that is not let in.

use ::http::header::{CONTENT_TYPE, HeaderValue};
use ::http::{HeaderMap, Response, StatusCode};
use lock_core::{FencingToken, Invalid};

use super::{FENCING_RAISE, FENCING_TOKEN};
use crate::Refused;

/// Why a request is not let in.
#[derive(Debug)]
pub(super) enum Denial {
    Late(Refused),
    NoToken,
    Invalid(Invalid),
}

/// The token of a request, in one of the two headers.
pub(super) fn token(headers: &HeaderMap) -> Result<Option<FencingToken>, Denial> {
    let [raising, checked] = [FENCING_RAISE, FENCING_TOKEN].map(|name| headers.get_all(name));
    let mut values = raising.iter().chain(checked.iter());
    let (first, second) = (values.next(), values.next());
    let Some(first) = first else { return Ok(None) };
    if second.is_some() {
        let (problem, remedy) = ("the request has several tokens", "send the token of one guard, in one header");
        return Err(Denial::Invalid(Invalid::new("header", FENCING_TOKEN, problem, remedy)));
    }
    let text = String::from_utf8_lossy(first.as_bytes());
    text.parse().map(Some).map_err(Denial::Invalid)
}

/// Whether a request raises the fence, whatever its method.
pub(super) fn raises(headers: &HeaderMap) -> bool {
    headers.contains_key(FENCING_RAISE)
}

impl Denial {
    pub(super) fn into_response<B: From<String>>(self) -> Response<B> {
        let (status, text) = match &self {
            Self::Late(refused) => (StatusCode::CONFLICT, refused.to_string()),
            Self::NoToken => (
                StatusCode::PRECONDITION_REQUIRED,
                format!(
                    "this request needs the header {FENCING_TOKEN}, with the token of the lock that it is made under"
                ),
            ),
            Self::Invalid(invalid) => (StatusCode::BAD_REQUEST, invalid.to_string()),
        };
        let mut response = Response::new(B::from(text + "\n"));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if let Self::Late(refused) = self {
            response.headers_mut().insert(FENCING_TOKEN, refused.highest.get().into());
        }
        response
    }
}
