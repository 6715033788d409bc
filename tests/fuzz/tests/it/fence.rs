//! The token in a header of a request.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use fuzz::inputs::{like, text};
use fuzz::{fuzz, is_presentable};
use http::{HeaderValue, Request, Response};
use lock_core::FencingToken;
use lock_fence::Gate;
use lock_fence::http::{FENCING_TOKEN, FencingLayer};
use proptest::prelude::*;
use tower_layer::Layer;
use tower_service::Service;

/// Answers with the token that it was given.
#[derive(Clone)]
struct Echo;

impl Service<Request<()>> for Echo {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        ready(Ok(Response::new(request.extensions().get::<FencingToken>().unwrap().to_string())))
    }
}

#[test]
fn headers() {
    let header = prop_oneof![like(&["34", "9007199254740991", "34, 35"]), text()];
    fuzz(header, |header| {
        let Ok(value) = HeaderValue::from_bytes(header.as_bytes()) else { return Ok(()) };
        let request = Request::put("/").header(FENCING_TOKEN, value).body(()).unwrap();
        let mut service = FencingLayer::new(Arc::new(Gate::new())).layer(Echo);
        let answer = service.call(request).now_or_never().unwrap().unwrap();
        match answer.status().as_u16() {
            200 => prop_assert_eq!(answer.body().parse::<FencingToken>(), header.parse()),
            400 => is_presentable(answer.body().trim_end())?,
            other => prop_assert!(false, "{other}"),
        }
        Ok(())
    });
}
