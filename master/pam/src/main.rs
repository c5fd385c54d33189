//! brine-pam: asks PAM whether a password is a user's.
//!
//! salt-master starts it for each log-in of `external_auth: pam`, as `pam_unix` starts `unix_chkpwd`: what PAM's modules load, leak or hang
//! on stays out of the master, which is not linked with libpam and ends this process when it takes too long.
//!
//! Standard input: service, name and password, with a zero byte between them. Exit code 0: the password is right and the account may be
//! used; the user's groups are on standard output, each with a zero byte after it. 1: not so. 2: PAM cannot be asked. The reason of 1 and 2
//! is on standard error, for the master's log. It has no privileges of its own: who can start it learns what `su` would tell as well.

use std::cell::Cell;
use std::ffi::{CString, OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::ExitCode;

use nix::unistd::{Group, User, getgrouplist};
use nonstick::constants::ErrorCode;
use nonstick::items::Items as _;
use nonstick::{AuthnFlags, ConversationAdapter, PamShared as _, Transaction as _, TransactionBuilder};
use zeroize::Zeroizing;

/// Bytes of a service, name and password together.
const INPUT_MAX: u64 = 16 << 10;
/// Questions that are answered. A module that goes on asking gets no further answer.
const QUESTIONS_MAX: u32 = 16;

/// Why a user is not let in.
enum No {
    /// The password is wrong, or the account may not be used.
    Refused(String),
    /// PAM cannot be asked.
    Trouble(String),
}

fn main() -> ExitCode {
    let (code, why) = match run() {
        Ok(groups) => {
            let mut out = std::io::stdout();
            let written = groups.iter().try_for_each(|group| {
                out.write_all(group.as_bytes())?;
                out.write_all(b"\0")
            });
            match written.and_then(|()| out.flush()) {
                Ok(()) => return ExitCode::SUCCESS,
                Err(error) => (2, format!("the groups cannot be told: {error}")),
            }
        }
        Err(No::Refused(why)) => (1, why),
        Err(No::Trouble(why)) => (2, why),
    };
    eprintln!("{why}");
    ExitCode::from(code)
}

fn run() -> Result<Vec<String>, No> {
    let trouble = |why: &str| No::Trouble(why.to_owned());
    let mut input = Zeroizing::new(Vec::new());
    std::io::stdin().take(INPUT_MAX).read_to_end(&mut input).map_err(|e| No::Trouble(e.to_string()))?;
    let mut parts = input.split(|byte| *byte == 0);
    let (Some(service), Some(name), Some(password), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(trouble("standard input must have a service, a name and a password"));
    };
    // A service is a file's name below /etc/pam.d.
    if service.is_empty() || service.contains(&b'/') || name.is_empty() {
        return Err(trouble("the service or the name cannot be one"));
    }
    let name = OsStr::from_bytes(name);
    let answers = Answers { name, password: OsStr::from_bytes(password), left: Cell::new(QUESTIONS_MAX) };
    let failed = |error: ErrorCode| match error {
        ErrorCode::SystemError
        | ErrorCode::BufferError
        | ErrorCode::ServiceError
        | ErrorCode::SymbolError
        | ErrorCode::OpenError
        | ErrorCode::Abort => No::Trouble(format!("PAM: {error}")),
        other => No::Refused(format!("PAM: {other}")),
    };
    let service = OsStr::from_bytes(service);
    let mut pam = TransactionBuilder::new_with_service(service)
        .username(name)
        .build(answers.into_conversation())
        .map_err(failed)?;
    // An empty password is nobody's, whatever a module thinks (`nullok`).
    let flags = AuthnFlags::DISALLOW_NULL_AUTHTOK;
    pam.authenticate(flags).map_err(failed)?;
    // Locked, expired, not at this hour (CVE-2022-22967).
    pam.account_management(flags).map_err(failed)?;
    // Permissions are by the name that was asked for; a module may know the same user by more than one.
    let known = pam.items().user().map_err(failed)?;
    if known.as_deref() != Some(name) {
        return Err(No::Refused(format!("PAM knows this user by another name: {known:?}")));
    }
    groups(name).map_err(|error| No::Trouble(format!("the groups of the user are not known: {error}")))
}

/// The groups of a user as the system has them, LDAP's included; none of one that only PAM knows.
fn groups(name: &OsStr) -> nix::Result<Vec<String>> {
    let Some(user) = name.to_str().map(User::from_name).transpose()?.flatten() else { return Ok(Vec::new()) };
    let name = CString::new(name.as_bytes()).map_err(|_| nix::Error::EINVAL)?;
    let mut names = Vec::new();
    for gid in getgrouplist(&name, user.gid)? {
        // A number without a name is in nobody's configuration.
        names.extend(Group::from_gid(gid)?.map(|group| group.name));
    }
    Ok(names)
}

/// Answers as Salt does: what is typed hidden is the password, what is typed visibly the name.
struct Answers<'a> {
    name: &'a OsStr,
    password: &'a OsStr,
    left: Cell<u32>,
}

impl Answers<'_> {
    fn answer(&self, with: &OsStr) -> nonstick::Result<OsString> {
        let left = self.left.get().checked_sub(1).ok_or(ErrorCode::ConversationError)?;
        self.left.set(left);
        Ok(OsString::from_vec(with.as_bytes().to_vec()))
    }
}

impl ConversationAdapter for Answers<'_> {
    fn prompt(&self, _request: impl AsRef<OsStr>) -> nonstick::Result<OsString> {
        self.answer(self.name)
    }

    fn masked_prompt(&self, _request: impl AsRef<OsStr>) -> nonstick::Result<OsString> {
        self.answer(self.password)
    }

    fn error_msg(&self, message: impl AsRef<OsStr>) {
        eprintln!("{}", message.as_ref().display());
    }

    fn info_msg(&self, _message: impl AsRef<OsStr>) {}
}
