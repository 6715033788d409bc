//! The layer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::request::Parts;
use ::http::{HeaderMap, Request, Response};
use lock_core::{FencingToken, WriteToken};
use tower_layer::Layer;
use tower_service::Service;

use super::FENCING_RAISE;
use super::answer::{Denial, raises, token};
use crate::{Admitted, Gate};

/// What to do with a request without a token whose method does not only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithoutToken {
    /// Refuse it with 428.
    #[default]
    Refuse,
    /// Let it through, unchecked. While some clients do not send tokens yet, a late request of theirs is not noticed.
    Admit,
}

/// Refuses requests with a token that is lower than the highest that their resource has seen **in this process**.
///
/// **A service of several processes has no fence by this layer alone.** Each process knows only the requests that came to it since it
/// started. A late write passes at a replica that has not seen the later token; and even if the replicas shared what they know, a
/// write that was let in at one of them would run on while another one lets in the next. If the service writes to a database,
/// check the token in the transaction of the write as well: that is the fence, and this layer keeps late requests away from
/// it. The service finds the token of each request among its extensions, as a [`FencingToken`](lock_core::FencingToken). If the request
/// raises the fence, there is a [`WriteToken`](lock_core::WriteToken), too: raise the database's fence with it before you read.
///
/// Within the process, the writes of different holders take turns: a later one waits until the service has answered the earlier
/// ones, and earlier ones are refused from then on. So the service has to have written when it answers, and should limit its own
/// time. A request that raises the fence ([`raise`](super::raise)) takes its turn like a write.
///
/// A server drops the work on a request whose client disconnects, and what that work has spawned runs on. So pass on the
/// [`Admitted`], which is among the extensions of a write as well: the next holder waits until all clones of it are dropped.
///
/// ```
/// # use std::sync::Mutex;
/// # use lock_fence as fence;
/// # async fn put(request: http::Request<String>, store: &'static Mutex<String>) -> Result<(), tokio::task::JoinError> {
/// let admitted = request.extensions().get::<fence::Admitted>().cloned();
/// tokio::task::spawn_blocking(move || {
///     *store.lock().unwrap() = request.into_body(); // runs on if the client disconnects
///     drop(admitted); // it has ended
/// })
/// .await
/// # }
/// ```
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
        let raises = raises(&parts.headers);
        token.filter(|_| raises).map(|token| parts.extensions.insert(WriteToken::of_writer(token)));
        let reads = parts.method.is_safe() && !raises;
        let resource = || (self.resource)(parts);
        match token {
            Some(token) if reads => self.gate.check_read(&resource(), token).map(|()| None).map_err(Denial::Late),
            Some(token) => Ok(Some(Wanted { resource: resource(), token, raises })),
            None if reads || self.without == WithoutToken::Admit => Ok(None),
            None => Err(Denial::NoToken),
        }
    }
}

/// A write that asks to be let in, or a request that raises the fence.
struct Wanted {
    resource: String,
    token: FencingToken,
    raises: bool,
}

impl Wanted {
    /// Waits to be let in. The answer to the request is to have these headers.
    async fn enter(self, gate: &Gate) -> Result<(Admitted, HeaderMap), Denial> {
        let Self { resource, token, raises } = self;
        let admitted = gate.begin_write(&resource, token).await.map_err(Denial::Late)?;
        let raised = raises.then(|| (FENCING_RAISE, token.get().into()));
        Ok((admitted, raised.into_iter().collect()))
    }
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
            let entered = match wanted {
                Ok(Some(wanted)) => wanted.enter(&gate).await.map(Some),
                Ok(None) => Ok(None),
                Err(denial) => Err(denial),
            };
            let (admitted, headers) = match entered {
                Ok(entered) => entered.unzip(),
                Err(denial) => return Ok(denial.into_response()),
            };
            admitted.clone().map(|admitted| parts.extensions.insert(admitted));
            let answered = ready.call(Request::from_parts(parts, body)).await;
            drop(admitted);
            let mut answer = answered?;
            answer.headers_mut().extend(headers.unwrap_or_default());
            Ok(answer)
        })
    }
}
