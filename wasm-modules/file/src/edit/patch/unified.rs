//! Reads unified differences.

use super::Trouble;

/// Upper bound on the lines of a patch.
const MAX_LINES: usize = 500_000;

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Stays,
    Goes,
    Comes,
}

/// Lines to change at one place, each with its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hunk {
    /// Where its old lines begin, from 1; behind that line where it has none.
    pub(super) old_start: i64,
    pub(super) new_start: i64,
    pub(super) lines: Vec<(Sign, Vec<u8>)>,
}

impl Hunk {
    /// The lines that have to be there.
    pub(super) fn old(&self) -> Vec<&[u8]> {
        self.lines.iter().filter(|(sign, _)| *sign != Sign::Comes).map(|(_, line)| line.as_slice()).collect()
    }

    pub(super) fn count(&self, not: Sign) -> i64 {
        self.lines.iter().filter(|(sign, _)| *sign != not).count() as i64
    }

    /// Where to look first, as `patch` counts it.
    pub(super) fn first(&self) -> i64 {
        self.old_start + i64::from(self.count(Sign::Comes) == 0)
    }

    /// How many lines before and behind its changes stay.
    pub(super) fn context(&self) -> (i64, i64) {
        let stays = |(sign, _): &&(Sign, Vec<u8>)| *sign == Sign::Stays;
        let before = self.lines.iter().take_while(stays).count() as i64;
        (before, self.lines.iter().rev().take_while(stays).count() as i64)
    }

    /// The change back.
    pub(super) fn reversed(&self) -> Self {
        let back = |(sign, line): &(Sign, Vec<u8>)| {
            let sign = match sign {
                Sign::Stays => Sign::Stays,
                Sign::Goes => Sign::Comes,
                Sign::Comes => Sign::Goes,
            };
            (sign, line.clone())
        };
        Self { old_start: self.new_start, new_start: self.old_start, lines: self.lines.iter().map(back).collect() }
    }

    /// As a patch has it, `moved` lines further down.
    pub(super) fn written(&self, moved: i64) -> Vec<u8> {
        let range = |start: i64, count: i64| match count {
            1 => start.to_string(),
            _ => format!("{start},{count}"),
        };
        let old = range(self.old_start + moved, self.count(Sign::Comes));
        let new = range(self.new_start + moved, self.count(Sign::Goes));
        let mut text = format!("@@ -{old} +{new} @@\n").into_bytes();
        for (sign, line) in &self.lines {
            text.push(match sign {
                Sign::Stays => b' ',
                Sign::Goes => b'-',
                Sign::Comes => b'+',
            });
            text.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                text.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
        text
    }
}

/// The changes of one file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Section {
    /// Its old name and its new one, as they are written.
    pub(super) names: [String; 2],
    /// Those that the file has: none before it is made, and none when it goes.
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    pub(super) hunks: Vec<Hunk>,
}

impl Section {
    fn new(old: &[u8], new: &[u8]) -> Self {
        let ((old, is_old), (new, is_new)) = (name(old), name(new));
        let there = |name: &String, is_there: bool| is_there.then(|| name.clone());
        Self { old: there(&old, is_old), new: there(&new, is_new), names: [old, new], hunks: Vec::new() }
    }

    /// Whether it can be about a file that is not there.
    pub(super) fn fits_an_empty_file(&self) -> bool {
        self.old.is_none() || self.hunks.first().is_some_and(|hunk| hunk.old_start == 0 && hunk.old().is_empty())
    }

    pub(super) fn reversed(self) -> Self {
        let [old, new] = self.names;
        let hunks = self.hunks.iter().map(Hunk::reversed).collect();
        Self { names: [new, old], old: self.new, new: self.old, hunks }
    }
}

/// Splits a text into its lines, each with its end.
pub(super) fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The name on a line `--- NAME<tab>TIME`, and whether there is such a file: `diff` gives one that is not there the time 0.
fn name(line: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(&line[4..]);
    let (name, time) = text.split_once('\t').unwrap_or((&text, ""));
    let name = name.trim().to_owned();
    let is_there = name != "/dev/null" && !is_zero(time.trim());
    (name, is_there)
}

/// Whether a time is the start of 1970 in UTC: `1970-01-01 01:00:00.000000000 +0100`.
fn is_zero(time: &str) -> bool {
    let words: Vec<&str> = time.split_whitespace().collect();
    let [date, clock, zone] = words[..] else { return false };
    let minutes = |hours: &str, minutes: &str| Some(hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?);
    let mut parts = clock.split(':');
    let (Some(hour), Some(minute), Some(second)) = (parts.next(), parts.next(), parts.next()) else { return false };
    if second.split('.').any(|digits| digits.bytes().any(|digit| digit != b'0')) || zone.len() != 5 || !zone.is_ascii()
    {
        return false;
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let offset = minutes(&zone[1..3], &zone[3..]).map(|offset| offset * sign);
    let day = match date {
        "1970-01-01" => 0,
        "1969-12-31" => -24 * 60,
        _ => return false,
    };
    let local = minutes(hour, minute).map(|local| local + day);
    local.is_some() && local == offset
}

/// The numbers of `@@ -1,2 +3,4 @@`: starts and counts.
fn range(line: &[u8]) -> Option<[i64; 4]> {
    let text = std::str::from_utf8(line).ok()?.strip_prefix("@@ -")?;
    let (old, rest) = text.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let pair = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        let number = |text: &str| text.parse().ok().filter(|number| (0..=i64::from(u32::MAX)).contains(number));
        Some((number(start)?, number(count)?))
    };
    let ((old, olds), (new, news)) = (pair(old)?, pair(new)?);
    Some([old, olds, new, news])
}

/// Reads the sections of a patch. What stands between them is left out.
pub(super) fn parse(text: &[u8]) -> Result<Vec<Section>, Trouble> {
    let all = lines(text);
    if all.len() > MAX_LINES {
        return Err(Trouble::Raised(format!("the patch has more than {MAX_LINES} lines")));
    }
    let mut sections: Vec<Section> = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let next = all.get(at + 1).copied().unwrap_or_default();
        if all[at].starts_with(b"--- ") && next.starts_with(b"+++ ") {
            sections.push(Section::new(all[at], next));
            at += 2;
        } else if let (Some(range), Some(section)) = (range(all[at]), sections.last_mut()) {
            at += 1;
            section.hunks.push(hunk(range, &all, &mut at)?);
        } else {
            at += 1;
        }
    }
    sections.retain(|section| !section.hunks.is_empty());
    if !sections.is_empty() {
        return Ok(sections);
    }
    let other =
        |line: &&[u8]| line.starts_with(b"*** ") || line.first().is_some_and(u8::is_ascii_digit) && line.len() < 40;
    Err(match all.iter().any(other) {
        true => Trouble::Raised("only unified differences are read here (`diff -u`)".into()),
        false => Trouble::Said("patch: **** Only garbage was found in the patch input.".into()),
    })
}

fn hunk([old_start, mut old, new_start, mut new]: [i64; 4], all: &[&[u8]], at: &mut usize) -> Result<Hunk, Trouble> {
    let mut lines: Vec<(Sign, Vec<u8>)> = Vec::new();
    let malformed =
        |at: usize| Trouble::Said(format!("patch: **** malformed patch at line {}: ", at + 1).trim_end().to_owned());
    while old > 0 || new > 0 {
        let line = all.get(*at).ok_or_else(|| Trouble::Said("patch: **** unexpected end of file in patch".into()))?;
        let (sign, text) = match line.first() {
            Some(b' ') => (Sign::Stays, &line[1..]),
            Some(b'-') => (Sign::Goes, &line[1..]),
            Some(b'+') => (Sign::Comes, &line[1..]),
            // Mail programs take spaces at the end away.
            Some(b'\n') => (Sign::Stays, *line),
            Some(b'\\') => {
                shorten(&mut lines);
                *at += 1;
                continue;
            }
            _ => return Err(malformed(*at)),
        };
        old -= i64::from(sign != Sign::Comes);
        new -= i64::from(sign != Sign::Goes);
        if old < 0 || new < 0 {
            return Err(malformed(*at));
        }
        lines.push((sign, text.to_vec()));
        *at += 1;
    }
    if all.get(*at).is_some_and(|line| line.starts_with(b"\\")) {
        shorten(&mut lines);
        *at += 1;
    }
    Ok(Hunk { old_start, new_start, lines })
}

/// The last line has no end.
fn shorten(lines: &mut [(Sign, Vec<u8>)]) {
    if let Some((_, last)) = lines.last_mut()
        && last.ends_with(b"\n")
    {
        last.pop();
    }
}
