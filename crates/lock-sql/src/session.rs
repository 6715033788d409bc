//! Requests over windows of the rules.

use std::marker::PhantomData;
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, FencingToken, Moment, Owner};
use lock_rules::window::{self, Commit, Committed, Request, Step, Window, WindowStore};
use lock_rules::{Hold, Write};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::commit::CommitArguments;
use crate::database::{Connection, Database, damaged, error, unreadable};
use crate::wire::{Bell, Load, Loaded, to_owner};

/// How long an expired lease counts as held while a transaction is fenced by it. Its waiters ask again then.
const FENCED_FOR: Duration = Duration::from_millis(100);
/// How long a request waits for such a transaction before it looks again: first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// The store, as the rules over windows see it.
pub(crate) struct Windows<D>(PhantomData<D>);

impl<D: Database> WindowStore for Windows<D> {
    const BACKEND: &'static str = D::BACKEND;
    type Client = Bell;
}

/// One request over one connection.
pub(crate) struct Session<D: Database> {
    connection: D::Connection,
    /// When its time is over.
    deadline: Instant,
    /// The server's clock when a window was loaded.
    now: Moment,
}

/// The answer of `commit`.
#[derive(Deserialize)]
#[serde(untagged)]
enum CommitAnswer {
    Done(Done),
    Fenced(Vec<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Done {
    Written,
    Conflict,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    within: u128,
}

impl<D: Database> Session<D> {
    pub(crate) fn new(connection: D::Connection, deadline: Instant) -> Self {
        Self { connection, deadline, now: Moment::ORIGIN }
    }

    /// What is left of the request's time: how long it may wait for locks of rows.
    pub(crate) fn within(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }

    /// Calls a function of the schema; `None` for NULL.
    pub(crate) async fn call<T: DeserializeOwned>(
        &mut self,
        function: &'static str,
        arguments: &(impl Serialize + Sync),
    ) -> Result<Option<T>, BackendError> {
        let arguments = serde_json::to_string(arguments).map_err(unreadable::<D>)?;
        let answer = self.connection.call(function, &arguments, self.within()).await?;
        answer.map(|text| serde_json::from_str(&text).map_err(unreadable::<D>)).transpose()
    }

    /// Runs a request of the rules until it is answered. Tokens are drawn above the floor.
    pub(crate) async fn run<T>(
        &mut self,
        key: &str,
        floor: Option<FencingToken>,
        request: Request<'_, Windows<D>, T>,
    ) -> Result<T, BackendError> {
        let first = request.begin();
        self.go_on(key, floor, request, first).await
    }

    /// Runs requests for different locks. What most of them need is loaded at once. Each answer comes with the server's clock.
    pub(crate) async fn run_all<T>(
        &mut self,
        requests: Vec<(String, Request<'_, Windows<D>, T>)>,
    ) -> Result<Vec<(T, Moment)>, BackendError> {
        let needs: Vec<_> = requests.iter().map(|(_, request)| request.needs().clone()).collect();
        let loads: Vec<_> = requests.iter().zip(&needs).map(|((key, _), needs)| Load::new(key, needs)).collect();
        let loaded: Option<Vec<Option<Loaded>>> = self.call("load_all_1", &loads).await?;
        let mut answers = Vec::new();
        for (((key, mut request), needs), loaded) in requests.into_iter().zip(needs).zip(loaded.unwrap_or_default()) {
            let first = match loaded {
                Some(loaded) => request.loaded(self.window(loaded, needs)?),
                None => request.begin(),
            };
            answers.push((self.go_on(&key, None, request, first).await?, self.now));
        }
        Ok(answers)
    }

    async fn go_on<T>(
        &mut self,
        key: &str,
        floor: Option<FencingToken>,
        mut request: Request<'_, Windows<D>, T>,
        mut step: Step<Bell, T>,
    ) -> Result<T, BackendError> {
        let (mut fenced, mut pause) = (Vec::new(), PAUSE_MIN);
        loop {
            step = match step {
                Step::Load(needs) => {
                    let mut window = self.load(key, needs).await?;
                    window.last_token = window.last_token.max(floor.map_or(0, FencingToken::get));
                    count_as_held(&mut window, &fenced);
                    request.loaded(window)
                }
                Step::Commit(commit) => {
                    let remedy = end_of_fence(&commit);
                    match self.commit(key, commit).await? {
                        CommitAnswer::Done(Done::Written) => request.committed(Committed::Written),
                        CommitAnswer::Done(Done::Conflict) => request.committed(Committed::Conflict),
                        CommitAnswer::Fenced(owners) => {
                            fenced = owners
                                .iter()
                                .map(|owner| to_owner(owner))
                                .collect::<Result<_, _>>()
                                .map_err(damaged::<D>)?;
                            self.pause(&mut pause, remedy).await?;
                            request.committed(Committed::Conflict)
                        }
                    }
                }
                Step::Done(answer) => return answer,
            };
        }
    }

    /// Waits a little for a transaction that is fenced by a lease; an error if there is no time left.
    async fn pause(&mut self, pause: &mut Duration, remedy: &str) -> Result<(), BackendError> {
        if self.within() < *pause * 2 {
            let message = "a transaction that is fenced by this lease is still open";
            return Err(error::<D>(ErrorKind::Unavailable, Effect::None, message).with_remedy(remedy));
        }
        sleep(*pause).await;
        *pause = (*pause * 2).min(PAUSE_MAX);
        Ok(())
    }

    pub(crate) async fn load(&mut self, key: &str, needs: window::Needs) -> Result<Window<Bell>, BackendError> {
        loop {
            if let Some(loaded) = self.call::<Loaded>("load_1", &Load::new(key, &needs)).await? {
                return self.window(loaded, needs);
            }
            let arguments = Named { name: key, within: self.within().as_millis() };
            self.call::<bool>("make_1", &arguments).await?;
        }
    }

    fn window(&mut self, loaded: Loaded, needs: window::Needs) -> Result<Window<Bell>, BackendError> {
        let window = loaded.window(needs).map_err(damaged::<D>)?;
        self.now = window.now;
        Ok(window)
    }

    async fn commit(&mut self, key: &str, commit: Commit<Bell>) -> Result<CommitAnswer, BackendError> {
        let arguments = CommitArguments::new(key, self.within(), commit);
        let answer = self.call("commit_1", &arguments).await?;
        answer.ok_or_else(|| {
            error::<D>(ErrorKind::Protocol, Effect::Unknown, "the server did not say what became of a commit")
        })
    }
}

/// How a transaction in the way of this commit ends: an operator who breaks a lock has no other way than to end it.
fn end_of_fence(commit: &Commit<Bell>) -> &'static str {
    if commit.writes.iter().any(|write| matches!(write, Write::Revocation(..))) {
        return "end it at the server (pg_terminate_backend in PostgreSQL, KILL in MySQL), then break again";
    }
    "commit the transaction before the lock is released"
}

/// An expired lease that a transaction is fenced by is held for a little longer.
fn count_as_held(window: &mut Window<Bell>, fenced: &[Owner]) {
    let (held, expired): (Vec<Hold>, _) =
        std::mem::take(&mut window.expired).into_iter().partition(|hold| fenced.contains(&hold.owner));
    window.expired = expired;
    for hold in held {
        let until = window.now + FENCED_FOR;
        window.first_ends.push((until, hold.mode.count()));
        window.last.push(Hold { until, ..hold });
    }
    window.first_ends.sort_unstable();
    window.last.sort_unstable_by_key(|hold| std::cmp::Reverse((hold.until, hold.owner)));
    window.last.truncate(2);
}
