//! Users other than root, and what minions may do on the master.

use std::time::Duration;

use super::*;

settings! { AREA = "Access";
    /// Log-in systems, their users and what each may do. See docs/access.md.
    EXTERNAL_AUTH: Value = mapping("external_auth", master("{}")).live();
    /// Password of the log-in system `sharedsecret`.
    SHAREDSECRET: String = text("sharedsecret", master(NONE)).live().private();
    /// PAM service that the log-in system `pam` asks.
    PAM_SERVICE: String = text("auth.pam.service", master("login"));
    /// Users of this host and what each may do without a log-in. See docs/access.md.
    PUBLISHER_ACL: Value = mapping("publisher_acl", master("{}")).live();
    /// What nobody may do, root included. See docs/access.md.
    PUBLISHER_ACL_BLACKLIST: Value = mapping("publisher_acl_blacklist", master("{}")).live();
    /// Users of this host, globs or expressions, that are refused.
    PUBLISHER_ACL_BLACKLIST_USERS: Value = any("publisher_acl_blacklist:users", master("[]")).live();
    /// Functions, globs or expressions, that are refused.
    PUBLISHER_ACL_BLACKLIST_MODULES: Value = any("publisher_acl_blacklist:modules", master("[]")).live();
    /// Require that users of `publisher_acl` are users of this host.
    CLIENT_ACL_VERIFY: bool = truth("client_acl_verify", master("true")).live();
    /// Add what `*` may do to what a user may do. Otherwise `*` is for users that are not named.
    PERMISSIVE_ACL: bool = truth("permissive_acl", master("false")).live();
    /// Time that a token is valid.
    TOKEN_EXPIRE: Duration = seconds("token_expire", master("43200"), TIME).live();
    /// Users that may choose another time: true, false, or a mapping of log-in systems to users.
    TOKEN_EXPIRE_USER_OVERRIDE: Value = any("token_expire_user_override", master("false")).live();
    /// Refused when true: permissions are always those of `external_auth` at the time of use.
    KEEP_ACL_IN_TOKEN: bool = truth("keep_acl_in_token", master("false"));
    /// Refused when set: permissions are always those of `external_auth`.
    EAUTH_ACL_MODULE: bool = truth("eauth_acl_module", master(NONE));
    /// Functions that minions may run on other minions: a mapping of minions to functions, both expressions.
    PEER: Value = mapping("peer", master("{}")).live();
    /// Runners that minions may run: a mapping of minions to runners, both expressions.
    PEER_RUN: Value = mapping("peer_run", master("{}")).live();
    /// Which minions may read which names of the mine, both expressions. Without it, all may read all.
    MINE_GET: Value = mapping("mine_get", master(NONE)).live();
    /// Named groups of minions: a mapping of names to compound targets.
    NODEGROUPS: Value = mapping("nodegroups", master("{}")).live();
}
