//! The layer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::request::Parts;
use ::http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::answer::{Denial, token};
use crate::Gate;

/// What to do with a request without a token whose method does not only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithoutToken {
    /// Refuse it with 428.
    #[default]
    Refuse,
    /// Let it through, unchecked. While some clients do not send tokens yet, a late request of theirs is not noticed.
    Admit,
}

/// Refuses requests with a token that is lower than the highest that their resource has seen.
///
/// The writes of different holders take turns: a later one waits until the service has answered the earlier ones, and earlier ones
/// are refused from then on. So the service has to have written when it answers, and should limit its own time. If it writes
/// to a database, check the token there as well: then several servers can check it, and a restart forgets nothing. The service
/// finds the token of each request among its extensions, as a [`FencingToken`](lock_core::FencingToken).
///
/// Put authentication outside of it: a client that sends too high a token shuts out the others, and each path that was written to
/// takes about a hundred bytes until the process ends.
#[derive(Clone)]
pub struct FencingLayer {
    gate: Arc<Gate>,
    resource: Arc<dyn Fn(&Parts) -> String + Send + Sync>,
    without: WithoutToken,
}

impl FencingLayer {
    /// A layer for which each path is a resource.
    pub fn new(gate: Arc<Gate>) -> Self {
        Self { gate, resource: Arc::new(|parts| parts.uri.path().to_owned()), without: WithoutToken::default() }
    }

    /// Says which resource a request is for, where it is not the path, or several paths lead to one resource.
    #[must_use]
    pub fn resource(self, resource: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        Self { resource: Arc::new(resource), ..self }
    }

    /// Says what to do with a request without a token.
    #[must_use]
    pub fn without_token(self, without: WithoutToken) -> Self {
        Self { without, ..self }
    }

    /// What the request needs to be let in. `None`: nothing. Passes its token on to the service.
    fn wanted(&self, parts: &mut Parts) -> Result<Option<Wanted>, Denial> {
        let token = token(&parts.headers)?;
        token.map(|token| parts.extensions.insert(token));
        let reads = parts.method.is_safe();
        let resource = || (self.resource)(parts);
        match token {
            Some(token) if reads => self.gate.check_read(&resource(), token).map(|()| None).map_err(Denial::Late),
            Some(token) => Ok(Some(Wanted { resource: resource(), token })),
            None if reads || self.without == WithoutToken::Admit => Ok(None),
            None => Err(Denial::NoToken),
        }
    }
}

/// A write that asks to be let in.
struct Wanted {
    resource: String,
    token: lock_core::FencingToken,
}

impl<S> Layer<S> for FencingLayer {
    type Service = Fencing<S>;

    fn layer(&self, inner: S) -> Fencing<S> {
        Fencing { layer: self.clone(), inner }
    }
}

impl fmt::Debug for FencingLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencingLayer").field("gate", &self.gate).field("without", &self.without).finish_non_exhaustive()
    }
}

/// A service behind a [`FencingLayer`].
#[derive(Clone, Debug)]
pub struct Fencing<S> {
    layer: FencingLayer,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for Fencing<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    R: From<String>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let spare = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, spare); // it is this one that was asked whether it is ready
        let (mut parts, body) = request.into_parts();
        let wanted = self.layer.wanted(&mut parts);
        let gate = Arc::clone(&self.layer.gate);
        Box::pin(async move {
            let admitted = match wanted {
                Err(denial) => return Ok(denial.into_response()),
                Ok(None) => None,
                Ok(Some(Wanted { resource, token })) => match gate.begin_write(&resource, token).await {
                    Ok(admitted) => Some(admitted),
                    Err(refused) => return Ok(Denial::Late(refused).into_response()),
                },
            };
            let answer = ready.call(Request::from_parts(parts, body)).await;
            drop(admitted);
            answer
        })
    }
}
