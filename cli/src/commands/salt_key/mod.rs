//! `salt-key`: lists the keys of minions, or of nodes, and changes their status. It edits `pki_dir` itself, whether a master runs or
//! not, and notifies a running master with an event.

mod announce;
mod args;
mod candidates;
mod generate;
mod remote;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use brine_protocol::config::{Config, settings};
use brine_protocol::exit;
use brine_protocol::files;
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{self, KeyKind, KeyListing, KeyState, KeyStore, KeyStoreError};
use brine_protocol::text::name;
use brine_protocol::value::{self, Value, ValueExt};

pub use args::SaltKeyArgs;
use args::{Action, Decision};

use super::block_on;
use crate::commandline;
use crate::print::{Printer, stderr, stdout};
use crate::{Failure, Outcome};
use announce::Announcer;
use brine_client::{ClientOpts, LogIn, WheelClient, user};
use remote::Remote;

/// Runs the command with these arguments, beginning with the program's name.
///
/// # Errors
/// The failure that ended the command, with its exit code.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> Outcome {
    candidates::complete_or_document();
    let args: SaltKeyArgs = commandline::parse(argv)?;
    let action = args.action()?;
    args.start_logging()?;
    let (config, opts) = args.config.load()?;
    let printer = Printer::new(&args.output, &config)?.for_names();
    if let Some(log_in) = args.log_in() {
        log_in.check_system(exit::OK)?;
        let log_in = block_on(log_in.resolve(&config, &opts))??;
        // A user that can read the master's key needs no log-in, as in Salt.
        if log_in != LogIn::Key {
            let client = WheelClient::logged_in(opts, log_in);
            return Remote { args: &args, printer, client }.run(&action);
        }
    }
    let owner = owner(&args, &opts)?;
    let kind = if args.nodes { KeyKind::Nodes } else { KeyKind::Minions };
    let store = KeyStore::of(kind, &opts.pki_dir).owned_by(owner);
    let mut command = Command { args: &args, config: &config, opts: &opts, printer, store, owner };
    match action {
        Action::List(which) => command.list(&which),
        Action::Print(globs) => command.print(&globs),
        Action::Finger(globs) => command.finger(&globs),
        Action::Decide(decision, globs) => command.decide(decision, &globs),
        Action::Generate(name) => command.generate(&name),
        Action::Sign => command.sign(),
    }
}

/// The owner of new files: `--user`, or the master's user. None if this process cannot choose it.
///
/// # Errors
/// When the user of `--user` does not exist, or this process may not act for that user.
fn owner(args: &SaltKeyArgs, opts: &ClientOpts) -> Result<Option<u32>, Failure> {
    let Some(name) = args.user.as_deref().filter(|name| !name.is_empty()) else {
        return Ok(user::find_uid(&opts.master_user).filter(|_| is_root()));
    };
    let unable = |text: String| Failure::new(exit::NO_USER, text);
    let uid = user::find_uid(name).ok_or_else(|| unable(format!("User not found: \"{name}\"")))?;
    if !is_root() && uid != rustix::process::geteuid().as_raw() {
        return Err(unable(format!("salt-key: only root may act for {name}: run this as root or as {name}")));
    }
    Ok(Some(uid).filter(|_| is_root()))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn failed(error: impl Into<KeyStoreError>) -> Failure {
    let error = error.into();
    let code = match &error {
        KeyStoreError::File(file) if file.source.kind() == std::io::ErrorKind::PermissionDenied => exit::NO_PERMISSION,
        _ => exit::GENERIC,
    };
    Failure::new(code, format!("salt-key: {error}"))
}

/// A listing as a value for outputters. Of nodes it has the fingerprints too, which are to be compared before a key is accepted.
fn listing_value(store: &KeyStore, listing: &KeyListing) -> Value {
    let finger = |status, id: &MinionId| match store.read(status, id) {
        Ok(pem) => keys::fingerprint(&pem),
        Err(error) => error.to_string(),
    };
    value::map(listing.iter().map(|(status, ids)| {
        let shown = match store.kind() {
            KeyKind::Minions => value::list(ids.iter().map(MinionId::as_str)),
            KeyKind::Nodes => value::map(ids.iter().map(|id| (id.as_str(), Value::from(finger(*status, id))))),
        };
        (store.kind().folder(*status), shown)
    }))
}

/// Shows the keys that a glob matches, by state, and asks whether the decision applies to them. Returns false if there
/// are none, or if the operator says no.
fn confirm(
    args: &SaltKeyArgs,
    printer: &mut Printer,
    decision: Decision,
    globs: &str,
    matched: &Value,
) -> Result<bool, Failure> {
    if !matched.truthy() {
        let statuses = args.not_matched(decision);
        printer.line(&format!("The key glob '{globs}' does not match any {statuses} keys."));
        return Ok(false);
    }
    stdout(&format!("The following keys are going to be {}:", decision.past()));
    printer.show(matched, "key", 0);
    Ok(args.yes || ask_operator(decision)?)
}

/// Asks the operator for confirmation.
#[expect(clippy::print_stdout, reason = "the answer is typed behind it")]
fn ask_operator(decision: Decision) -> Result<bool, Failure> {
    let default = if decision == Decision::Delete { "n" } else { "y" };
    print!("Proceed? {} ", if decision == Decision::Delete { "[N/y]" } else { "[n/Y]" });
    let mut answer = String::new();
    let read = std::io::stdout().flush().and_then(|()| std::io::stdin().read_line(&mut answer));
    match read {
        Ok(0) | Err(_) => {
            Err(Failure::new(exit::GENERIC, "\nsalt-key: no answer, nothing was changed; -y answers yes"))
        }
        Ok(_) => {
            let answer = answer.trim_end_matches(['\n', '\r']);
            let answer = if answer.is_empty() { default } else { answer };
            Ok(answer.to_lowercase().starts_with('y'))
        }
    }
}

struct Command<'a> {
    args: &'a SaltKeyArgs,
    config: &'a Config,
    opts: &'a ClientOpts,
    printer: Printer,
    store: KeyStore,
    /// The owner of new files.
    owner: Option<u32>,
}

impl Command<'_> {
    fn list(&mut self, which: &[KeyState]) -> Outcome {
        let listing = self.store.list_all().map_err(failed)?;
        let chosen = listing.into_iter().filter(|(status, _)| which.contains(status)).collect();
        self.printer.show(&listing_value(&self.store, &chosen), "key", 0);
        Ok(exit::OK)
    }

    fn print(&mut self, globs: &str) -> Outcome {
        let keys = self.map_keys(globs, |store, status, id| store.read(status, id))?;
        self.printer.show(&value::map(keys), "key", 0);
        Ok(exit::OK)
    }

    fn finger(&mut self, globs: &str) -> Outcome {
        let hash = match &self.args.finger_hash {
            Some(hash) => hash.clone(),
            // The setting is read unchecked, because fingerprints may have a hash that the file server refuses.
            None => self.config.value(settings::HASH_TYPE.row.name).map(ValueExt::python_str).unwrap_or_default(),
        };
        let finger = |pem: &str| {
            keys::fingerprint_by(&hash, pem).map_err(|_| {
                let text =
                    format!("salt-key: {hash} is no hash for fingerprints: use sha1, sha224, sha256, sha384 or sha512");
                Failure::new(exit::USAGE, text)
            })
        };
        // Checks the hash before any key is read.
        finger("")?;
        let mut fingers = self.map_keys(globs, |store, status, id| store.read(status, id))?;
        for (_, named) in &mut fingers {
            if let Value::Map(named) = named {
                for (_, pem) in named {
                    *pem = Value::from(finger(pem.text().unwrap_or_default())?);
                }
            }
        }
        let local = self.store.local().unwrap_or_default();
        let globs: Vec<_> = globs.split(',').collect();
        let matches = |name: &str| globs.iter().any(|glob| brine_protocol::target::fnmatch(glob, name));
        let local = local.into_iter().filter(|(name, _)| matches(name));
        let local = local.map(|(name, pem)| Ok((name, finger(&pem)?))).collect::<Result<Vec<_>, Failure>>()?;
        if !local.is_empty() {
            fingers.push(("local", value::map(local)));
        }
        self.printer.show(&value::map(fingers), "key", 0);
        Ok(exit::OK)
    }

    /// Applies a function to every matching key, by status.
    fn map_keys(
        &self,
        globs: &str,
        of: impl Fn(&KeyStore, KeyState, &MinionId) -> Result<String, KeyStoreError>,
    ) -> Result<Vec<(&'static str, Value)>, Failure> {
        let mut out = Vec::new();
        for (status, ids) in self.store.matching(globs).map_err(failed)? {
            let mut entries = Vec::with_capacity(ids.len());
            for id in ids {
                let text = of(&self.store, status, &id).map_err(failed)?;
                entries.push((id.into_string(), Value::from(text)));
            }
            out.push((self.store.kind().folder(status), value::map(entries)));
        }
        Ok(out)
    }

    /// Accepts, rejects or deletes the matching keys after the operator has seen and confirmed them.
    fn decide(&mut self, decision: Decision, globs: &str) -> Outcome {
        let included = self.args.included(decision);
        let matched = self.store.matching(globs).map_err(failed)?;
        let matched: KeyListing =
            included.iter().filter_map(|status| matched.iter().find(|(found, _)| found == status).cloned()).collect();
        if !confirm(self.args, &mut self.printer, decision, globs, &listing_value(&self.store, &matched))? {
            return Ok(exit::OK);
        }
        let done = self.carry_out(decision, &matched);
        self.aftermath(decision, &matched);
        done
    }

    fn carry_out(&mut self, decision: Decision, matched: &KeyListing) -> Outcome {
        let announcer = Announcer::new(self.opts.push_socket(), self.store.kind());
        let mut done = Vec::new();
        let mut code = exit::OK;
        block_on(async {
            let mut announcer = announcer.connect().await;
            for (status, ids) in matched {
                for id in ids {
                    let result = match decision.to() {
                        Some(to) => self.store.change(*status, to, id).map(Some),
                        None => self.store.remove(*status, id).map(|_| None).map_err(KeyStoreError::from),
                    };
                    match result {
                        Ok(pem) => {
                            announcer.announce(decision.act(), id.as_str(), pem).await;
                            done.push(id.clone());
                        }
                        Err(error @ KeyStoreError::NotAKey { .. }) => {
                            self.problem(&format!(
                                "Unable to {} invalid key for {}.",
                                decision.verb(),
                                name(id.as_str())
                            ));
                            // The command succeeds, as in Salt, because the other keys were processed.
                            tracing::info!("{error}");
                        }
                        Err(error) => {
                            self.problem(&format!("salt-key: {error}"));
                            code = exit::GENERIC;
                        }
                    }
                }
            }
        })?;
        let now = match decision {
            Decision::Delete => matched.clone(),
            _ => self.state_of(matched)?,
        };
        for id in now.iter().flat_map(|(_, ids)| ids).filter(|id| done.contains(id)) {
            let of = if self.args.nodes { "node" } else { "minion" };
            self.printer.line(&format!("Key for {of} {} {}.", name(id.as_str()), decision.past()));
        }
        Ok(code)
    }

    fn problem(&self, text: &str) {
        stderr(text);
    }

    /// The present statuses of these ids, in Salt's order; an id with two keys appears twice.
    fn state_of(&self, matched: &KeyListing) -> Result<KeyListing, Failure> {
        let all = self.store.list_all().map_err(failed)?;
        let mut out: KeyListing = Vec::new();
        for id in matched.iter().flat_map(|(_, ids)| ids) {
            for status in [KeyState::Accepted, KeyState::Pending, KeyState::Rejected, KeyState::Denied] {
                if !all.iter().any(|(found, ids)| *found == status && ids.contains(id)) {
                    continue;
                }
                match out.iter_mut().find(|(found, _)| *found == status) {
                    Some((_, ids)) => ids.push(id.clone()),
                    None => out.push((status, vec![id.clone()])),
                }
            }
        }
        Ok(out)
    }

    /// The follow-up of a deletion or rejection: the master renews the publish key, which the minions know, and drops
    /// their data.
    fn aftermath(&self, decision: Decision, matched: &KeyListing) {
        // Nodes know no key of publications, and a connected one is looked at by the master.
        if decision == Decision::Accept || self.store.kind() == KeyKind::Nodes {
            return;
        }
        let rotate =
            self.args.rotate_aes_key.unwrap_or_else(|| self.config.get(settings::ROTATE_AES_KEY).unwrap_or(true));
        if rotate && let Err(error) = self.drop_file() {
            self.problem(&format!(
                "salt-key: cannot ask the master to renew its key in {}: {error}; a removed minion may still read what is \
                 published",
                self.opts.cachedir.display()
            ));
        }
        let preserve = self.args.preserve_minions.unwrap_or(false)
            || self.config.get(settings::PRESERVE_MINION_CACHE).unwrap_or_default();
        if decision == Decision::Delete && !preserve {
            let left = self.store.list_all().unwrap_or_default();
            let gone = |id: &&MinionId| !left.iter().any(|(_, ids)| ids.contains(id));
            for id in matched.iter().flat_map(|(_, ids)| ids).filter(gone) {
                for bank in ["grains", "pillar"] {
                    // a missing file counts as removed
                    let _ = std::fs::remove_file(self.opts.cachedir.join(bank).join(format!("{id}.p")));
                }
            }
        }
    }

    /// Writes the file `cachedir/.dfn`, which holds the master's id. The master polls for this file.
    fn drop_file(&self) -> std::io::Result<()> {
        let path = self.opts.cachedir.join(".dfn");
        if path.exists() {
            return Ok(());
        }
        let id = self.config.get(settings::ID).unwrap_or_default();
        std::fs::create_dir_all(&self.opts.cachedir)?;
        files::write_synced(&path, id.as_bytes(), 0o400)?;
        self.give(&path)
    }

    /// Gives a new file to its owner.
    fn give(&self, path: &Path) -> std::io::Result<()> {
        match self.owner {
            None => Ok(()),
            owner => std::os::unix::fs::chown(path, owner, None),
        }
    }
}
