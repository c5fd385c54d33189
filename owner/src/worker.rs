//! The thread that calls functions of the host.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::host::Host;
use crate::snapshot::{Known, Snapshot};

/// What the owner orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// Look now.
    Look,
    /// What a grant would change in the configuration.
    Preview { line: String },
    /// Grant.
    Grant { line: String },
    /// Admit this content of a module.
    Approve { module: String, sha256: String },
}

/// What the thread tells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum News {
    /// What the host is like now.
    Looked(Box<Snapshot>),
    /// What a grant would change, or why it cannot be given.
    Preview { line: String, answer: Result<Value, String> },
    /// An order was carried out, with what became of it.
    Done(Result<String, String>),
    /// The host cannot be looked at.
    Lost(String),
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    orders: Sender<Order>,
    news: Receiver<News>,
}

impl Worker {
    /// Starts it. It looks at the host each time this interval is over.
    ///
    /// # Errors
    /// When there is no thread.
    pub(crate) fn start(host: impl Host + 'static, interval: Duration) -> std::io::Result<Self> {
        let (orders, ordered) = mpsc::channel();
        let (tell, news) = mpsc::channel();
        thread::Builder::new().name("host".to_owned()).spawn(move || run(&host, interval, &ordered, &tell))?;
        Ok(Self { orders, news })
    }

    /// What was told since the last time.
    pub(crate) fn news(&self) -> impl Iterator<Item = News> {
        self.news.try_iter()
    }

    /// Gives an order.
    pub(crate) fn order(&self, order: Order) {
        // The thread ends only with this.
        let _ = self.orders.send(order);
    }
}

fn run(host: &dyn Host, interval: Duration, ordered: &Receiver<Order>, tell: &Sender<News>) {
    let mut known = Known::default();
    let mut next = Instant::now();
    loop {
        let order = match ordered.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => Order::Look,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let news = carry_out(host, &order);
        if news.is_some_and(|news| tell.send(news).is_err()) {
            return;
        }
        if matches!(order, Order::Preview { .. }) {
            continue;
        }
        let looked = known.look(host).map_or_else(News::Lost, |snapshot| News::Looked(Box::new(snapshot)));
        if tell.send(looked).is_err() {
            return;
        }
        next = Instant::now() + interval;
    }
}

fn carry_out(host: &dyn Host, order: &Order) -> Option<News> {
    match order {
        Order::Look => None,
        Order::Preview { line } => {
            let answer = host.call("sandbox.grant", &[line, "test=True"]);
            Some(News::Preview { line: line.clone(), answer })
        }
        Order::Grant { line } => {
            let granted = host.call("sandbox.grant", &[line]);
            Some(News::Done(granted.map(|_| format!("granted; systemctl reload salt-minion takes it up: {line}"))))
        }
        Order::Approve { module, sha256 } => {
            let approved = host.call("sandbox.approve", &[module, sha256]);
            Some(News::Done(
                approved
                    .map(|_| format!("module {module} {} is admitted", sha256.chars().take(12).collect::<String>())),
            ))
        }
    }
}
