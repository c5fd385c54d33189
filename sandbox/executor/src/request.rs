//! How large a request to the broker may be. It goes into a message and into the minion's memory, so each is bounded before it is
//! made; the broker knows nothing of a guest's memory and bounds by meaning, not by size.

use brine_sandbox_wire::{
    ConfigOp, DirectoriesOp, DisksOp, EventsOp, FilesOp, FunctionsOp, GrainsOp, HostOp, HttpOp, HttpRequest, JobsOp,
    MineOp, ModulesOp, NetworkOp, PillarOp, PolicyOp, ProcessOp, ProcessRun, UsersOp,
};

/// Bytes of keys, names, paths.
const MAX_NAMES: usize = 64 << 10;

/// Bytes of a command's arguments and variables. Linux takes 128 KiB for one of them; whole scripts are passed so.
const MAX_COMMAND: usize = 256 << 10;

/// Bytes of content: a program's standard input, a body, a part of a file, arguments of a function.
const MAX_CONTENT: usize = 4 << 20;

/// What each name counts beside its text, so that empty ones are bounded too.
const NAME: usize = 8;

/// What a request is made of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Size {
    names: usize,
    command: usize,
    content: usize,
}

fn names(count: usize) -> Size {
    Size { names: count, ..Size::default() }
}

fn optional(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

fn list(texts: &[String]) -> usize {
    texts.iter().map(|text| text.len() + NAME).sum()
}

fn pairs(pairs: &[(String, String)]) -> usize {
    pairs.iter().map(|(name, value)| name.len() + value.len() + 2 * NAME).sum()
}

fn size(op: &HostOp) -> Size {
    match op {
        HostOp::Grains(GrainsOp::Items)
        | HostOp::Modules(ModulesOp::Names | ModulesOp::Sync { saltenv: None } | ModulesOp::RefreshFacts { .. })
        | HostOp::Jobs(JobsOp::Running)
        | HostOp::Files(FilesOp::Envs)
        | HostOp::Pillar(PillarOp::Items | PillarOp::Fetch)
        | HostOp::Users(UsersOp::UserName { .. } | UsersOp::GroupName { .. })
        | HostOp::Disks(DisksOp::Mounts | DisksOp::FileSystems)
        | HostOp::Policy(PolicyOp::List | PolicyOp::Check) => Size::default(),
        HostOp::Grains(GrainsOp::Get { key, delimiter }) | HostOp::Pillar(PillarOp::Get { key, delimiter }) => {
            names(key.len() + optional(delimiter.as_ref()))
        }
        HostOp::Config(ConfigOp::Get { key: name })
        | HostOp::Modules(ModulesOp::Describe { name })
        | HostOp::Jobs(JobsOp::Find { jid: name } | JobsOp::Kill { jid: name })
        | HostOp::Process(ProcessOp::Which { name })
        | HostOp::Network(NetworkOp::Resolve { name })
        | HostOp::Mine(MineOp::Delete { name })
        | HostOp::Directories(DirectoriesOp::Line { path: name })
        | HostOp::Disks(DisksOp::Usage { mount_point: name } | DisksOp::FileSystemAt { mount_point: name })
        | HostOp::Policy(PolicyOp::Show { name } | PolicyOp::Diff { name } | PolicyOp::Rollback { name }) => {
            names(name.len())
        }
        HostOp::Policy(PolicyOp::Approve { name, sha256 }) => names(name.len() + sha256.len()),
        HostOp::Modules(ModulesOp::Sync { saltenv: Some(saltenv) }) => names(list(saltenv)),
        HostOp::Process(ProcessOp::Shell { path }) => names(optional(path.as_ref())),
        HostOp::Process(ProcessOp::Run(run)) => process(run),
        HostOp::Functions(FunctionsOp::Call { function, args, kwargs, .. }) => {
            Size { names: function.len(), content: args.len() + kwargs.len(), ..Size::default() }
        }
        HostOp::Files(FilesOp::List { saltenv, prefix: path, .. })
        | HostOp::Files(
            FilesOp::Hash { path, saltenv } | FilesOp::Read { path, saltenv, .. } | FilesOp::Cache { path, saltenv },
        ) => names(path.len() + saltenv.len()),
        HostOp::Files(FilesOp::Push { path, data, .. }) => {
            Size { names: list(path), content: data.len(), ..Size::default() }
        }
        HostOp::Http(HttpOp::Request(request)) => {
            let HttpRequest { method, url, headers, body, .. } = &**request;
            let content = body.as_ref().map_or(0, |body| body.len());
            Size { names: method.len() + url.len() + pairs(headers), content, ..Size::default() }
        }
        HostOp::Events(EventsOp::Fire { tag: name, data }) | HostOp::Mine(MineOp::Publish { name, data }) => {
            Size { names: name.len(), content: data.len(), ..Size::default() }
        }
    }
}

fn process(run: &ProcessRun) -> Size {
    Size {
        names: optional(run.cwd.as_ref()) + optional(run.run_as.as_ref()) + optional(run.group.as_ref()),
        command: list(&run.argv) + pairs(&run.env),
        content: run.stdin.as_ref().map_or(0, |stdin| stdin.len()),
    }
}

/// Checks a request's size.
///
/// # Errors
/// What is too large about it.
pub fn check(op: &HostOp) -> Result<(), String> {
    let Size { names, command, content } = size(op);
    if names > MAX_NAMES {
        return Err(format!("{names} bytes are no key or name"));
    }
    if command > MAX_COMMAND {
        return Err(format!("a command of {command} bytes is over the limit of {} KiB", MAX_COMMAND >> 10));
    }
    if content > MAX_CONTENT {
        return Err(format!("{content} bytes are over the limit of {} MiB for one request", MAX_CONTENT >> 20));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use brine_sandbox_wire::ByteBuf;

    use super::*;

    #[test]
    fn each_part_has_its_own_bound() {
        let stdin = |size| {
            let stdin = Some(ByteBuf::from(vec![0; size]));
            HostOp::Process(ProcessOp::Run(Box::new(ProcessRun { stdin, ..ProcessRun::default() })))
        };
        assert_eq!(check(&stdin(MAX_CONTENT)), Ok(()));
        assert_eq!(
            check(&stdin(MAX_CONTENT + 1)).unwrap_err(),
            "4194305 bytes are over the limit of 4 MiB for one request"
        );
        let argv = |count| {
            let argv = vec![String::new(); count];
            HostOp::Process(ProcessOp::Run(Box::new(ProcessRun { argv, ..ProcessRun::default() })))
        };
        assert_eq!(check(&argv(MAX_COMMAND / NAME)), Ok(()));
        assert!(check(&argv(MAX_COMMAND / NAME + 1)).unwrap_err().contains("over the limit of 256 KiB"));
        let name = |size| HostOp::Policy(PolicyOp::Show { name: "x".repeat(size) });
        assert_eq!(check(&name(MAX_NAMES)), Ok(()));
        assert_eq!(check(&name(MAX_NAMES + 1)).unwrap_err(), "65537 bytes are no key or name");
    }
}
