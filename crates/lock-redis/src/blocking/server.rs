//! The client of one server, on threads.

use std::cell::Cell;
use std::time::Duration;

use super::stack::{Asks, Heard, Stack};
use crate::RedisConfig;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, has_forgotten_the_script};
use crate::failure::Failure;
use crate::requests::simple::disk_check;
use crate::runs::was_cut_short;
use crate::server::greeting::warnings;
use crate::server::server_info::ServerInfo;
use crate::server::verification;
use crate::servers::Server;
use crate::span::Span;
use crate::wire::{Attempt, Call, Line, Question, Retry, load};

impl Server<Stack> {
    /// Connects, if there is no connection yet, and returns warnings about the server. Refuses one that cannot wait for its disk, if it
    /// has to.
    pub(super) fn greet(&self, config: &RedisConfig) -> Result<Vec<String>, Failure> {
        let Some(stack) = self.source.own() else { return Ok(Vec::new()) };
        let warnings = warnings(config, &*stack.greet(Span::from_now(CONNECT_WITHIN))?);
        if let Some(check) = disk_check(config.copies()) {
            self.answer(&check, Span::from_now(CONNECT_WITHIN))?;
        }
        Ok(warnings)
    }

    /// Whether its waiters are notified, once one of them has to wait.
    pub(super) fn hears(&self) -> bool {
        self.wire.channel.is_some()
    }

    /// Asks within a time limit that may be shared with other questions. An idempotent question is repeated once over
    /// another connection if the first one broke.
    pub(crate) fn answer<Q: Question>(&self, question: &Q, span: Span) -> Result<Q::Answer, Failure> {
        self.repeat(question, span, self.answer_once(question, span, Attempt::default()))
    }

    /// The same with a time limit that begins now.
    pub(crate) fn answer_untimed<Q: Question>(&self, question: &Q, within: Duration) -> Result<Q::Answer, Failure> {
        self.answer(question, Span::from_now(within))
    }

    /// Asks each of these for itself, in one write if a connection is free. None of them depends on a counter.
    pub(crate) fn answer_each<Q: Question>(&self, questions: &[Q], span: Span) -> Vec<Result<Q::Answer, Failure>> {
        let calls = |server_info: &ServerInfo| {
            let line = Line { wire: &self.wire, server_info, attempt: Attempt::default() };
            questions.iter().map(|question| line.call(question, span.until)).collect()
        };
        let heard = match self.source.own().filter(|_| questions.len() > 1) {
            Some(stack) => stack.ask_each(&calls, span),
            None => None,
        };
        match heard {
            None => questions.iter().map(|question| self.answer(question, span)).collect(),
            Some(Err(failure)) => questions.iter().map(|_| Err(failure.clone())).collect(),
            Some(Ok(heard)) => {
                let both = questions.iter().zip(heard);
                both.map(|(question, heard)| match heard.reply {
                    Err(error) if has_forgotten_the_script(&error) => self.answer(question, span),
                    _ => self.repeat(question, span, self.read(question, span, heard, Attempt::default())),
                })
                .collect()
            }
        }
    }

    /// Asks once more if that is safe and the connection broke.
    fn repeat<Q: Question>(
        &self,
        question: &Q,
        span: Span,
        first: Result<Q::Answer, Failure>,
    ) -> Result<Q::Answer, Failure> {
        match (first, question.retry()) {
            (Err(failure), Retry::Once) if failure.is_a_break() => {
                self.answer_once(question, span, Attempt::after(&failure)).map_err(Failure::after_a_part)
            }
            (outcome, Retry::Once | Retry::Never) => outcome,
        }
    }

    pub(super) fn answer_once<Q: Question>(
        &self,
        question: &Q,
        span: Span,
        attempt: Attempt<'_>,
    ) -> Result<Q::Answer, Failure> {
        self.read(question, span, self.evaluate(question, span, attempt)?, attempt)
    }

    fn read<Q: Question>(
        &self,
        question: &Q,
        span: Span,
        Heard { reply, server_info }: Heard,
        attempt: Attempt<'_>,
    ) -> Result<Q::Answer, Failure> {
        let broke = |error| classify(self.wire.asked(span.within), &error).at(|| server_info.incarnation());
        let line = Line { wire: &self.wire, server_info: &server_info, attempt };
        reply.map_err(broke).and_then(|reply| line.read(question, reply))
    }

    /// Sends a question, and sends it again while its script ends before it is done.
    fn evaluate<Q: Question>(&self, question: &Q, span: Span, attempt: Attempt<'_>) -> Result<Heard, Failure> {
        let mut heard = self.evaluate_once(question, span, attempt)?;
        while heard.reply.as_ref().is_err_and(was_cut_short) {
            heard = self.evaluate_once(question, span, attempt).map_err(Failure::after_a_part)?;
        }
        Ok(heard)
    }

    /// Sends a question; if the server has forgotten its script, loads that and sends it again in full.
    fn evaluate_once<Q: Question>(&self, question: &Q, span: Span, attempt: Attempt<'_>) -> Result<Heard, Failure> {
        let call = |server_info: &ServerInfo| {
            let line = Line { wire: &self.wire, server_info, attempt };
            line.call(question, span.until)
        };
        let ask = |asks: &Asks<'_>| self.source.ask(question.operation(), asks, span);
        let heard = verified(&call, &ask)?;
        if !heard.reply.as_ref().is_err_and(has_forgotten_the_script) {
            return Ok(heard);
        }
        let Some(script) = call(&heard.server_info)?.script else { return Ok(heard) };
        // For later requests. This one does not depend on it: the script may be forgotten again, and without the right to load it
        // still runs.
        ask(&|_| Ok(Call::plain(load(script))))?;
        verified(&|server_info: &ServerInfo| Ok(call(server_info)?.in_full()), &ask)
    }
}

/// Asks, and before that has the counter of the hash slot verified at the server that answers, if it depends on that.
fn verified(call: &Asks<'_>, ask: &dyn Fn(&Asks<'_>) -> Result<Heard, Failure>) -> Result<Heard, Failure> {
    let unverified = Cell::new(None);
    let next = |server_info: &ServerInfo| {
        let call = call(server_info)?;
        unverified.set(server_info.unverified(call.slot));
        Ok(unverified.get().map_or(call, |slot| verification::of_slot(server_info, slot)))
    };
    loop {
        let heard = ask(&next)?;
        match (unverified.get(), heard.reply) {
            (Some(slot), Ok(reply)) => heard.server_info.verified(slot, verification::longest(reply)),
            (_, reply) => {
                heard.server_info.judge(&reply);
                return Ok(Heard { reply, ..heard });
            }
        }
    }
}
