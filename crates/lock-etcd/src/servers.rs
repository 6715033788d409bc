//! The servers of a cluster. One of them is asked, until it does not answer.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use lock_core::BackendError;
use lock_host::{Clock, HostClock};
pub(crate) use lock_rules::Seen;
use prost::Message;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::calls::{self, Token};
use crate::connections::channels;
use crate::login::{self, Login};
use crate::proto::{StatusRequest, StatusResponse, TxnRequest, TxnResponse};
use crate::{EtcdConfig, txn, version};

/// How long a server may take at least before other requests go to the next one. Chosen: several round trips of a slow disk, and less
/// than requests have in all.
const ANSWERS_WITHIN: Duration = Duration::from_millis(300);
/// How long it may take if its answers are slow. Chosen: round the world several times.
const ANSWERS_WITHIN_MAX: Duration = Duration::from_secs(2);
/// How long a login may take. Chosen: servers compute the hash of the password, which is made to take long.
const LOGS_IN_WITHIN: Duration = Duration::from_secs(1);

/// The servers, and which one is asked.
pub(crate) struct Servers {
    channels: Vec<Channel>,
    login: Option<Login>,
    /// Counts up. Of a number, the remainder is that of a server.
    current: AtomicUsize,
    /// The raft term of the latest answer that the leader has ordered; 0 if there was none.
    term: AtomicU64,
    /// How long answers take, in microseconds: rises at once, and falls slowly.
    pace: AtomicU64,
    runtime: Handle,
}

impl Servers {
    /// Connects when the first request is sent.
    pub(crate) fn new(config: &EtcdConfig, runtime: &Handle) -> Result<Self, BackendError> {
        let _entered = runtime.enter();
        Ok(Self {
            channels: channels(config)?,
            login: config.login().map(Login::new),
            current: AtomicUsize::default(),
            term: AtomicU64::default(),
            pace: AtomicU64::default(),
            runtime: runtime.clone(),
        })
    }

    /// How many servers the URL names.
    pub(crate) const fn count(&self) -> usize {
        self.channels.len()
    }

    /// The number of the server that is asked now.
    pub(crate) fn current(&self) -> usize {
        self.current.load(Ordering::SeqCst)
    }

    /// How long a server may take before other requests go to the next one: far longer than answers took of late.
    pub(crate) fn patience(&self) -> Duration {
        (Duration::from_micros(self.pace.load(Ordering::Relaxed)) * 4).clamp(ANSWERS_WITHIN, ANSWERS_WITHIN_MAX)
    }

    /// An answer took this long, or longer.
    pub(crate) fn answered_after(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let paced = |pace: u64| Some(time.max(pace - pace / 8));
        _ = self.pace.fetch_update(Ordering::Relaxed, Ordering::Relaxed, paced);
    }

    /// Leaves this server for the next one, unless that was done.
    pub(crate) fn leave(&self, server: usize) {
        self.go_to(server, 1);
    }

    /// The raft term of the latest request that the leader has ordered.
    pub(crate) fn term(&self) -> Option<u64> {
        Some(self.term.load(Ordering::SeqCst)).filter(|term| *term > 0)
    }

    /// Sends a request. Returns the number of the server with the answer.
    pub(crate) async fn ask<Q, A>(self: &Arc<Self>, method: &'static str, message: Q) -> Result<(A, usize), Status>
    where
        Q: Message + Clone + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        // A task of its own, so that a caller that gives up does not cancel the request: etcd before 3.5.5 panics when a transaction that only
        // reads is cancelled.
        let servers = Arc::clone(self);
        let answered = self.runtime.spawn(async move { servers.ask_as_user(method, message).await });
        answered.await.unwrap_or_else(|ended| Err(Status::cancelled(ended.to_string())))
    }

    /// Sends a request, and once more after another login if the one before is over. Nothing was carried out then.
    async fn ask_as_user<Q, A>(&self, method: &'static str, message: Q) -> Result<(A, usize), Status>
    where
        Q: Message + Clone + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let server = self.current();
        let token = self.token(server).await?;
        match self.ask_server(server, method, message.clone(), token.clone()).await {
            Err(status) if self.is_logged_out(&status, server, token.as_ref()).await => {
                let server = self.current();
                let token = self.token(server).await?;
                Ok((self.ask_server(server, method, message, token).await?, server))
            }
            answer => Ok((answer?, server)),
        }
    }

    async fn ask_server<Q, A>(
        &self,
        server: usize,
        method: &'static str,
        message: Q,
        token: Option<Token>,
    ) -> Result<A, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let mut asked = pin!(calls::ask(self.channel(server), method, message, token));
        let sent = HostClock.now();
        let answer = match timeout(self.patience(), &mut asked).await {
            Ok(answer) => answer,
            Err(_) => {
                self.leave(server);
                asked.await
            }
        };
        match &answer {
            Ok(_) => self.answered_after(HostClock.now().since(sent)),
            Err(status) if is_of_server(status) => self.leave(server),
            Err(_) => {}
        }
        answer
    }

    /// The token for requests to this server, if there is a user.
    async fn token(&self, server: usize) -> Result<Option<Token>, Status> {
        let Some(login) = &self.login else { return Ok(None) };
        let silent = || Status::unavailable("the login was not answered in time");
        let told = timeout(LOGS_IN_WITHIN, login.token(self.channel(server))).await.unwrap_or_else(|_| Err(silent()));
        if told.as_ref().is_err_and(is_of_server) {
            self.leave(server);
        }
        told
    }

    /// Whether another login may help, after this refusal of a request with this token.
    async fn is_logged_out(&self, refusal: &Status, server: usize, token: Option<&Token>) -> bool {
        let Some(login) = self.login.as_ref().filter(|_| login::is_over(refusal)) else { return false };
        if login.forget(token).await {
            // The same server by another number, so that streams open anew.
            self.go_to(server, self.count());
        }
        true
    }

    /// Carries out a transaction that the leader orders. Also returns where and when it was answered.
    pub(crate) async fn transact(self: &Arc<Self>, transaction: TxnRequest) -> Result<(TxnResponse, Seen), Status> {
        let (sent, is_logged) = (HostClock.now(), txn::is_logged(&transaction));
        let (answer, _): (TxnResponse, usize) = self.ask("/etcdserverpb.KV/Txn", transaction).await?;
        let term = answer.header.unwrap_or_default().raft_term;
        self.term.store(term, Ordering::SeqCst);
        Ok((answer, Seen { term: Some(term).filter(|_| is_logged), sent }))
    }

    /// Opens a stream of requests and answers. The server answers the opening together with the first request.
    pub(crate) async fn stream<Q, A>(
        &self,
        server: usize,
        method: &'static str,
        messages: impl futures_util::Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let token = self.token(server).await?;
        calls::stream(self.channel(server), method, messages, token).await
    }

    /// Logs in, if there is a user and no login. The stream does not say why it was not opened.
    pub(crate) async fn check_login(&self) -> Result<(), Status> {
        self.token(self.current()).await.map(drop)
    }

    /// Refuses servers that are too old. Newer ones may keep their version from some users.
    pub(crate) async fn check_version(self: &Arc<Self>) -> Result<(), Status> {
        match self.ask("/etcdserverpb.Maintenance/Status", StatusRequest {}).await {
            Ok((StatusResponse { version, .. }, _)) => version::check(&version),
            Err(status) if status.code() == Code::PermissionDenied => Ok(()),
            Err(status) => Err(status),
        }
    }

    /// Waits until another server than this one is asked.
    pub(crate) async fn left(&self, server: usize) {
        while self.current() == server {
            sleep(ANSWERS_WITHIN / 3).await;
        }
    }

    fn go_to(&self, server: usize, further: usize) {
        let next = server.wrapping_add(further);
        _ = self.current.compare_exchange(server, next, Ordering::SeqCst, Ordering::SeqCst);
    }

    fn channel(&self, server: usize) -> Channel {
        self.channels[server % self.channels.len()].clone()
    }
}

/// Whether another server may do better: this one is not there, or cannot serve.
pub(crate) fn is_of_server(status: &Status) -> bool {
    status.code() == Code::Unavailable || status.source().is_some()
}
