//! The login of a user. Its token ends after a while, with a restart of the server, and when the user is changed.

use tokio::sync::Mutex;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::calls::{self, Token};
use crate::config;
use crate::proto::{AuthenticateRequest, AuthenticateResponse};

/// What servers say that have no users, or do not ask for them yet.
const NOT_ENABLED: &str = "etcdserver: authentication is not enabled";
/// What servers say of requests with a token that they do not take, or no longer. They have not looked at the request.
const LOGGED_OUT: [&str; 4] = [
    "etcdserver: invalid auth token",
    "etcdserver: user name is empty",
    "etcdserver: revision of auth store is old",
    "auth: revision in header is old",
];

/// A user, who logs in when the first request is sent.
pub(crate) struct Login {
    request: AuthenticateRequest,
    /// Locked during a login, so that there is only one.
    state: Mutex<State>,
}

/// What is known of the login.
#[derive(Clone, PartialEq, Eq)]
enum State {
    Out,
    In(Token),
    /// The servers have no users.
    NotNeeded,
}

/// Whether a request was refused because the login is over, or was not needed before.
pub(crate) fn is_over(status: &Status) -> bool {
    LOGGED_OUT.contains(&status.message()) || status.code() == Code::Unauthenticated
}

impl Login {
    pub(crate) fn new(login: &config::Login) -> Self {
        let request = AuthenticateRequest { name: login.user.clone(), password: login.password.clone() };
        Self { request, state: Mutex::new(State::Out) }
    }

    /// The token for a request; `None` if the servers want none.
    pub(crate) async fn token(&self, channel: Channel) -> Result<Option<Token>, Status> {
        let mut state = self.state.lock().await;
        if *state == State::Out {
            *state = self.log_in(channel).await?;
        }
        Ok(match &*state {
            State::In(token) => Some(token.clone()),
            State::Out | State::NotNeeded => None,
        })
    }

    async fn log_in(&self, channel: Channel) -> Result<State, Status> {
        let answer = calls::ask(channel, "/etcdserverpb.Auth/Authenticate", self.request.clone(), None).await;
        let AuthenticateResponse { token } = match answer {
            Err(status) if status.message() == NOT_ENABLED => return Ok(State::NotNeeded),
            told => told?,
        };
        let mut token = Token::try_from(token).map_err(|_| Status::internal("the token is no text"))?;
        token.set_sensitive(true);
        Ok(State::In(token))
    }

    /// Logs in anew with the next request, unless that was done since this token was used. Returns whether it was not.
    pub(crate) async fn forget(&self, token: Option<&Token>) -> bool {
        let mut state = self.state.lock().await;
        let is_current = match &*state {
            State::In(current) => Some(current) == token,
            State::NotNeeded => token.is_none(),
            State::Out => false,
        };
        if is_current {
            *state = State::Out;
        }
        is_current
    }
}
