//! Messages about users, and about the servers themselves.

use std::fmt;

use prost::Message;

use super::Header;

#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
#[prost(skip_debug)]
pub(crate) struct AuthenticateResponse {
    /// What each request has to name.
    #[prost(string, tag = "2")]
    pub(crate) token: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct StatusRequest {}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<Header>,
    /// Such as `3.5.1`.
    #[prost(string, tag = "2")]
    pub(crate) version: String,
    /// The number of the server that it takes for the leader.
    #[prost(uint64, tag = "4")]
    pub(crate) leader: u64,
    /// Such as `memberID:1 alarm:NOSPACE`.
    #[prost(string, repeated, tag = "8")]
    pub(crate) errors: Vec<String>,
    /// Whether it has no vote.
    #[prost(bool, tag = "10")]
    pub(crate) is_learner: bool,
}

impl fmt::Debug for AuthenticateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthenticateRequest")
    }
}

impl fmt::Debug for AuthenticateResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthenticateResponse")
    }
}
