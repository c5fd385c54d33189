//! Salt's schedule without I/O, clock and chance: it is told the time and a random number, and says what an entry means and when it
//! fires next.
//!
//! - [`entry`]: one entry of the schedule, read and checked · [`dates`]: dates as people write them · [`cron`]: cron expressions
//! - [`trigger`]: when an entry is due · [`gates`]: whether an entry that is due may run
//! - [`arm`]: the next firing of an entry, and which firings were missed, given what is known of the last one
//!
//! Dates and times are the host's local ones. A time that a change of the clock leaves out (02:30 on a day of 23 hours) is
//! as long after midnight as on other days; one that is there twice (on a day of 25 hours) is the first. Each named time is due once.

pub mod arm;
pub mod cron;
pub mod dates;
pub mod entry;
pub mod gates;
pub mod trigger;

pub use arm::{Fire, Missed, Now, Seen};
pub use entry::{Entry, Globals, ReturnJob};
pub use gates::Verdict;
