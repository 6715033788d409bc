//! The check in an HTTP service: a header, and a layer of tower that refuses late requests.
//!
//! A client that holds a lock sends the token of its guard with each request, in the header [`FENCING_TOKEN`]:
//!
//! ```
//! # use lock_core as leasehold;
//! # use lock_fence as fence;
//! # let token = leasehold::FencingToken::new(34)?;
//! let request = http::Request::put("/invoice/42").header(fence::http::FENCING_TOKEN, token.get()).body(())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A new holder first raises the fence, before it reads what it will change. It sends its token in [`FENCING_RAISE`] instead, for
//! instance with the request that reads: see [`raise`].
//!
//! | request | answer |
//! |---|---|
//! | token not below the highest | that of the service; if the request raised the fence, with its token in `fencing-raise` |
//! | a lower token | 409, with the highest token in the same header, and a text that says why |
//! | no token | 428, or that of the service if the layer says so, or if the method only reads (such as `GET`) |
//! | a token that is not one, or several | 400 |
//!
//! A request that only reads does not raise the fence, unless it says so: it is refused if its token is too low, and otherwise
//! changes nothing.

mod answer;
mod layer;

use ::http::{HeaderMap, HeaderName};
use lock_core::WriteToken;

pub use self::layer::{Fencing, FencingLayer, WithoutToken};

/// The header with the token of a request, in decimal, and with the highest token in the answer 409.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");

/// The header with the token of a request that raises the fence whatever its method, in decimal, instead of [`FENCING_TOKEN`]. The
/// answer repeats it: without it, nothing was raised.
pub const FENCING_RAISE: HeaderName = HeaderName::from_static("fencing-raise");

/// Makes a request raise the fence of its resource, for a new holder that has read nothing yet. The service sees the request once
/// the writes of earlier holders have ended, so what it answers to a `GET` can be changed and written back.
///
/// Check that the answer has [`FENCING_RAISE`], too: a service without the layer, or with an older one, raises nothing.
///
/// ```
/// # use lock_core as leasehold;
/// # use lock_fence as fence;
/// # let write_token = leasehold::WriteToken::of_writer(leasehold::FencingToken::new(34)?);
/// let mut request = http::Request::get("/invoice/42").body(())?;
/// fence::http::raise(request.headers_mut(), write_token); // guard.write_token()
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn raise(headers: &mut HeaderMap, token: WriteToken) {
    headers.remove(FENCING_TOKEN);
    headers.insert(FENCING_RAISE, token.get().into());
}
