//! Applies the hunks of a section to a text: where each fits, by the rules of GNU patch.

use super::unified::{Hunk, Section, Sign, lines};

/// How hunks are applied.
#[derive(Debug, Clone, Copy)]
pub(super) struct How {
    /// How many lines of context may differ.
    pub(super) fuzz: i64,
    /// Whether a patch that seems to be applied already is skipped; else its hunks fail one by one.
    pub(super) skips: bool,
}

/// What became of a text.
#[derive(Debug, Default)]
pub(super) struct Applied {
    pub(super) text: Vec<u8>,
    pub(super) said: Vec<String>,
    /// The hunks that did not fit, and how far what is before them moved.
    pub(super) rejected: Vec<(Hunk, i64)>,
    /// Whether the hunks were left out, since the text has them already.
    pub(super) skipped: bool,
    /// Whether a hunk fitted at another place, or not exactly, or not at all.
    pub(super) mismatch: bool,
}

pub(super) fn apply(section: &Section, input: &[u8], how: How) -> Applied {
    let mut state = State { input: lines(input), frozen: 0, moved: 0, grown: 0, done: Applied::default() };
    for (at, hunk) in section.hunks.iter().enumerate() {
        if state.done.skipped {
            state.done.rejected.push((hunk.clone(), state.grown));
            continue;
        }
        state.hunk(hunk, at, how);
    }
    let rest = state.frozen as usize;
    let State { input, mut done, .. } = state;
    input[rest..].iter().for_each(|line| done.text.extend_from_slice(line));
    done
}

struct State<'a> {
    input: Vec<&'a [u8]>,
    /// How many lines of the input are done.
    frozen: i64,
    /// How far the last hunk was from its place.
    moved: i64,
    /// How many lines the output has more.
    grown: i64,
    done: Applied,
}

impl State<'_> {
    fn hunk(&mut self, hunk: &Hunk, at: usize, how: How) {
        let (before, behind) = hunk.context();
        let most = how.fuzz.min(before.max(behind));
        let (mut place, mut fuzz) = (None, 0);
        while fuzz <= most {
            place = self.locate(hunk, fuzz);
            if place.is_some() {
                break;
            }
            self.done.mismatch = true;
            if at == 0 && how.skips && self.locate(&hunk.reversed(), fuzz).is_some() {
                self.done.skipped = true;
                let said = "Reversed (or previously applied) patch detected!  Skipping patch.";
                self.done.said.push(said.to_owned());
                self.done.rejected.push((hunk.clone(), self.grown));
                return;
            }
            fuzz += 1;
        }
        let number = at + 1;
        let Some(place) = place else {
            self.done.said.push(format!("Hunk #{number} FAILED at {}.", hunk.first() + self.grown));
            self.done.rejected.push((hunk.clone(), self.grown));
            return;
        };
        self.moved = place - hunk.first();
        if fuzz > 0 || self.moved != 0 {
            self.done.mismatch = true;
            let mut said = format!("Hunk #{number} succeeded at {}", place + self.grown);
            if fuzz > 0 {
                said += &format!(" with fuzz {fuzz}");
            }
            if self.moved != 0 {
                said += &format!(" (offset {} line{})", self.moved, if self.moved == 1 { "" } else { "s" });
            }
            self.done.said.push(said + ".");
        }
        self.change(hunk, place);
    }

    fn change(&mut self, hunk: &Hunk, place: i64) {
        let copy = |state: &mut Self, until: i64| {
            while state.frozen < until.min(state.input.len() as i64) {
                state.done.text.extend_from_slice(state.input[state.frozen as usize]);
                state.frozen += 1;
            }
        };
        copy(self, place - 1);
        for (sign, line) in &hunk.lines {
            match sign {
                // What the text has stays, where it differs too.
                Sign::Stays => {
                    let until = self.frozen + 1;
                    copy(self, until);
                }
                Sign::Goes => self.frozen += 1,
                Sign::Comes => self.done.text.extend_from_slice(line),
            }
        }
        self.grown += hunk.count(Sign::Goes) - hunk.count(Sign::Comes);
    }

    /// The line at which a hunk fits with so many lines of its context left out, from 1: nearest to its place.
    fn locate(&self, hunk: &Hunk, fuzz: i64) -> Option<i64> {
        let old = hunk.old();
        let (count, length) = (old.len() as i64, self.input.len() as i64);
        let guess = hunk.first() + self.moved;
        if count == 0 {
            // Nothing has to be there: it fits anywhere, and at the end of a text that is too short.
            return (guess > self.frozen).then_some(guess);
        }
        let (before, behind) = hunk.context();
        let context = before.max(behind);
        let (mut before_fuzz, behind_fuzz) = (fuzz + before - context, fuzz + behind - context);
        let fits = |place: i64, before_fuzz: i64, behind_fuzz: i64| {
            let wanted = before_fuzz..count - behind_fuzz;
            wanted.clone().all(|at| {
                let line = usize::try_from(place - 1 + at).ok().and_then(|line| self.input.get(line));
                line.is_some_and(|line| *line == old[at as usize])
            }) && place > 0
        };
        let most = length - (count - behind_fuzz.max(0)) + 1 - guess;
        let least = guess - (self.frozen + 1);
        if before_fuzz < 0 && hunk.first() <= 1 {
            // With less context before than behind it, it belongs to the start of the text.
            let is_free = self.frozen <= before && (behind_fuzz >= 0 || count == length);
            return (is_free && fits(1, 0, behind_fuzz.max(0))).then_some(1);
        }
        before_fuzz = before_fuzz.max(0);
        if behind_fuzz < 0 {
            // With less behind, to its end.
            let place = length - count + 1;
            return (guess - place <= least && fits(place, before_fuzz, 0)).then_some(place);
        }
        for offset in 0..=most.max(least).max(0) {
            if offset <= most && fits(guess + offset, before_fuzz, behind_fuzz) {
                return Some(guess + offset);
            }
            if offset > 0 && offset <= least && fits(guess - offset, before_fuzz, behind_fuzz) {
                return Some(guess - offset);
            }
        }
        None
    }
}
