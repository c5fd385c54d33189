//! The words that Salt itself understands among the arguments of a state.

/// How a state can depend on another, in the order of precedence: a state is sorted to the place that its strongest
/// dependents ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Requisite {
    /// `onfail`: it runs if the other failed.
    OnFail,
    /// `onfail_any`
    OnFailAny,
    /// `onfail_all`
    OnFailAll,
    /// `require`: it runs if the other did not fail.
    Require,
    /// `require_any`
    RequireAny,
    /// `onchanges`: it runs if the other changed something.
    OnChanges,
    /// `onchanges_any`
    OnChangesAny,
    /// `watch`: as `require`, and it reacts to changes.
    Watch,
    /// `watch_any`
    WatchAny,
    /// `prereq`: it runs if the other is going to change something, and before it.
    Prereq,
    /// `prerequired`
    Prerequired,
    /// `listen`: at the end of the run, it reacts to changes.
    Listen,
}

impl Requisite {
    /// All, in their order.
    pub const ALL: [Self; 12] = [
        Self::OnFail,
        Self::OnFailAny,
        Self::OnFailAll,
        Self::Require,
        Self::RequireAny,
        Self::OnChanges,
        Self::OnChangesAny,
        Self::Watch,
        Self::WatchAny,
        Self::Prereq,
        Self::Prerequired,
        Self::Listen,
    ];

    /// Those that make an edge between two states, in the order in which Salt looks at them.
    pub(crate) const EDGES: [Self; 10] = [
        Self::Require,
        Self::RequireAny,
        Self::Watch,
        Self::WatchAny,
        Self::Prereq,
        Self::OnFail,
        Self::OnFailAny,
        Self::OnFailAll,
        Self::OnChanges,
        Self::OnChangesAny,
    ];

    /// The word in an SLS.
    pub fn name(self) -> &'static str {
        match self {
            Self::OnFail => "onfail",
            Self::OnFailAny => "onfail_any",
            Self::OnFailAll => "onfail_all",
            Self::Require => "require",
            Self::RequireAny => "require_any",
            Self::OnChanges => "onchanges",
            Self::OnChangesAny => "onchanges_any",
            Self::Watch => "watch",
            Self::WatchAny => "watch_any",
            Self::Prereq => "prereq",
            Self::Prerequired => "prerequired",
            Self::Listen => "listen",
        }
    }

    /// Without `_any` or `_all`.
    pub(crate) fn base(self) -> Self {
        match self {
            Self::OnFailAny | Self::OnFailAll => Self::OnFail,
            Self::RequireAny => Self::Require,
            Self::OnChangesAny => Self::OnChanges,
            Self::WatchAny => Self::Watch,
            other => other,
        }
    }

    pub(crate) fn is_any(self) -> bool {
        matches!(self, Self::OnFailAny | Self::RequireAny | Self::OnChangesAny | Self::WatchAny)
    }
}

/// Whether an argument is a list of requisites (`STATE_REQUISITE_KEYWORDS`).
pub(crate) fn is_requisite(name: &str) -> bool {
    name == "onfail_stop" || Requisite::ALL.iter().any(|requisite| requisite.name() == name)
}

/// Arguments that add a requisite to other states, or take arguments of them.
pub(crate) const ADDS_TO_OTHERS: [&str; 7] =
    ["require_in", "watch_in", "onfail_in", "onchanges_in", "use", "use_in", "prereq_in"];

/// What `use` does not take over.
pub(crate) fn is_never_used(name: &str) -> bool {
    ADDS_TO_OTHERS.contains(&name)
        || matches!(name, "require" | "watch" | "prereq" | "onfail" | "onfail_stop" | "onchanges")
}

/// Whether an argument is Salt's own, and not the state function's (`STATE_INTERNAL_KEYWORDS`).
pub fn is_internal(name: &str) -> bool {
    const RUN: [&str; 47] = [
        "fun",
        "state",
        "check_cmd",
        "cmd_opts_exclude",
        "failhard",
        "onlyif",
        "unless",
        "creates",
        "retry",
        "order",
        "parallel",
        "prereq",
        "prereq_in",
        "reload_modules",
        "reload_grains",
        "reload_pillar",
        "runas",
        "runas_password",
        "no_log",
        "fire_event",
        "saltenv",
        "umask",
        "use",
        "use_in",
        "__env__",
        "__sls__",
        "__id__",
        "__sls_included_from__",
        "__orchestration_jid__",
        "__pub_user",
        "__pub_arg",
        "__pub_jid",
        "__pub_fun",
        "__pub_tgt",
        "__pub_ret",
        "__pub_pid",
        "__pub_tgt_type",
        "__pub_resource_targets",
        "__pub_minion_is_target",
        "__pub_resource_target",
        "__pub_resource_job",
        "__pub_pure_resource_target",
        "__prereq__",
        "__prerequiring__",
        "__umask__",
        "onchanges_in",
        "onfail_in",
    ];
    is_requisite(name) || RUN.contains(&name) || matches!(name, "watch_in" | "require_in" | "listen_in")
}
