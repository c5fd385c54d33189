//! Variables by which a program runs what it was not granted to run.

use brine_sandbox::Names;

/// Beginnings of names that loaders, interpreters and tools read.
const BEGIN: [&str; 36] = [
    "_JAVA",
    "ANSIBLE_",
    "APT_",
    "BASH",
    "BUNDLE_",
    "CARGO",
    "CLASSPATH",
    "DOCKER_",
    "DOTNET_",
    "DPKG_",
    "DYLD_",
    "ERL_",
    "GCONV_",
    "GEM_",
    "GIT_",
    "GLIBC_",
    "GO",
    "JAVA_",
    "JDK_",
    "KUBE",
    "LD_",
    "LESS",
    "LUA_",
    "MAKE",
    "MALLOC_",
    "NODE_",
    "NPM_",
    "OPENSSL_",
    "PERL",
    "PHP",
    "PIP_",
    "PYTHON",
    "RPM_",
    "RUBY",
    "RUST",
    "XDG_",
];
/// Ends of such names.
const END: [&str; 11] =
    ["_ASKPASS", "_COMMAND", "_CONFIG", "_EDITOR", "_ENV", "_HOME", "_OPTIONS", "_OPTS", "_PAGER", "_PATH", "_PRELOAD"];
/// The names of such variables that have nothing in common.
const WHOLE: [&str; 22] = [
    "BROWSER",
    "CDPATH",
    "EDITOR",
    "ENV",
    "FPATH",
    "GETCONF_DIR",
    "HOME",
    "HOSTALIASES",
    "IFS",
    "LOCPATH",
    "MANPAGER",
    "NLSPATH",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "RES_OPTIONS",
    "SHELL",
    "SHELLOPTS",
    "TERMINFO",
    "VISUAL",
    "ZDOTDIR",
];

/// The first of these by which a program can be made to run something else. A pattern stands for all that it matches.
pub(super) fn strong(env: &Names) -> Option<&str> {
    match env {
        Names::Any => Some("any"),
        Names::Only(names) => names.iter().map(String::as_str).find(|name| is_strong(name)),
    }
}

fn is_strong(name: &str) -> bool {
    // Few programs read them in small letters.
    let upper = name.to_ascii_uppercase();
    name.contains(['*', '?'])
        || WHOLE.contains(&upper.as_str())
        || BEGIN.iter().any(|begin| upper.starts_with(begin))
        || END.iter().any(|end| upper.ends_with(end))
}
