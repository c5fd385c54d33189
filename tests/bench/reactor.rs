//! The reactor: from an event to the return of the job that it starts, and what matching costs the master.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use brine_kit::wait::wait_for;
use brine_protocol::event::{Event, FrameDecoder, Framing, frame};
use brine_protocol::value::{Value, map};
use brine_tests::salt::{Kind, Master, Minion};

use crate::rows::{Figures, Key};
use crate::side::ID;
use crate::table::Figure;
use crate::usage;

const TAG: &str = "bench/react";
/// Reactions that no event matches.
const GLOBS: usize = 500;
/// Events in a second for which the master's CPU time counts, in so many portions.
const RATE: usize = 5_000;
const PORTIONS: usize = 100;
/// Reactions before the clock starts.
const WARM_UP: usize = 5;
/// A master that is silent for so long has nothing left to do.
const QUIET: Duration = Duration::from_secs(2);
/// The longest wait for one event.
const WAIT: Duration = Duration::from_secs(300);

/// Measures one side: so many reactions, and the CPU time of the master for so many events that no reaction is for.
pub(crate) fn measure(kind: Kind, reactions: usize, events: usize, figures: &mut Figures) {
    let mut master = Master::prepare(kind, "id: the_master\ntimeout: 60\ngather_job_timeout: 30");
    master.log_level = "warning";
    let sls = master.path("react.sls");
    std::fs::write(&sls, format!("ping:\n  local.test.ping:\n    - tgt: {ID}\n")).expect("our own folder");
    let conf = std::fs::read_to_string(master.path("conf/master")).expect("just written");
    let mut entries = format!("  - {TAG}: {}\n", sls.display());
    for n in 0..GLOBS {
        // As many of each: with a start of their own, with a common start, with a wildcard first, with classes.
        let glob = match n % 4 {
            0 => format!("app{n}/*/done"),
            1 => format!("salt/job/*/ret/web{n}*"),
            2 => format!("*/web{n}/*"),
            _ => format!("*[sj]*{n}x*"),
        };
        entries += &format!("  - '{glob}': {}\n", sls.display());
    }
    std::fs::write(master.path("conf/master"), format!("{conf}\nreactor:\n{entries}")).expect("our own folder");
    master.up();
    let mut minion = Minion::prepare(kind, ID, master.ret_port, &format!("publish_port: {}\n", master.publish_port));
    minion.log_level = "warning";
    master.accept(&mut minion);

    let mut bus = Bus::connect(&master);
    bus.ready();
    let times: Vec<Duration> = (0..WARM_UP + reactions).map(|_| bus.reaction()).collect();
    figures.insert(Key::Reaction, Figure::ms(&times[WARM_UP..]));
    let pid = master.daemon.as_ref().expect("it runs").pid();
    let (before, began) = (usage::cpu(pid), Instant::now());
    for (portion, from) in (1..).zip((0..events).step_by(RATE / PORTIONS)) {
        let these = from..events.min(from + RATE / PORTIONS);
        bus.fire(these.map(|n| format!("salt/job/20261126120000{n:06}/ret/db{n}")));
        bus.discard();
        let until = Duration::from_secs(1) * portion / u32::try_from(PORTIONS).expect("few");
        std::thread::sleep(until.saturating_sub(began.elapsed()));
    }
    // Reactions are in the order of their events: the master has looked at all.
    bus.reaction();
    let used = usage::cpu(pid).saturating_sub(before);
    let share = 100.0 * used.as_secs_f64() * count(RATE) / count(events);
    figures.insert(Key::Matching, Figure { runs: events, ..Figure::one(share) });
}

#[allow(clippy::cast_precision_loss, reason = "a count for people")]
const fn count(events: usize) -> f64 {
    events as f64
}

/// The master's event bus.
struct Bus {
    pull: UnixStream,
    publishes: UnixStream,
    decoder: FrameDecoder,
}

impl Bus {
    fn connect(master: &Master) -> Self {
        let connect = |name: &str| UnixStream::connect(master.path(name)).expect("the master's bus");
        let (pull, publishes) = (connect("sock/master_event_pull.ipc"), connect("sock/master_event_pub.ipc"));
        Self { pull, publishes, decoder: FrameDecoder::default() }
    }

    /// A master needs time to notice new connections, and its reactor to start.
    fn ready(&mut self) {
        self.publishes.set_read_timeout(Some(QUIET)).expect("a timeout");
        let end = format!("/ret/{ID}");
        wait_for("the first reaction", || {
            self.fire([TAG.to_owned()].into_iter());
            while let Some(tag) = self.next() {
                if tag.ends_with(&end) {
                    return Some(());
                }
            }
            None
        });
        while self.next().is_some() {}
        self.publishes.set_read_timeout(Some(WAIT)).expect("a timeout");
    }

    /// Reads what is there, and forgets it: a bus drops events that nobody reads.
    fn discard(&mut self) {
        self.publishes.set_nonblocking(true).expect("a socket");
        while self.next().is_some() {}
        self.publishes.set_nonblocking(false).expect("a socket");
    }

    fn fire(&mut self, tags: impl Iterator<Item = String>) {
        let all: Vec<u8> = tags
            .flat_map(|tag| frame(&Event::new(tag, map([("data", Value::from("x".repeat(200)))])), Framing::Prefixed))
            .collect();
        self.pull.write_all(&all).expect("the master takes events");
    }

    /// Fires an event; returns the time until the return of the job that it starts.
    fn reaction(&mut self) -> Duration {
        let began = Instant::now();
        self.fire([TAG.to_owned()].into_iter());
        let end = format!("/ret/{ID}");
        while !self.next().expect("a reaction in time").ends_with(&end) {}
        began.elapsed()
    }

    /// Returns the tag of the next event; `None` if none comes in time.
    fn next(&mut self) -> Option<String> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if let Some(body) = self.decoder.next_body().expect("the master frames its events") {
                let tag = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
                return Some(String::from_utf8_lossy(tag).into_owned());
            }
            let n = self.publishes.read(&mut buffer).ok()?;
            assert!(n > 0, "the master closed its bus");
            self.decoder.buffer().extend_from_slice(&buffer[..n]);
        }
    }
}
