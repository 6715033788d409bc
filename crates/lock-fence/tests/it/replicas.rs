//! Two replicas of a service, with a layer each and one database.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use ::http::{Request, Response, StatusCode};
use lock_core::FencingToken;
use lock_fence::http::{FENCING_TOKEN, Fencing, FencingLayer};
use lock_fence::sql::FenceColumn;
use rusqlite::Connection;
use test_support::bounds::PATIENCE;
use tokio::sync::Notify;
use tower_layer::Layer;
use tower_service::Service;

use crate::http::sent;
use crate::token;

/// Writes the body of a request to the database. Says whether it did.
type Write = fn(&Connection, FencingToken, &str) -> bool;

fn without_a_check(db: &Connection, _: FencingToken, text: &str) -> bool {
    db.execute("UPDATE invoice SET text = ?1", [text]).unwrap() == 1
}

fn with_the_token(db: &Connection, token: FencingToken, text: &str) -> bool {
    let invoices = FenceColumn::new("invoice", "fence").unwrap();
    invoices.update(db, token, &[("text", &text)], &[("id", &42)]).is_ok()
}

#[derive(Clone)]
struct Replica {
    db: Arc<Mutex<Connection>>,
    write: Write,
    /// A request with the body "paused" says that it is there, and continues on demand.
    paused: Arc<Notify>,
    resume: Arc<Notify>,
}

impl Replica {
    fn new(write: Write) -> Self {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE invoice (id INTEGER, text TEXT, fence BIGINT NOT NULL DEFAULT 0);
             INSERT INTO invoice (id) VALUES (42)",
        )
        .unwrap();
        Self { db: Arc::new(Mutex::new(db)), write, paused: Arc::default(), resume: Arc::default() }
    }

    /// One process of this service: its layer knows nothing of the others.
    fn served(&self) -> Fencing<Self> {
        FencingLayer::new(Arc::default()).layer(self.clone())
    }

    fn text(&self) -> String {
        self.db.lock().unwrap().query_row("SELECT text FROM invoice", (), |row| row.get(0)).unwrap()
    }
}

impl Service<Request<String>> for Replica {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let replica = self.clone();
        Box::pin(async move {
            if request.body() == "paused" {
                replica.paused.notify_one();
                replica.resume.notified().await;
            }
            let token = *request.extensions().get::<FencingToken>().unwrap();
            let written = (replica.write)(&replica.db.lock().unwrap(), token, request.body());
            let status = if written { StatusCode::OK } else { StatusCode::CONFLICT };
            let mut answer = Response::new(String::new());
            *answer.status_mut() = status;
            Ok(answer)
        })
    }
}

async fn put(service: Fencing<Replica>, token: FencingToken, text: &str) -> u16 {
    let request = Request::put("/invoice/42").header(FENCING_TOKEN, token.get()).body(text.to_owned()).unwrap();
    sent(service, request).await.status().as_u16()
}

/// A write is let in at one replica and paused. The later holder writes at the other one. Then the first one goes on, and the
/// first holder writes once more at a replica that has just started. Says what these two were answered, and what is there.
async fn play(write: Write) -> (u16, u16, String) {
    let replica = Replica::new(write);
    let [one, two, three] = [(); 3].map(|()| replica.served());
    let earlier = tokio::spawn(put(one, token(33), "paused"));
    replica.paused.notified().await;
    assert_eq!(put(two, token(34), "later").await, 200);
    replica.resume.notify_one();
    (earlier.await.unwrap(), put(three, token(33), "late").await, replica.text())
}

#[tokio::test]
async fn behind_layers_alone_two_replicas_let_late_writes_in() {
    let seen = tokio::time::timeout(PATIENCE, play(without_a_check)).await.expect("all writes end");
    assert_eq!(seen, (200, 200, "late".to_owned()));
}

#[tokio::test]
async fn the_token_in_the_transaction_of_the_write_refuses_them() {
    let seen = tokio::time::timeout(PATIENCE, play(with_the_token)).await.expect("all writes end");
    assert_eq!(seen, (409, 409, "later".to_owned()));
}
