//! The layer, in front of a service that stores what it receives.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use ::http::{HeaderName, Method, Request, Response};
use lock_core::FencingToken;
use lock_fence::http::{FENCING_RAISE, FENCING_TOKEN, Fencing, FencingLayer, WithoutToken};
use lock_fence::{Admitted, Gate};
use test_support::bounds::PATIENCE;
use tokio::sync::{Notify, Semaphore};
use tower_layer::Layer;
use tower_service::Service;

use crate::token;

/// A service that writes the body of each request, and answers with what was written last.
#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<String>>);

impl Store {
    pub(crate) fn value(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Service<Request<String>> for Store {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        if !request.method().is_safe() {
            *self.0.lock().unwrap() = request.into_body();
        }
        ready(Ok(Response::new(self.value())))
    }
}

/// Runs one request to its end.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn send<S>(service: S, request: Request<String>) -> Response<String>
where
    S: Service<Request<String>, Response = Response<String>, Error = Infallible>,
{
    sent(service, request).await
}

pub(crate) async fn sent<S>(mut service: S, request: Request<String>) -> Response<String>
where
    S: Service<Request<String>, Response = Response<String>, Error = Infallible>,
{
    std::future::poll_fn(|context| service.poll_ready(context)).await.unwrap();
    service.call(request).await.unwrap()
}

fn request(method: Method, path: &str, token: Option<&str>, body: &str) -> Request<String> {
    let request = Request::builder().method(method).uri(path);
    let request = token.into_iter().fold(request, |request, token| request.header(FENCING_TOKEN, token));
    request.body(body.to_owned()).unwrap()
}

/// Writes to `/x`.
pub(crate) fn put<S>(service: S, token: Option<FencingToken>, body: &str) -> Response<String>
where
    S: Service<Request<String>, Response = Response<String>, Error = Infallible>,
{
    let token = token.map(|token| token.to_string());
    send(service, request(Method::PUT, "/x", token.as_deref(), body))
}

fn fenced() -> (Store, Fencing<Store>) {
    let store = Store::default();
    (store.clone(), FencingLayer::new(Arc::new(Gate::new())).layer(store))
}

#[test]
fn a_late_write_is_refused_with_409_and_the_reason() {
    let (store, service) = fenced();
    assert_eq!(put(service.clone(), Some(token(34)), "new").status(), 200);
    let answer = put(service.clone(), Some(token(33)), "old");
    assert_eq!(answer.status(), 409);
    assert_eq!(answer.headers()[FENCING_TOKEN], "34");
    assert!(answer.body().contains("token 33 comes too late"), "{}", answer.body());
    assert_eq!(store.value(), "new");
    assert_eq!(put(service, Some(token(34)), "newer").status(), 200);
}

#[test]
fn a_read_raises_nothing_and_is_refused_if_it_is_too_old() {
    let (_, service) = fenced();
    let get = |token: &str| send(service.clone(), request(Method::GET, "/x", Some(token), ""));
    assert_eq!(get("90").status(), 200);
    assert_eq!(put(service.clone(), Some(token(34)), "new").status(), 200, "the reader shut out the writer");
    assert_eq!(
        (get("90").into_body(), get("34").status().as_u16(), get("33").status().as_u16()),
        ("new".into(), 200, 409)
    );
}

#[test]
fn a_write_without_a_token_is_428_or_let_through() {
    let (store, service) = fenced();
    let answer = put(service.clone(), None, "x");
    assert_eq!((answer.status().as_u16(), store.value().as_str()), (428, ""));
    assert!(answer.body().contains("fencing-token"), "{}", answer.body());
    assert_eq!(send(service, request(Method::GET, "/x", None, "")).status(), 200);

    let open = FencingLayer::new(Arc::default()).without_token(WithoutToken::Admit).layer(store.clone());
    assert_eq!((put(open, None, "x").status().as_u16(), store.value().as_str()), (200, "x"));
}

/// Answers with the token that the layer has found.
#[derive(Clone)]
struct Echo;

impl Service<Request<String>> for Echo {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let token = request.extensions().get::<FencingToken>();
        ready(Ok(Response::new(token.map(ToString::to_string).unwrap_or_default())))
    }
}

#[test]
fn the_service_finds_the_token_among_the_extensions() {
    let layer = FencingLayer::new(Arc::default()).without_token(WithoutToken::Admit);
    let found = |method, token| send(layer.layer(Echo), request(method, "/x", token, "")).into_body();
    assert_eq!((found(Method::PUT, Some("34")), found(Method::PUT, None)), ("34".into(), "".into()));
    assert_eq!(found(Method::GET, Some("35")), "35");
}

#[test]
fn what_is_not_one_token_is_400() {
    let (store, service) = fenced();
    for bad in ["", "x", "-1", "0", "9007199254740992", "33, 34", "33.0"] {
        let answer = send(service.clone(), request(Method::PUT, "/x", Some(bad), "x"));
        assert_eq!(answer.status(), 400, "{bad}: {}", answer.body());
    }
    let mut two = request(Method::PUT, "/x", Some("33"), "x");
    two.headers_mut().append(FENCING_TOKEN, 34.into());
    let answer = send(service, two);
    assert_eq!((answer.status().as_u16(), store.value().as_str()), (400, ""));
    assert!(answer.body().contains("several"), "{}", answer.body());
}

#[test]
fn each_path_is_a_resource_unless_the_layer_says_otherwise() {
    let store = Store::default();
    let status = |layer: &FencingLayer, path: &str, token: &str| {
        send(layer.layer(store.clone()), request(Method::POST, path, Some(token), "")).status().as_u16()
    };
    let paths = FencingLayer::new(Arc::default());
    assert_eq!(
        (status(&paths, "/a?x", "34"), status(&paths, "/b", "33"), status(&paths, "/a?y", "33")),
        (200, 200, 409)
    );
    let one = FencingLayer::new(Arc::default()).resource(|_| "all".to_owned());
    assert_eq!((status(&one, "/a", "34"), status(&one, "/b", "33")), (200, 409));
}

/// A service that writes on demand.
#[derive(Clone, Default)]
struct Slow {
    store: Store,
    entered: Arc<Notify>,
    go: Arc<Notify>,
}

impl Service<Request<String>> for Slow {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.store.poll_ready(context)
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let mut slow = self.clone();
        Box::pin(async move {
            if request.body() == "slow" {
                slow.entered.notify_one();
                slow.go.notified().await;
            }
            slow.store.call(request).await
        })
    }
}

#[tokio::test]
async fn a_later_write_waits_until_the_service_has_answered_an_earlier_one() {
    let (slow, gate) = (Slow::default(), Arc::new(Gate::new()));
    let service = FencingLayer::new(Arc::clone(&gate)).layer(slow.clone());
    let put = |token: &str, body: &str| sent(service.clone(), request(Method::PUT, "/x", Some(token), body));
    let play = async {
        let earlier = tokio::spawn(put("33", "slow"));
        slow.entered.notified().await;
        let later = tokio::spawn(put("34", "new"));
        while gate.highest("/x") != Some(token(34)) {
            tokio::task::yield_now().await;
        }
        assert_eq!(put("33", "old").await.status(), 409);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!later.is_finished(), "it was written beside an earlier holder's");
        slow.go.notify_one();
        (earlier.await.unwrap().status().as_u16(), later.await.unwrap().status().as_u16())
    };
    assert_eq!(tokio::time::timeout(PATIENCE, play).await.expect("both writes end"), (200, 200));
    assert_eq!(slow.store.value(), "new");
}

/// A service whose work runs on when its client disconnects.
#[derive(Clone)]
struct Spawning {
    slow: Slow,
    /// What the work holds until it ends.
    pass: fn(&Request<String>) -> Option<Admitted>,
    ended: Arc<Semaphore>,
}

impl Service<Request<String>> for Spawning {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.slow.poll_ready(context)
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let (mut slow, admitted, ended) = (self.slow.clone(), (self.pass)(&request), Arc::clone(&self.ended));
        let bare = Request::put("/x").body(request.into_body()).unwrap(); // what is spawned has no part of the request
        Box::pin(async move {
            let work = tokio::spawn(async move {
                let answer = slow.call(bare).await;
                drop(admitted);
                ended.add_permits(1);
                answer
            });
            work.await.unwrap()
        })
    }
}

/// What is written in the end, if the client of an earlier holder's write disconnects while its work runs. The later holder has to
/// be let in only afterwards.
async fn after_a_disconnect(pass: fn(&Request<String>) -> Option<Admitted>) -> String {
    let (slow, ended, gate) = (Slow::default(), Arc::new(Semaphore::new(0)), Arc::new(Gate::new()));
    let service = Spawning { slow: slow.clone(), pass, ended: Arc::clone(&ended) };
    let service = FencingLayer::new(Arc::clone(&gate)).layer(service);
    let put = |token: &str, body: &str| sent(service.clone(), request(Method::PUT, "/x", Some(token), body));
    let earlier = tokio::spawn(put("33", "slow"));
    slow.entered.notified().await;
    earlier.abort(); // as a server does
    assert!(earlier.await.unwrap_err().is_cancelled());
    let later = tokio::spawn(put("34", "new"));
    while gate.highest("/x") != Some(token(34)) {
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    slow.go.notify_one();
    assert_eq!(later.await.unwrap().status(), 200);
    let _both = ended.acquire_many(2).await.unwrap();
    slow.store.value()
}

#[tokio::test]
async fn work_that_runs_on_after_a_disconnect_is_waited_for_if_it_holds_its_admission() {
    let counted = after_a_disconnect(|request| request.extensions().get().cloned());
    assert_eq!(tokio::time::timeout(PATIENCE, counted).await.expect("both writes end"), "new");
    let uncounted = after_a_disconnect(|_| None);
    assert_eq!(tokio::time::timeout(PATIENCE, uncounted).await.expect("both writes end"), "slow");
}

#[test]
fn a_request_that_raises_is_refused_if_it_is_late_and_answered_with_its_token() {
    let (store, service) = fenced();
    let get = |headers: &[(_, &str)]| {
        let mut asked = request(Method::GET, "/x", None, "");
        asked
            .headers_mut()
            .extend(headers.iter().map(|(name, value)| (HeaderName::clone(name), value.parse().unwrap())));
        send(service.clone(), asked)
    };
    let raised = get(&[(FENCING_RAISE, "34")]);
    assert_eq!((raised.status().as_u16(), &raised.headers()[FENCING_RAISE]), (200, &"34".parse().unwrap()));
    assert_eq!(put(service.clone(), Some(token(33)), "old").status(), 409, "the fence was not raised");
    let late = get(&[(FENCING_RAISE, "33")]);
    assert_eq!((late.status().as_u16(), late.headers().get(FENCING_RAISE)), (409, None));
    assert_eq!(get(&[(FENCING_RAISE, "34"), (FENCING_TOKEN, "34")]).status(), 400);
    assert_eq!(get(&[(FENCING_TOKEN, "34")]).headers().get(FENCING_RAISE), None);
    assert_eq!(store.value(), "");
}

#[tokio::test]
async fn a_request_that_raises_waits_until_earlier_writes_have_ended() {
    let (slow, gate) = (Slow::default(), Arc::new(Gate::new()));
    let service = FencingLayer::new(Arc::clone(&gate)).layer(slow.clone());
    let mut get = request(Method::GET, "/x", None, "");
    lock_fence::http::raise(get.headers_mut(), crate::write_token(34));
    let play = async {
        let earlier = tokio::spawn(sent(service.clone(), request(Method::PUT, "/x", Some("33"), "slow")));
        slow.entered.notified().await;
        let later = tokio::spawn(sent(service, get));
        while gate.highest("/x") != Some(token(34)) {
            tokio::task::yield_now().await;
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        slow.go.notify_one();
        assert_eq!(earlier.await.unwrap().status(), 200);
        later.await.unwrap().into_body()
    };
    let read = tokio::time::timeout(PATIENCE, play).await.expect("both requests end");
    assert_eq!(read, "slow", "it read before the earlier write");
}
