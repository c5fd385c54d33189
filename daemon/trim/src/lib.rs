//! Gives back the memory of what is over, to the host: code that only the start of a program needed, what glibc keeps of
//! freed pieces, and large pieces as soon as they are freed.
//!
//! Most of an idle program's memory is the code that its start went through: the kernel maps 16 pages at each first access,
//! and a start touches nearly all of a program. These pages stay until the host is short of memory. Code that is needed
//! again comes from the page cache, without the disk.
//!
//! The crate has unsafe code: both calls change the memory of the process, and are sound for the reasons beside them.
#![allow(unsafe_code)]

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::mm::{Advice, madvise};
use rustix::time::{ClockId, clock_gettime};

/// The part of the time between two looks below which a program counts as quiet, if it took so much of the processor:
/// connections that are kept alive need less, and so do beacons that look each second.
const QUIET_PART: u32 = 50;
/// Processor time below which it counts as quiet in any case.
const QUIET: Duration = Duration::from_millis(50);
/// Processor time since the last trim after which there may be something to give back.
const WORKED: Duration = Duration::from_millis(20);
/// Page faults since the last trim after which there is something to give back, even if they took little time: 4 MiB, since each brings
/// 16 pages of code. What a quiet daemon does each half minute takes half as many.
const FAULTS: i64 = 64;

/// Returns what glibc keeps of freed pieces. Other allocators do so by themselves.
pub fn freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` takes no pointer and touches only free memory; glibc takes its own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes from which a piece of memory gets a mapping of its own: glibc's first value.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 128 << 10;

/// Has large pieces of memory live in mappings of their own for good, which are given back as they are freed. By itself, glibc puts pieces
/// up to the size of the largest that was ever freed into its heaps. There small ones that stay come to lie between them, and keep
/// their pages: with the files of all standard modules read once, that took 9 MiB of a minion. To be called at a program's start.
pub fn keep_large_apart() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` takes two numbers and sets a parameter; glibc takes its own locks.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

/// The code of this program, as it was mapped at its start.
#[derive(Debug, Default)]
pub struct Code(Vec<(usize, usize)>);

impl Code {
    /// Finds the code of the program and of the libraries that it is linked with. To be called at its start, before it maps
    /// other files.
    #[must_use]
    pub fn look() -> Self {
        let own = std::fs::metadata("/proc/self/exe").map(|meta| meta.ino());
        let maps = std::fs::read_to_string("/proc/self/maps");
        Self(match (own, maps) {
            (Ok(own), Ok(maps)) => maps.lines().filter_map(|line| code(line, own)).collect(),
            // Without /proc nothing is given back.
            _ => Vec::new(),
        })
    }

    /// Lets the pages of the code go.
    pub fn give_back(&self) {
        for (start, end) in &self.0 {
            // SAFETY: the range is code of this program or of a library that it is linked with (`code`). They stay mapped
            // as long as the process lives, nobody writes to them, and they have no relocations: their pages are as in the
            // file, from where the kernel maps them again at the next access.
            let _ = unsafe { madvise(*start as *mut _, end - start, Advice::LinuxDontNeed) };
        }
    }
}

/// Returns the range of a line of `/proc/self/maps` if it is code of the program or of a library. Such pages are private
/// and not writable, and so never differ from their file.
fn code(line: &str, own: u64) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights, _offset, _device, inode) =
        (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
    let path = Path::new(words.next()?);
    let is_library = path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"));
    if rights != "r-xp" || !(is_library || inode.parse() == Ok(own)) {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

/// What a look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// The program is at work; it is to be looked at again.
    Busy,
    /// The program is quiet, and has done little since the last trim.
    Quiet,
    /// The program is quiet, and memory was given back.
    Trimmed,
}

/// Gives memory back when a program that has worked has become quiet. Its owner looks now and then.
#[derive(Debug)]
pub struct Trim {
    code: Code,
    /// Processor time at the last look, and at the last trim.
    before: Duration,
    at_trim: Duration,
    /// Page faults at the last trim. None if pages that came without work are left.
    faults: Option<i64>,
    looked: Instant,
}

impl Trim {
    /// Begins with the code of the program.
    #[must_use]
    pub fn new(code: Code) -> Self {
        Self { code, before: Duration::ZERO, at_trim: Duration::ZERO, faults: None, looked: Instant::now() }
    }

    /// Has pages trimmed, too, that came with little work. For programs that get none with a single job, which would have to map
    /// their code anew at the next one.
    #[must_use]
    pub fn for_few_pages(self) -> Self {
        Self { faults: Some(0), ..self }
    }

    /// Trims if the program is quiet since the last look, and has worked or mapped pages since the last trim.
    pub fn look(&mut self) -> Looked {
        let now = used();
        let since = self.looked.elapsed();
        let is_quiet = now.saturating_sub(self.before) < QUIET.max(since / QUIET_PART);
        (self.before, self.looked) = (now, Instant::now());
        if !is_quiet {
            return Looked::Busy;
        }
        if now.saturating_sub(self.at_trim) < WORKED && self.faults.is_none_or(|before| faults() - before < FAULTS) {
            return Looked::Quiet;
        }
        freed();
        self.code.give_back();
        self.at_trim = used();
        self.faults = self.faults.map(|_| faults());
        self.before = self.at_trim;
        Looked::Trimmed
    }
}

/// Processor time of this process.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(used.tv_sec).unwrap_or(0), u32::try_from(used.tv_nsec).unwrap_or(0))
}

/// Page faults of this process that needed no disk.
fn faults() -> i64 {
    // SAFETY: all bytes of the structure may be zero, and the call writes to nothing else.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    usage.ru_minflt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn large_pieces_have_mappings_of_their_own() {
        keep_large_apart();
        // SAFETY: it takes nothing and returns numbers.
        let mappings = || unsafe { libc::mallinfo2() }.hblks;
        // After this, glibc by itself would take its heap for all pieces that are smaller.
        drop(std::hint::black_box(vec![1_u8; 8 << 20]));
        let before = mappings();
        let pieces: Vec<Vec<u8>> = (0..10).map(|_| std::hint::black_box(vec![1; 1 << 20])).collect();
        assert!(mappings() >= before + pieces.len(), "{} of {}", mappings() - before, pieces.len());
    }

    #[test]
    fn pages_that_came_without_work_are_looked_at_too() {
        let mut trim = Trim::new(Code::default()).for_few_pages();
        // What the start of the test took.
        while trim.look() != Looked::Quiet {}
        drop(std::hint::black_box(vec![1_u8; 512 << 10]));
        assert_eq!(trim.look(), Looked::Trimmed);
    }

    #[test]
    fn only_code_is_given_back() {
        let line = |rights: &str, inode: u64, path: &str| format!("5500-7700 {rights} 00001000 fd:00 {inode}  {path}");
        assert_eq!(code(&line("r-xp", 7, "/usr/bin/salt-minion"), 7), Some((0x5500, 0x7700)));
        assert_eq!(code(&line("r-xp", 8, "/usr/lib/libc.so.6"), 7), Some((0x5500, 0x7700)));
        for other in [
            line("r--p", 7, "/usr/bin/salt-minion"),
            line("rw-p", 7, "/usr/bin/salt-minion"),
            line("rwxp", 7, "/usr/bin/salt-minion"),
            line("r-xs", 7, "/usr/bin/salt-minion"),
            line("r-xp", 8, "/tmp/code"),
            line("r-xp", 0, "[vdso]"),
            "5500-7700 r-xp 00000000 00:00 0".to_owned(),
            "junk".to_owned(),
        ] {
            assert_eq!(code(&other, 7), None, "{other}");
        }
    }

    /// KiB of code in memory.
    fn resident() -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let own = std::fs::metadata("/proc/self/exe").unwrap().ino();
        let (mut is_code, mut kib) = (false, 0);
        for line in smaps.lines() {
            if line.split_ascii_whitespace().next().is_some_and(|word| word.contains('-')) {
                is_code = code(line, own).is_some();
            } else if let (true, Some(rss)) = (is_code, line.strip_prefix("Rss:")) {
                kib += rss.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
            }
        }
        kib
    }

    fn sum_sorted(n: u64) -> u64 {
        let mut numbers: Vec<u64> = (0..n).map(|i| i.wrapping_mul(7_919) % 1_000).collect();
        numbers.sort_unstable();
        numbers.iter().sum()
    }

    /// The program runs on after its own code was let go, and less of it is in memory.
    #[test]
    fn code_comes_back() {
        let here = Code::look();
        assert!(!here.0.is_empty());
        let (before, sum) = (resident(), sum_sorted(10_000));
        here.give_back();
        let after = resident();
        assert!(after < before, "{after} KiB of {before} KiB are left");
        assert_eq!(sum_sorted(10_000), sum);
    }

    #[test]
    fn only_a_quiet_program_that_has_worked_is_trimmed() {
        let work = |least: Duration| {
            let began = used();
            while used() - began < least {
                std::hint::black_box(sum_sorted(1_000));
            }
        };
        let mut trim = Trim::new(Code::look());
        work(QUIET + WORKED);
        assert_eq!([trim.look(), trim.look(), trim.look()], [Looked::Busy, Looked::Trimmed, Looked::Quiet]);
        work(WORKED);
        assert_eq!(trim.look(), Looked::Trimmed);
    }
}
