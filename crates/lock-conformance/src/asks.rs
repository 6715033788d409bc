//! Requests of one task that does not wait for the answers in between.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use lock_core::{Answer, AsyncBackend, Certainty, Claim, Released};

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask<'a> {
    Acquire(&'a Claim),
    Release(&'a Claim),
}

/// The answer to such a request: whether it was granted, or what it released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Granted,
    Denied,
    Released(Released),
}

/// Asks, and waits for the answer.
pub(crate) fn said<'a>(
    backend: &'a dyn AsyncBackend,
    ask: Ask<'a>,
    within: Duration,
) -> Pin<Box<dyn Future<Output = Said> + Send + 'a>> {
    Box::pin(async move {
        match ask {
            Ask::Acquire(claim) => match backend.acquire(claim, within).await.unwrap() {
                Answer::Granted { .. } => Said::Granted,
                Answer::Queued { .. } | Answer::Busy { .. } => Said::Denied,
            },
            Ask::Release(claim) => {
                let request = claim.release(Certainty::Answered);
                Said::Released(backend.release(&request, within).await.unwrap())
            }
        }
    })
}

/// Polls all of these in their order until each has its answer.
pub(crate) async fn all<T: Send>(mut asked: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut answers: Vec<Option<T>> = asked.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (asked, answer) in asked.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(said) = asked.as_mut().poll(cx) {
                *answer = Some(said);
            }
        }
        if answers.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}
