//! What a guest asks the broker, one variant an interface of `wit/`.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

/// What a guest asks the broker. `log` and `job` are answered in the executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostOp {
    /// `brine:host/grains`
    Grains(GrainsOp),
    /// `brine:host/config`
    Config(ConfigOp),
    /// `brine:host/modules`
    Modules(ModulesOp),
    /// `brine:host/jobs`
    Jobs(JobsOp),
    /// `brine:host/process`
    Process(ProcessOp),
    /// `brine:host/functions`
    Functions(FunctionsOp),
    /// `brine:host/files`
    Files(FilesOp),
    /// `brine:host/http`
    Http(HttpOp),
    /// `wasi:sockets/ip-name-lookup`
    Network(NetworkOp),
    /// `brine:host/pillar`
    Pillar(PillarOp),
    /// `brine:host/events`
    Events(EventsOp),
    /// `brine:host/mine`
    Mine(MineOp),
    /// `brine:host/metadata`: the part of it that is the broker's
    Users(UsersOp),
    /// `brine:host/metadata`, where it reads a file that is not granted
    Directories(DirectoriesOp),
    /// `brine:host/disks`
    Disks(DisksOp),
    /// `brine:host/policy`
    Policy(PolicyOp),
}

impl HostOp {
    /// The interface it belongs to: `brine:host/grains`.
    #[must_use]
    pub fn interface(&self) -> &'static str {
        match self {
            Self::Grains(_) => "brine:host/grains",
            Self::Config(_) => "brine:host/config",
            Self::Modules(_) => "brine:host/modules",
            Self::Jobs(_) => "brine:host/jobs",
            Self::Process(_) => "brine:host/process",
            Self::Functions(_) => "brine:host/functions",
            Self::Files(_) => "brine:host/files",
            Self::Http(_) => "brine:host/http",
            Self::Network(_) => "wasi:sockets/ip-name-lookup",
            Self::Pillar(_) => "brine:host/pillar",
            Self::Events(_) => "brine:host/events",
            Self::Mine(_) => "brine:host/mine",
            Self::Users(_) | Self::Directories(_) => "brine:host/metadata",
            Self::Disks(_) => "brine:host/disks",
            Self::Policy(_) => "brine:host/policy",
        }
    }
}

/// `brine:host/grains`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrainsOp {
    /// All grains; answered by a map.
    Items,
    /// One grain; answered by its value, nil where there is none.
    Get {
        /// May lead into nested values.
        key: String,
        /// Between the key's parts, `:` unless given.
        delimiter: Option<String>,
    },
}

/// `brine:host/config`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConfigOp {
    /// One setting; answered by its value, nil where there is none or it is secret.
    Get {
        /// May lead into nested values by `:`.
        key: String,
    },
}

/// `brine:host/modules`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModulesOp {
    /// Answered by a sorted array of names.
    Names,
    /// Answered by a map with the fields of WIT's `module` record (parameters are maps of name, type, optional and rest), or nil.
    Describe {
        /// The module.
        name: String,
    },
    /// Answered by an array of the names that changed, as `modules.NAME`.
    Sync {
        /// Environments of the master's file server; none: `base`.
        saltenv: Option<Vec<String>>,
    },
    /// Answered by true when it is done.
    RefreshFacts {
        /// Collect the grains again.
        grains: bool,
        /// Ask the master for the pillar, with the grains.
        pillar: bool,
    },
}

/// `brine:host/jobs`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobsOp {
    /// Answered by an array of maps, one a job; the asking job is left out.
    Running,
    /// Answered by a map, empty where there is no such job.
    Find {
        /// The job.
        jid: String,
    },
    /// Answered by whether there was such a job.
    Kill {
        /// The job.
        jid: String,
    },
}

/// `brine:host/process`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessOp {
    /// Runs a program to its end; answered by a map: `pid`, `code` (nil where a signal ended it), `signal` (nil where none did),
    /// `stdout` and `stderr` (binary), `stdout_dropped` and `stderr_dropped` (bytes over the cap), `timed_out`.
    Run(Box<ProcessRun>),
    /// Where a granted program is; answered by its absolute path, nil where the host has none.
    Which {
        /// A bare name or an absolute path.
        name: String,
    },
    /// Answered by the path of the shell that was granted, nil where none was. With a path: that one or nil.
    Shell {
        /// One in particular.
        path: Option<String>,
    },
}

/// One program to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRun {
    /// The program (a bare name, or an absolute path) and its arguments.
    pub argv: Vec<String>,
    /// The directory it starts in; absolute.
    pub cwd: Option<String>,
    /// Variables beside the minion's few (`PATH`, `HOME`, `LANG`…).
    pub env: Vec<(String, String)>,
    /// Only `env`.
    pub clean_env: bool,
    /// What it reads; nothing where none.
    pub stdin: Option<ByteBuf>,
    /// After this it is ended.
    pub timeout_ms: Option<u64>,
    /// The user it runs as.
    pub run_as: Option<String>,
    /// The group.
    pub group: Option<String>,
    /// Its umask.
    pub umask: Option<u32>,
    /// Bytes kept of each of its outputs; never more than the minion's own bound.
    pub max_output: Option<u64>,
    /// Standard error goes where standard output goes, in the order written.
    pub merge_stderr: bool,
}

/// `brine:host/functions`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FunctionsOp {
    /// Calls a function of any module in an instance of its own, with that module's grants. Answered by a map: `value`,
    /// `retcode`, `success`, and what it used of the caller's: `written`, `new_files`.
    Call {
        /// `test.ping`
        function: String,
        /// A MessagePack array.
        args: ByteBuf,
        /// A MessagePack map with text keys.
        kwargs: ByteBuf,
        /// Bytes that the caller may still write, and files that it may still make: what it calls may no more.
        written_left: u64,
        /// As above.
        new_files_left: u64,
    },
}

/// `brine:host/files`: the master's file server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilesOp {
    /// Answered by a sorted array of paths.
    List {
        /// The environment: `base`.
        saltenv: String,
        /// Only what is under it.
        prefix: String,
        /// What to list.
        kind: ListKind,
    },
    /// Answered by a sorted array of environments.
    Envs,
    /// Answered by a map of `hash_type`, `hsum` and `size`, nil where there is no such file.
    Hash {
        /// Without `salt://`.
        path: String,
        /// The environment.
        saltenv: String,
    },
    /// Answered by binary: at most `length` bytes, none at the end of the file; nil where there is no such file.
    Read {
        /// Without `salt://`.
        path: String,
        /// The environment.
        saltenv: String,
        /// In bytes.
        offset: u64,
        /// In bytes; the minion may give less.
        length: u32,
    },
    /// Fetches a file into the minion's cache; answered by its path there, nil where there is no such file.
    Cache {
        /// Without `salt://`.
        path: String,
        /// The environment.
        saltenv: String,
    },
    /// Sends bytes of a file of this host to the master (`cp.push`); answered by whether it took them.
    Push {
        /// The parts of its name on the master.
        path: Vec<String>,
        /// Where these bytes belong.
        offset: u64,
        /// Some of the file.
        data: ByteBuf,
        /// The file's size.
        size: u64,
    },
}

/// What [`FilesOp::List`] lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListKind {
    /// Files.
    Files,
    /// Directories.
    Dirs,
    /// Directories without anything in them.
    EmptyDirs,
    /// Symbolic links.
    Symlinks,
}

/// `brine:host/http`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpOp {
    /// One request, redirects followed; answered by a map: `status`, `headers` (array of pairs), `body` (binary), `url` (of
    /// the last request).
    Request(Box<HttpRequest>),
}

/// An HTTP request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// `GET`
    pub method: String,
    /// `http://` or `https://`
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<ByteBuf>,
    /// For all of it.
    pub timeout_ms: Option<u64>,
    /// Bytes of the answer's body; a longer one is an error.
    pub max_body: Option<u64>,
    /// Redirects that are followed; each is checked as the first request was.
    pub max_redirects: u32,
}

/// `wasi:sockets/ip-name-lookup`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkOp {
    /// Answered by an array of addresses as text. The executor lets the call connect to these and no others.
    Resolve {
        /// A name.
        name: String,
    },
}

/// `brine:host/pillar`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PillarOp {
    /// Answered by a map with the granted keys that there are.
    Items,
    /// The same of a pillar that the master makes for this call.
    Fetch,
    /// Answered by the value, nil where there is none.
    Get {
        /// May lead into nested values.
        key: String,
        /// Between the key's parts, `:` unless given.
        delimiter: Option<String>,
    },
}

/// `brine:host/events`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventsOp {
    /// Answered by true once the master has it.
    Fire {
        /// The tag; which ones are allowed is the grant's business.
        tag: String,
        /// One MessagePack map.
        data: ByteBuf,
    },
}

/// `brine:host/mine`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MineOp {
    /// Puts a value into the mine; answered by true once the master has it.
    Publish {
        /// The name that others ask for.
        name: String,
        /// One MessagePack value.
        data: ByteBuf,
    },
    /// Takes one away.
    Delete {
        /// Its name.
        name: String,
    },
}

/// `brine:host/metadata`: names of users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UsersOp {
    /// Answered by the user's name, nil where it has none.
    UserName {
        /// The number.
        uid: u32,
    },
    /// Answered by the group's name, nil where it has none.
    GroupName {
        /// The number.
        gid: u32,
    },
}

/// Directories that the executor reaches itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DirectoriesOp {
    /// Answered by text, the end of a refusal: with which line the owner would grant this directory. Empty where it cannot be told.
    Line {
        /// Absolute.
        path: String,
    },
}

/// `brine:host/disks`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DisksOp {
    /// Answered by an array of maps: `device`, `mount_point`, `fstype`, `options` (array of text), `device_number`.
    Mounts,
    /// What `statvfs` says of a mount point; answered by a map: `block_size`, `blocks`, `blocks_free`, `blocks_available`,
    /// `inodes`, `inodes_free`; an error where it does not answer in time.
    Usage {
        /// One of the mount points.
        mount_point: String,
    },
    /// All that can be seen and answer; answered by an array of maps: `mount`, as of `Mounts`, and `space`, as of `Usage`.
    FileSystems,
    /// The one that is seen at a mount point; answered by such a map.
    FileSystemAt {
        /// One of the mount points.
        mount_point: String,
    },
}

/// `brine:host/policy`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyOp {
    /// Answered by a map of module name to what `Show` answers, shorter.
    List,
    /// Answered by a map: version, sha256, signer, what it asks, what it has, what is missing; nil where there is none.
    Show {
        /// The module.
        name: String,
    },
    /// Answered by a map: the walls in force and what the kernel lacks, grants that name what is not there, who may write the
    /// configuration.
    Check,
    /// Answered by a map: what an update that is held adds and removes, and how the owner lets it in.
    Diff {
        /// The module.
        name: String,
    },
    /// Lets a content of a module in with all that it asks for; only for who called `sandbox.approve` on this host. Answered by a
    /// map: what it has now and what is still to be written.
    Approve {
        /// The module.
        name: String,
        /// The content, in hex.
        sha256: String,
    },
    /// Goes back to the last version that was good; only for the module `sandbox`. Answered by a map: both versions.
    Rollback {
        /// The module.
        name: String,
    },
}
