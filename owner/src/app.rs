//! What is selected and asked, and what a key does.

use std::collections::BTreeSet;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use crate::snapshot::{HeldUpdate, Refusal, Snapshot, line};
use crate::worker::{News, Order};

/// What the screen lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    #[default]
    Running,
    Refused,
    Held,
    Findings,
}

impl Pane {
    /// In the order of the keys 1 to 4.
    pub(crate) const ALL: [Self; 4] = [Self::Running, Self::Refused, Self::Held, Self::Findings];

    /// What the tab says.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Refused => "Refused",
            Self::Held => "Held",
            Self::Findings => "Findings",
        }
    }
}

/// A question that waits for y or n.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) title: String,
    /// A line that begins with `+` or `-` is a change.
    pub(crate) lines: Vec<String>,
    /// The first line that is shown.
    pub(crate) first: usize,
    /// What y orders. None while the answer of the host is missing, or if there is nothing to agree to.
    pub(crate) order: Option<Order>,
}

/// The program's state.
#[derive(Debug, Default)]
pub(crate) struct App {
    snapshot: Option<Snapshot>,
    pane: Pane,
    selected: usize,
    question: Option<Question>,
    /// The last word, and whether it is an error.
    said: Option<(String, bool)>,
    /// Refusals and updates to which the owner said no. They are not shown again while nothing changes.
    declined: BTreeSet<(String, String, u64)>,
    ended: bool,
}

impl App {
    /// Takes what the worker tells.
    pub(crate) fn take(&mut self, news: News) {
        match news {
            News::Looked(snapshot) => self.snapshot = Some(*snapshot),
            News::Lost(why) => self.said = Some((line(&why), true)),
            News::Done(done) => {
                let failed = done.is_err();
                self.said = Some((line(&done.unwrap_or_else(|why| why)), failed));
            }
            News::Preview { line: of, answer } => {
                if let Some(question) = &mut self.question {
                    question.lines.truncate(PREVIEW_HEAD);
                    match answer {
                        Ok(answer) => {
                            question.lines.extend(preview(&answer));
                            question.order = Some(Order::Grant { line: of });
                        }
                        Err(why) => question.lines.push(line(&why)),
                    }
                }
            }
        }
        self.selected = self.selected.min(self.len().saturating_sub(1));
    }

    /// Carries out a key. Returns what the worker is to do.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Vec<Order> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            self.ended = true;
            return Vec::new();
        }
        if self.question.is_some() {
            return self.answer(key.code).into_iter().collect();
        }
        let last = self.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => self.ended = true,
            KeyCode::Char(digit @ '1'..='4') => self.turn_to(Pane::ALL[digit as usize - '1' as usize]),
            KeyCode::Tab | KeyCode::Right => self.turn(1),
            KeyCode::BackTab | KeyCode::Left => self.turn(Pane::ALL.len() - 1),
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::PageDown => self.selected = (self.selected + PAGE).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(PAGE),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            KeyCode::Char('l') => return vec![Order::Look],
            KeyCode::Char('g' | 'a') | KeyCode::Enter => return self.ask(),
            KeyCode::Char('r' | 'd') => self.decline(),
            _ => {}
        }
        Vec::new()
    }

    fn turn(&mut self, by: usize) {
        let at = Pane::ALL.iter().position(|pane| *pane == self.pane).unwrap_or_default();
        self.turn_to(Pane::ALL[(at + by) % Pane::ALL.len()]);
    }

    fn turn_to(&mut self, pane: Pane) {
        (self.pane, self.selected) = (pane, 0);
    }

    /// Asks about what is selected.
    fn ask(&mut self) -> Vec<Order> {
        let at = self.selected;
        let (question, order) = match self.pane {
            Pane::Refused => match self.refusals().get(at) {
                Some(Refusal { line: Some(of), function, what, .. }) => {
                    let lines = vec![format!("{function}: {what}"), String::new(), WAITING.to_owned()];
                    let order = Order::Preview { line: of.clone() };
                    (Question { title: format!("Grant {}?", line(of)), lines, first: 0, order: None }, Some(order))
                }
                Some(_) => {
                    self.said = Some(("no line of the configuration grants this".to_owned(), false));
                    return Vec::new();
                }
                None => return Vec::new(),
            },
            Pane::Held => match self.held().get(at) {
                Some(HeldUpdate { module, sha256, version, why, changes }) => {
                    let mut lines = vec![format!("It is held: {why}"), String::new()];
                    lines.extend(changes.iter().cloned());
                    let order = Order::Approve { module: module.clone(), sha256: sha256.clone() };
                    let title = format!("Admit module {module} {version}?");
                    (Question { title, lines, first: 0, order: Some(order) }, None)
                }
                None => return Vec::new(),
            },
            Pane::Running | Pane::Findings => return Vec::new(),
        };
        self.question = Some(question);
        order.into_iter().collect()
    }

    fn answer(&mut self, key: KeyCode) -> Option<Order> {
        let question = self.question.as_mut()?;
        let last = question.lines.len().saturating_sub(1);
        match key {
            KeyCode::Down | KeyCode::Char('j') => question.first = (question.first + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => question.first = question.first.saturating_sub(1),
            KeyCode::PageDown => question.first = (question.first + PAGE).min(last),
            KeyCode::PageUp => question.first = question.first.saturating_sub(PAGE),
            KeyCode::Char('y') => {
                let order = question.order.take()?;
                self.question = None;
                self.said = Some(("…".to_owned(), false));
                return Some(order);
            }
            KeyCode::Char('n' | 'q') | KeyCode::Esc => self.question = None,
            _ => {}
        }
        None
    }

    /// The owner says no: nothing is changed, and the entry is out of sight.
    fn decline(&mut self) {
        let at = self.selected;
        let key = match self.pane {
            Pane::Refused => self.refusals().get(at).map(|refusal| key_of(refusal)),
            Pane::Held => self.held().get(at).map(|held| (held.module.clone(), held.sha256.clone(), 0)),
            Pane::Running | Pane::Findings => None,
        };
        if let Some(key) = key {
            self.declined.insert(key);
            self.said =
                Some(("nothing is changed: it stays refused, and is hidden until it comes again".to_owned(), false));
            self.selected = self.selected.min(self.len().saturating_sub(1));
        }
    }

    /// What was refused and is not declined.
    pub(crate) fn refusals(&self) -> Vec<&Refusal> {
        let all = self.snapshot.iter().flat_map(|it| &it.refusals);
        all.filter(|refusal| !self.declined.contains(&key_of(refusal))).collect()
    }

    /// The held updates that are not declined.
    pub(crate) fn held(&self) -> Vec<&HeldUpdate> {
        let all = self.snapshot.iter().flat_map(|it| &it.held);
        all.filter(|held| !self.declined.contains(&(held.module.clone(), held.sha256.clone(), 0))).collect()
    }

    fn len(&self) -> usize {
        match (&self.snapshot, self.pane) {
            (None, _) => 0,
            (Some(snapshot), Pane::Running) => snapshot.running.len(),
            (Some(snapshot), Pane::Findings) => snapshot.findings.len(),
            (Some(_), Pane::Refused) => self.refusals().len(),
            (Some(_), Pane::Held) => self.held().len(),
        }
    }

    /// What was seen last. None before the first answer.
    pub(crate) const fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    pub(crate) const fn pane(&self) -> Pane {
        self.pane
    }

    pub(crate) const fn selected(&self) -> usize {
        self.selected
    }

    pub(crate) const fn question(&self) -> Option<&Question> {
        self.question.as_ref()
    }

    pub(crate) fn said(&self) -> Option<(&str, bool)> {
        self.said.as_ref().map(|(text, failed)| (text.as_str(), *failed))
    }

    /// Whether the owner left.
    pub(crate) const fn ended(&self) -> bool {
        self.ended
    }
}

/// Entries of a page.
const PAGE: usize = 10;
const WAITING: &str = "asking the host …";
/// Lines of a question about a grant before what the host says.
const PREVIEW_HEAD: usize = 2;

/// A refusal that comes again has another count.
fn key_of(refusal: &Refusal) -> (String, String, u64) {
    (format!("{}\n{}", refusal.function, refusal.what), refusal.line.clone().unwrap_or_default(), refusal.times)
}

/// What a grant would change, a line each.
fn preview(answer: &Value) -> Vec<String> {
    let text = |key: &str| answer.get(key).and_then(Value::as_str);
    let mut lines: Vec<String> = text("file").map(|file| format!("in {}:", line(file))).into_iter().collect();
    // A blank at the begin of a line means something in YAML.
    lines.extend(text("diff").unwrap_or_default().lines().map(|one| brine_text::visible(one).into_owned()));
    lines.extend(text("risk").map(|risk| format!("risk: {}", line(risk))));
    lines
}
