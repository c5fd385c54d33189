//! Where a question waits for its answer.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::step::{Answer, Step};

/// One question at a time, and its answer.
#[derive(Default)]
pub(super) struct Mailbox {
    question: RefCell<Option<Step>>,
    answer: RefCell<Option<Answer>>,
}

impl Mailbox {
    /// Asks, and waits for the answer.
    pub(super) fn ask(&self, question: Step) -> Asked<'_> {
        self.answer.take();
        self.question.replace(Some(question));
        Asked(self)
    }

    pub(super) fn take_question(&self) -> Option<Step> {
        self.question.take()
    }

    pub(super) fn answer(&self, answer: Answer) {
        self.answer.replace(Some(answer));
    }
}

/// The answer to come.
pub(super) struct Asked<'a>(&'a Mailbox);

impl Future for Asked<'_> {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer> {
        self.0.answer.take().map_or(Poll::Pending, Poll::Ready)
    }
}
