//! Gives back the memory of what is over, to the host: code and constants that only the start of a program needed, what glibc
//! keeps of freed pieces, and large pieces as soon as they are freed.
//!
//! Most of an idle program's memory is the code that its start went through: the kernel maps 16 pages at each first access,
//! and a start touches nearly all of a program. These pages stay until the host is short of memory. What is needed
//! again comes from the page cache, without the disk.
//!
//! The crate has unsafe code: both calls change the memory of the process, and are sound for the reasons beside them.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
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

/// The code and constants of this program, as they were loaded at its start.
#[derive(Debug, Default)]
pub struct Code(Vec<Range<usize>>);

impl Code {
    /// Finds those of the program and of the libraries that it is linked with. To be called at its start, before it loads others,
    /// which it may unload.
    #[must_use]
    pub fn look() -> Self {
        let mut found = Self::default();
        // A linker for 64 bits makes no program whose code is changed when it is loaded.
        #[cfg(target_pointer_width = "64")]
        // SAFETY: `add_object` takes what it is called with, and `found` is of the type that it expects and lives on.
        unsafe {
            libc::dl_iterate_phdr(Some(add_object), (&raw mut found).cast());
        }
        found
    }

    /// Lets their pages go.
    pub fn give_back(&self) {
        for range in &self.0 {
            // SAFETY: the range is a segment that is mapped from the file of this program or of a library that it is linked with, and that was
            // never writable (`add_object`). Segments stay mapped as long as the process lives, and their pages are as in the
            // file, from where the kernel maps them again at the next access.
            let _ = unsafe { madvise(range.start as *mut _, range.len(), Advice::LinuxDontNeed) };
        }
    }
}

/// Adds the segments of a program or library that nobody writes to. What is relocated, and made read-only after that, is part of a
/// segment that can be written to.
///
/// # Safety
/// To be called by `dl_iterate_phdr` with a [`Code`].
unsafe extern "C" fn add_object(info: *mut libc::dl_phdr_info, _size: libc::size_t, found: *mut c_void) -> libc::c_int {
    // SAFETY: the caller passes a `Code` that nobody else refers to, and a description of an object with that many headers.
    let (found, info, headers) = unsafe {
        let info = &*info;
        (&mut *found.cast::<Code>(), info, std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()))
    };
    // SAFETY: it takes a number and returns one.
    let kernel = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let is_kernels = info.dlpi_addr == kernel; // the vDSO is no file
    let page = rustix::param::page_size();
    for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD && !is_kernels) {
        let (start, size) = (info.dlpi_addr.wrapping_add(header.p_vaddr) as usize, header.p_memsz as usize);
        if header.p_flags & libc::PF_W == 0 && header.p_memsz == header.p_filesz {
            found.0.push(start / page * page..(start + size).next_multiple_of(page));
        }
    }
    0
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
    /// Page faults at the last trim.
    faults: i64,
    /// Whether pages that came without work are let go each time, and not only those of the start.
    for_few: bool,
    looked: Instant,
}

impl Trim {
    /// Begins with the code of the program.
    #[must_use]
    pub fn new(code: Code) -> Self {
        let (before, at_trim) = (Duration::ZERO, Duration::ZERO);
        Self { code, before, at_trim, faults: 0, for_few: false, looked: Instant::now() }
    }

    /// Has pages trimmed, too, that came with little work, as those of the start always are. For programs that get none with a single job, which would have to map
    /// their code anew at the next one.
    #[must_use]
    pub fn for_few_pages(self) -> Self {
        Self { for_few: true, ..self }
    }

    /// Checks whether there is something to give back after this work since the last trim, in which so many pages came.
    fn is_due(&self, worked: Duration, came: i64) -> bool {
        let is_first = self.at_trim.is_zero();
        worked >= WORKED || ((self.for_few || is_first) && came >= FAULTS)
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
        if !self.is_due(now.saturating_sub(self.at_trim), faults() - self.faults) {
            return Looked::Quiet;
        }
        freed();
        self.code.give_back();
        self.at_trim = used();
        self.faults = faults();
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
    use std::collections::HashMap;

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

    /// The mappings of this process that begin in a range of its code: rights, and KiB by name as `/proc/self/smaps` says them.
    fn mappings(code: &Code) -> Vec<(String, HashMap<String, u64>)> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut found: Vec<Option<(String, HashMap<String, u64>)>> = Vec::new();
        for line in smaps.lines() {
            let mut words = line.split_ascii_whitespace();
            let (first, second) = (words.next().unwrap(), words.next().unwrap_or_default());
            if let Some(name) = first.strip_suffix(':') {
                if let (Some(Some((_, kib))), Ok(number)) = (found.last_mut(), second.parse()) {
                    kib.insert(name.to_owned(), number);
                }
                continue;
            }
            let start = usize::from_str_radix(first.split_once('-').unwrap().0, 16).unwrap();
            let is_code = code.0.iter().any(|range| range.contains(&start));
            found.push(is_code.then(|| (second.to_owned(), HashMap::new())));
        }
        found.into_iter().flatten().collect()
    }

    #[test]
    fn what_is_given_back_is_as_in_its_file() {
        let here = mappings(&Code::look());
        for rights in ["r-xp", "r--p"] {
            assert!(here.iter().any(|(found, _)| found == rights), "{rights}");
        }
        for (rights, kib) in here {
            assert!(["r-xp", "r--p"].contains(&rights.as_str()), "{rights}");
            assert_eq!(kib["Anonymous"], 0, "{rights}");
        }
    }

    /// KiB of code and constants in memory.
    fn resident() -> u64 {
        mappings(&Code::look()).iter().map(|(_, kib)| kib["Rss"]).sum()
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
    fn the_pages_of_a_start_are_given_back_however_little_it_worked() {
        let (little, much) = (WORKED / 2, WORKED);
        let start = Trim::new(Code::default());
        assert!(start.is_due(little, FAULTS) && !start.is_due(little, FAULTS - 1) && start.is_due(much, 0));
        let later = Trim { at_trim: WORKED, ..Trim::new(Code::default()) };
        assert!(!later.is_due(little, FAULTS) && later.is_due(much, 0));
        assert!(later.for_few_pages().is_due(little, FAULTS));
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
