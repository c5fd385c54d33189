//! `salt-module new`

use std::path::Path;

use brine_sandbox::ModuleName;

use crate::cli::New;
use crate::failure::Failure;
use crate::lang::Lang;
use crate::{file, wit};

/// The world of a new module, which is the same in every language.
const WORLD: &str = include_str!("../templates/world.wit");
/// The world of a new module with a state.
const WORLD_WITH_STATE: &str = include_str!("../templates/world_state.wit");
/// The world of a new engine.
const WORLD_OF_ENGINE: &str = include_str!("../templates/world_engine.wit");

pub(crate) fn run(options: &New) -> Result<(), Failure> {
    let name: ModuleName =
        options.name.parse().map_err(|error: brine_sandbox::BadName| Failure::usage(error.to_string()))?;
    let names = Names::of(&name)?;
    let dir = options.dir.clone().unwrap_or_else(|| name.as_str().into());
    let empty = std::fs::read_dir(&dir).map(|mut entries| entries.next().is_none());
    if dir.exists() && !empty.unwrap_or(false) {
        return Err(Failure::unwritable(&dir, "it is there already and not empty; choose another with --dir"));
    }
    let language = options.lang.language();
    let (world, other) = if options.state {
        let other = language.state_template().ok_or_else(|| no_state(language.title()))?;
        (WORLD_WITH_STATE, Some(other))
    } else if options.engine {
        (WORLD_OF_ENGINE, Some(language.engine_template()))
    } else {
        (WORLD, None)
    };
    let files = [("wit/world.wit", world)].into_iter().chain(language.template().iter().copied());
    for (path, text) in files {
        let text = other.filter(|(own, _)| *own == path).map_or(text, |(_, text)| text);
        let path = dir.join(names.fill(path));
        let folder = path.parent().unwrap_or(&dir);
        std::fs::create_dir_all(folder).map_err(|error| Failure::unwritable(folder, error))?;
        file::write(&path, names.fill(text).as_bytes())?;
    }
    wit::lay_down(&dir.join("wit"))?;
    print(&dir, &name, options, &names);
    Ok(())
}

fn no_state(language: &str) -> Failure {
    let with = Lang::ALL.into_iter().map(Lang::language).filter(|language| language.state_template().is_some());
    let with: Vec<&str> = with.map(|language| language.title()).collect();
    Failure::usage(format!("there is no first state in {language}; --state is for {}", with.join(" and ")))
}

fn print(dir: &Path, name: &ModuleName, options: &New, names: &Names) {
    let language = options.lang.language();
    let kind = if options.engine { "an engine" } else { "a module" };
    say!("{} is the folder of {name}, {kind} in {}:", dir.display(), language.title());
    say!("  {:<18} its functions: names, types, documentation", "wit/world.wit");
    say!("  {:<18} what the host offers to modules", "wit/deps/");
    for (path, what) in language.tour() {
        say!("  {:<18} {what}", names.fill(path));
    }
    say!("Next:");
    say!("  cd {}", dir.display());
    say!("  salt-module build");
    if options.engine {
        say!("  {:<33} # its own test", language.test_command());
        say!("  cp {name}.wasm /srv/engines/");
        say!("and in the configuration of the master, which has to start anew (docs/engines.md):");
        say!("  engines_dirs: [/srv/engines]");
        say!("  engines: [{{{name}: {{tags: 'deploy/*'}}}}]");
        return;
    }
    say!("  salt-module run {name}.wasm world");
    if options.state {
        say!("  salt-module run --state {name}.wasm written /tmp/{name} --grant 'changes: {{/tmp: rw}}' --test");
    }
    say!("  {:<33} # its own test", language.test_command());
}

/// One name in the spellings of several languages.
struct Names {
    name: String,
    kebab: String,
    camel: String,
    pascal: String,
}

impl Names {
    fn of(name: &ModuleName) -> Result<Self, Failure> {
        let name = name.as_str();
        let words: Vec<&str> = name.split('_').collect();
        if words.iter().any(|word| !word.starts_with(|c: char| c.is_ascii_lowercase())) {
            return Err(Failure::usage(format!(
                "{name} cannot be a world's name in WIT: there each word, between the _, begins with a letter"
            )));
        }
        let capital = |word: &&str| word[..1].to_ascii_uppercase() + &word[1..];
        let pascal: String = words.iter().map(capital).collect();
        let camel = pascal[..1].to_ascii_lowercase() + &pascal[1..];
        Ok(Self { name: name.to_owned(), kebab: words.join("-"), camel, pascal })
    }

    fn fill(&self, text: &str) -> String {
        let Self { name, kebab, camel, pascal } = self;
        let pairs = [("{{name}}", name), ("{{kebab}}", kebab), ("{{camel}}", camel), ("{{pascal}}", pascal)];
        pairs.into_iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    }
}
