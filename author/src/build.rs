//! `salt-module build`

use std::path::{Path, PathBuf};

use brine_component::{ModuleInfo, snake_case};
use brine_sandbox::ModuleName;

use crate::cli::Build;
use crate::failure::Failure;
use crate::lang::{Lang, Project};
use crate::wit::Wit;
use crate::{docs, file, keys, sign};

pub(crate) fn run(options: &Build) -> Result<(), Failure> {
    let dir = options.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let dir = dir.canonicalize().map_err(|error| Failure::unreadable(&dir, error))?;
    let (lang, found) = Lang::of(&dir)?;
    let wit = Wit::read(&dir, options.world.as_deref())?;
    let name: ModuleName = snake_case(wit.world_name())
        .parse()
        .map_err(|error| Failure::input(format!("the world's name becomes the module's: {error}; rename the world")))?;
    let output = options.output.clone().unwrap_or_else(|| dir.join(format!("{name}.wasm")));
    // Checked before the build, which takes minutes: the file must be writable, and its name must fit for the
    // signature.
    check_output(&output)?;
    let key = options.sign.as_deref().map(|key| {
        file::module_name(&output)?;
        keys::secret(key, &options.password)
    });
    let key = key.transpose()?;

    let scratch = tempfile::tempdir().map_err(|error| Failure::failed(format!("no folder to work in: {error}")))?;
    let project = Project { dir, file: found, wit, name, scratch: scratch.path().to_owned() };
    let component = lang.language().build(&project)?;
    let component = docs::embed(&component, &[&project.wit.dir], Some(project.wit.world_name()), &output)?;
    let info = brine_component::read(&component)
        .map_err(|error| Failure::input(format!("what was built {error}; no minion would take it")))?;
    file::write(&output, &component)?;
    print(&output, &project.name, component.len(), &info);
    match &key {
        Some(key) => sign::sign(&output, key, false),
        None => Ok(()),
    }
}

fn check_output(output: &Path) -> Result<(), Failure> {
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Failure::unwritable(output, format!("there is no folder {}", folder.display())));
    }
    if output.is_dir() {
        return Err(Failure::unwritable(output, "it is a folder; name a file"));
    }
    Ok(())
}

fn print(output: &Path, name: &ModuleName, size: usize, info: &ModuleInfo) {
    let version = info.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    say!("{}: {name}{version}, {} KB", output.display(), size.div_ceil(1000));
    for function in info.all() {
        say!("  {}", brine_component::signature(name.as_str(), function));
    }
    for note in &info.notes {
        say!("  note: {note}");
    }
}
