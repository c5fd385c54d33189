//! The privileges that a process keeps, and their options on the command line.

use std::fmt;

/// The program that raises the walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalledProgram {
    /// The executor: long-lived, with threads, maps machine code.
    Executor,
    /// The compiler: runs once on one thread and works on open files.
    Compiler,
}

/// A granted directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptDirectory {
    /// The path: absolute and without symbolic links.
    pub path: String,
    /// Whether the process may change the directory's content.
    pub writable: bool,
}

/// All privileges that a process keeps behind the walls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The program.
    pub kind: WalledProgram,
    /// The granted directories.
    pub directories: Vec<KeptDirectory>,
    /// The first and last TCP port of each range that the process may connect to; without a range it has no network.
    pub connect: Vec<(u16, u16)>,
    /// Upper bound on the bytes of a file that the process writes, in memory too; none for the inherited limit.
    pub file_size: Option<u64>,
    /// Upper bound on open descriptors.
    pub open_files: u64,
    /// Upper bound on the processes and threads of its user; none for the inherited limit, because other processes may
    /// have the same user.
    pub processes: Option<u64>,
    /// Upper bound on the bytes of private writable memory. Reserved address space does not count; memory in use does.
    pub memory: Option<u64>,
}

/// An invalid option on the command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadOption(String);

/// Descriptors of the executor: modules, each with the images of its memories, and the open files of calls.
const EXECUTOR_FILES: u64 = 16_384;
/// Large enough for the largest compiled code and for the image of a memory.
const EXECUTOR_FILE_SIZE: u64 = 256 << 20;

impl Spec {
    /// The executor without any grant.
    #[must_use]
    pub fn executor() -> Self {
        Self {
            kind: WalledProgram::Executor,
            directories: Vec::new(),
            connect: Vec::new(),
            file_size: Some(EXECUTOR_FILE_SIZE),
            open_files: EXECUTOR_FILES,
            processes: None,
            memory: None,
        }
    }

    /// The compiler, whose other limits come from its own options.
    #[must_use]
    pub fn compiler(file_size: u64) -> Self {
        Self { kind: WalledProgram::Compiler, file_size: Some(file_size), open_files: 16, ..Self::executor() }
    }

    /// Whether a granted directory is writable.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.directories.iter().any(|directory| directory.writable)
    }

    /// A writable directory around a read-only one.
    pub(crate) fn writable_around(&self, inner: &KeptDirectory) -> Option<&KeptDirectory> {
        let within = |outer: &KeptDirectory| {
            let rest = inner.path.strip_prefix(outer.path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
        };
        self.directories.iter().find(|outer| !inner.writable && outer.writable && within(outer))
    }

    /// The command-line options for these privileges: `--read-only /etc --connect-port 80-443`.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        let mut push = |name: &str, value: &dyn fmt::Display| options.extend([name.to_owned(), value.to_string()]);
        for KeptDirectory { path, writable } in &self.directories {
            push(if *writable { "--read-write" } else { "--read-only" }, path);
        }
        for (low, high) in &self.connect {
            push("--connect-port", &format_args!("{low}-{high}"));
        }
        if let Some(processes) = self.processes {
            push("--processes", &processes);
        }
        if let Some(memory) = self.memory {
            push("--memory", &memory);
        }
        options
    }

    /// The names of the options, for a usage line.
    pub const OPTIONS: &str =
        "--read-only DIR, --read-write DIR, --connect-port N or LOW-HIGH, --processes N and --memory BYTES";

    /// Reads one option and its value. Returns false if it is another option.
    ///
    /// # Errors
    /// When the value is invalid.
    pub fn option(&mut self, name: &str, value: &str) -> Result<bool, BadOption> {
        let number = || value.parse().map_err(|_| BadOption(format!("{name} must be a number, got '{value}'")));
        match name {
            "--read-only" | "--read-write" => {
                let plain = value.starts_with('/') && !value.split('/').any(|part| part == "." || part == "..");
                if !plain {
                    return Err(BadOption(format!("{name} must be an absolute path without . and .., got '{value}'")));
                }
                let writable = name == "--read-write";
                self.directories.push(KeptDirectory { path: value.to_owned(), writable });
                if writable {
                    // In a writable directory, only the owner's disk quota bounds the size of files.
                    self.file_size = None;
                }
            }
            "--connect-port" => {
                let (low, high) = value.split_once('-').unwrap_or((value, value));
                match (low.parse(), high.parse()) {
                    (Ok(low), Ok(high)) if 0 < low && low <= high => self.connect.push((low, high)),
                    _ => return Err(BadOption(format!("{name} must be a port or LOW-HIGH, got '{value}'"))),
                }
            }
            "--processes" => self.processes = Some(number()?),
            "--memory" => self.memory = Some(number()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_say_the_whole_spec() {
        let mut spec = Spec::executor();
        spec.directories = vec![
            KeptDirectory { path: "/a b".into(), writable: false },
            KeptDirectory { path: "/var/x".into(), writable: true },
        ];
        spec.connect = vec![(80, 80), (8000, 8010)];
        (spec.processes, spec.memory, spec.file_size) = (Some(7), Some(1 << 33), None);
        let mut read = Spec::executor();
        for option in spec.options().chunks(2) {
            assert_eq!(read.option(&option[0], &option[1]), Ok(true), "{option:?}");
        }
        assert_eq!(read, spec);
        assert_eq!(Spec::executor().options(), [""; 0]);
        assert_eq!(read.option("--max-running", "3"), Ok(false));
    }

    #[test]
    fn bad_values() {
        for (name, value) in [
            ("--read-only", "etc"),
            ("--read-only", ""),
            ("--read-write", "/srv/../etc"),
            ("--read-write", "/srv/."),
            ("--connect-port", "0"),
            ("--connect-port", "9-8"),
            ("--connect-port", "65536"),
            ("--connect-port", "-"),
            ("--processes", "many"),
            ("--memory", "-1"),
        ] {
            let error = Spec::executor().option(name, value).unwrap_err();
            assert!(
                error.to_string().starts_with(name) && error.to_string().ends_with(&format!("'{value}'")),
                "{error}"
            );
        }
    }
}
