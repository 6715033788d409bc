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
//! | request | answer |
//! |---|---|
//! | token not below the highest | that of the service |
//! | a lower token | 409, with the highest token in the same header, and a text that says why |
//! | no token | 428, or that of the service if the layer says so, or if the method only reads (such as `GET`) |
//! | a token that is not one, or several | 400 |
//!
//! A request that only reads does not raise the fence: it is refused if its token is too low, and otherwise changes nothing.

mod answer;
mod layer;

use ::http::HeaderName;

pub use self::layer::{Fencing, FencingLayer, WithoutToken};

/// The header with the token of a request, in decimal, and with the highest token in the answer 409.
pub const FENCING_TOKEN: HeaderName = HeaderName::from_static("fencing-token");
