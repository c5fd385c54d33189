//! The answers that came with a call. The guest gets one if it asks exactly this question, soon, and next.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use brine_sandbox_wire::{ByteBuf, Foreseen as Answer, HostOp};

/// Age at which the answers are of no use. They were made when the call was sent; a guest that slept meanwhile, or waited
/// for its slot, asks for the present.
const MAX_AGE: Duration = Duration::from_millis(100);

/// The answers that came with a call, in the order of the expected questions.
#[derive(Debug)]
pub struct Foreseen {
    answers: VecDeque<Answer>,
    arrived: Instant,
    used: u32,
}

impl Foreseen {
    /// Takes the answers of a call that arrived then.
    #[must_use]
    pub fn new(answers: Vec<Answer>, arrived: Instant) -> Self {
        Self { answers: answers.into(), arrived, used: 0 }
    }

    /// Takes the answer to this question. None: it has to be asked, and the other answers are forgotten, because what the
    /// guest asks may change them.
    pub fn take(&mut self, op: &HostOp) -> Option<ByteBuf> {
        let next = self.answers.pop_front()?;
        if next.op != *op || self.arrived.elapsed() > MAX_AGE {
            self.forget();
            return None;
        }
        self.used += 1;
        Some(next.answer)
    }

    /// Forgets the answers: the guest does something else.
    pub fn forget(&mut self) {
        self.answers.clear();
    }

    /// Returns the number of answers that the guest has asked for.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use brine_sandbox_wire::{DisksOp, GrainsOp};

    use super::*;

    fn question(n: u8) -> HostOp {
        HostOp::Disks(DisksOp::Usage { mount_point: format!("/{n}") })
    }

    fn of(numbers: &[u8], arrived: Instant) -> Foreseen {
        let answer = |n: &u8| Answer { op: question(*n), answer: ByteBuf::from(vec![*n]) };
        Foreseen::new(numbers.iter().map(answer).collect(), arrived)
    }

    #[test]
    fn each_answer_is_for_one_question_and_in_order() {
        let mut foreseen = of(&[1, 2, 3], Instant::now());
        assert_eq!(foreseen.take(&question(1)), Some(ByteBuf::from(vec![1])));
        assert_eq!(foreseen.take(&question(2)), Some(ByteBuf::from(vec![2])));
        // The same again is asked for real, and what comes after it too.
        assert_eq!((foreseen.take(&question(2)), foreseen.take(&question(3)), foreseen.used()), (None, None, 2));
        let mut foreseen = of(&[1, 2], Instant::now());
        assert_eq!((foreseen.take(&question(2)), foreseen.take(&question(1)), foreseen.used()), (None, None, 0));
        let mut foreseen = of(&[1], Instant::now());
        assert_eq!(foreseen.take(&HostOp::Grains(GrainsOp::Items)), None);
        let mut foreseen = of(&[1], Instant::now());
        foreseen.forget();
        assert_eq!((foreseen.take(&question(1)), foreseen.used()), (None, 0));
    }

    #[test]
    fn an_old_answer_is_no_answer() {
        let before = Instant::now().checked_sub(MAX_AGE * 2).unwrap();
        let mut foreseen = of(&[1], before);
        assert_eq!((foreseen.take(&question(1)), foreseen.used()), (None, 0));
    }
}
