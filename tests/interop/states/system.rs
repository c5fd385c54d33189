//! States of the system: crontabs, locales, the time zone, modules of the kernel, and which program a name means. The programs behind
//! them are small ones of the root's own, so that each host answers the same; `update-alternatives` is Debian's.

use serde_json::{Value, json};

use super::Side;

/// Makes the programs, and what they know.
pub(super) const MADE: &str = r#"
program() { cat > "$1" && chmod 755 "$1"; }
program /usr/bin/crontab << 'END'
#!/bin/sh
user=root
[ "$1" != -u ] || { user=$2; shift 2; }
id "$user" > /dev/null 2>&1 || { echo "crontab: user $user unknown" >&2; exit 1; }
tab=/var/spool/cron/crontabs/$user
[ "$1" != -l ] || { cat "$tab" 2> /dev/null || { echo "no crontab for $user" >&2; exit 1; }; exit 0; }
mkdir -p "${tab%/*}"
cat "$1" > /run/new.crontab
! grep -q '^77 ' /run/new.crontab || { echo 'bad minute: cannot install' >&2; exit 1; }
cp /run/new.crontab "$tab"
END
program /usr/bin/locale << 'END'
#!/bin/sh
cat /run/locales
END
program /usr/sbin/locale-gen << 'END'
#!/bin/sh
echo "$1" | sed 's/ .*//; s/UTF-8/utf8/' >> /run/locales
END
program /usr/sbin/update-locale << 'END'
#!/bin/sh
echo '# by update-locale' > /etc/default/locale
END
program /usr/sbin/lsmod << 'END'
#!/bin/sh
echo 'Module Size Used by'
cat /run/mods
END
program /usr/sbin/modprobe << 'END'
#!/bin/sh
! grep -q "^$1 " /run/mods || exit 0
grep -q "/$1.ko" "/usr/lib/modules/$(uname -r)/modules.dep" || { echo "modprobe: FATAL: Module $1 not found" >&2; exit 1; }
echo "$1 4096 0" >> /run/mods
END
program /usr/sbin/rmmod << 'END'
#!/bin/sh
[ "$1" != nf_nat ] || { echo 'rmmod: ERROR: Module nf_nat is in use' >&2; exit 1; }
sed -i "/^$1 /d" /run/mods
END
program /usr/bin/dig << 'END'
#!/bin/sh
case "$*" in
*www*A*) printf 'other.example.\n192.0.2.7\n192.0.2.8\n' ;;
*) exit 9 ;;
esac
END
rm -f /usr/sbin/iptables /usr/sbin/iptables-save
program /usr/sbin/iptables << 'END'
#!/bin/sh
case "$*" in *--help*) echo '--wait --check'; exit ;; *--version*) echo 'iptables v1.8.9 (own)'; exit ;; esac
[ "$1" != --wait ] || shift
[ "$1" = -t ] && [ "$2" = filter ] || { echo "no table $2" >&2; exit 3; }
what=$3 chain=$4
shift 4
grep -q "^:$chain " /run/chains || [ "$what" = -N ] || { echo "iptables: No chain $chain" >&2; exit 1; }
new=/run/rules.new
case $what in
-C) grep -qxF -e "-A $chain $*" /run/rules ;;
-A) echo "-A $chain $*" >> /run/rules ;;
-I) shift; { echo "-A $chain $*"; cat /run/rules; } > $new; mv $new /run/rules ;;
-D) grep -vxF -e "-A $chain $*" /run/rules > $new; mv $new /run/rules ;;
-F) grep -v "^-A $chain " /run/rules > $new; mv $new /run/rules ;;
-N) echo ":$chain - [0:0]" >> /run/chains ;;
-X) sed -i "/^:$chain /d" /run/chains ;;
-P) sed -i "s/^:$chain .*/:$chain $1 [0:0]/" /run/chains ;;
esac
END
program /usr/sbin/iptables-save << 'END'
#!/bin/sh
echo '*filter'
cat /run/chains /run/rules
echo COMMIT
END
printf ':INPUT ACCEPT [1:2]\n:OUTPUT ACCEPT [0:0]\n:OLD - [0:0]\n' > /run/chains
printf -- '-A OLD -j RETURN\n-A INPUT --source 192.0.2.0/24 --jump DROP\n' > /run/rules
program /usr/bin/newaliases << 'END'
#!/bin/sh
echo made >> /run/newaliases
END
printf '# mail\nroot: me # why\npostmaster:    root\nx: a\nx: b\nlist: :include:/etc/l' > /etc/aliases; chmod 600 /etc/aliases
rm -f /usr/bin/timedatectl /etc/modules /etc/modules-load.d/*
printf 'C\nC.utf8\nPOSIX\n' > /run/locales
mkdir -p /usr/share/i18n /etc/default /usr/share/zoneinfo/Etc /usr/share/zoneinfo/Europe /etc/modules-load.d
printf 'de_DE.UTF-8 UTF-8\nen_GB.UTF-8 UTF-8\n' > /usr/share/i18n/SUPPORTED
printf '# which to make\n# de_DE.UTF-8 UTF-8\n# en_GB.UTF-8 UTF-8' > /etc/locale.gen
echo LANG=C > /etc/default/locale
for zone in Etc/UTC Europe/Berlin; do rm -f "/usr/share/zoneinfo/$zone"; echo "TZif $zone" > "/usr/share/zoneinfo/$zone"; done
ln -sf /usr/share/zoneinfo/Etc/UTC /etc/localtime
echo Etc/UTC > /etc/timezone
printf '#\nUTC=no\n' > /etc/default/rcS
printf '0.0 0 0.0\n0\nUTC\n' > /etc/adjtime
printf 'loop 40960 0\nnf_nat 49152 1 nft_chain_nat\n' > /run/mods
modules=/usr/lib/modules/$(uname -r)
rm -rf "$modules"
mkdir -p "$modules/kernel"
for name in dummy bonding; do touch "$modules/kernel/$name.ko"; echo "kernel/$name.ko:" >> "$modules/modules.dep"; done
echo kernel/ext4.ko > "$modules/modules.builtin"
mkdir -p /opt/tools
# Salt writes temporary files, by which its root would have a folder more than the other.
touch /tmp/made
for name in one two; do printf '#!/bin/sh\n' | program "/opt/tools/$name"; done
"#;

/// What is made.
pub(super) const STATES: &str = r#"
mail: {cron.env_present: [{name: MAILTO}, {value: ops@example.com}]}
empty: {cron.env_present: [{name: EMPTY}, {value: ''}]}
shell: {cron.env_present: [{name: SHELL}, {value: /bin/sh}, {user: daemon}]}
backup: {cron.present: [{name: '/usr/local/bin/backup > /dev/null'}, {minute: 5}, {hour: '*/2'}, {comment: "kept\na week"}, {identifier: backup}]}
daily: {cron.present: [{name: daily job}, {special: '@daily'}, {commented: true}]}
of another: {cron.present: [{name: echo a=b c}, {user: daemon}, {dayweek: MON}]}
bad time: {cron.present: [{name: bad}, {minute: 77}]}
no user: {cron.present: [{name: bad}, {user: no-such-user}]}
no user's variable: {cron.env_absent: [{name: A}, {user: no-such-user}]}
no job: {cron.absent: [{name: nothing}]}
no special job: {cron.absent: [{name: nothing}, {special: '@hourly'}]}
no variable: {cron.env_absent: [{name: NOTHING}]}
german: {locale.present: [{name: de_DE.UTF-8 UTF-8}]}
english: {locale.present: [{name: en_GB.UTF-8}]}
there: {locale.present: [{name: C.UTF-8}]}
none: {locale.present: [{name: xx_YY.UTF-8}]}
system: {locale.system: [{name: de_DE.UTF-8}]}
zone: {timezone.system: [{name: Europe/Berlin}]}
module: {kmod.present: [{name: dummy}]}
at the start: {kmod.present: [{name: bonding}, {persist: true}]}
loaded: {kmod.present: [{name: loop}]}
unknown: {kmod.present: [{name: nothing}]}
in use: {kmod.absent: [{name: nf_nat}]}
not loaded: {kmod.absent: [{name: nothing}]}
mail there: {alias.present: [{name: postmaster}, {target: root}]}
mail for root: {alias.present: [{name: root}, {target: [you, they]}]}
mail twice: {alias.present: [{name: x}, {target: c}]}
mail new: {alias.present: [{name: new}, {target: n@example}]}
mail gone: {alias.absent: [{name: list}]}
no mail: {alias.absent: [{name: nothing}]}
chain: {iptables.chain_present: [{name: OWN}]}
chain there: {iptables.chain_present: [{name: OLD}]}
chain gone: {iptables.chain_absent: [{name: OLD}]}
rule: {iptables.append: [{chain: INPUT}, {jump: ACCEPT}, {match: state}, {connstate: NEW}, {dport: 22}, {proto: tcp}, {sport: '1025:65535'}, {save: true}]}
rule there: {iptables.append: [{chain: INPUT}, {source: 192.0.2.0/24}, {jump: DROP}]}
first rule: {iptables.insert: [{position: 1}, {chain: INPUT}, {jump: LOG}, {log-prefix: in}, {proto: tcp}, {dports: [80, 443]}, {source: '!10.0.0.0/8'}]}
rule of no chain: {iptables.append: [{chain: NOTHING}, {jump: ACCEPT}]}
no rule: {iptables.delete: [{chain: INPUT}, {source: 198.51.100.0/24}, {jump: DROP}]}
policy: {iptables.set_policy: [{chain: INPUT}, {policy: DROP}, {save: /etc/iptables/own}]}
policy there: {iptables.set_policy: [{chain: OUTPUT}, {policy: ACCEPT}]}
rules: {test.succeed_without_changes: [{name: "{{ salt['iptables.get_rules']() | length }} {{ salt['iptables.build_rule'](chain='INPUT', jump='DROP') }}"}]}
sync all: {saltutil.sync_all: [{refresh: true}]}
sync modules: {saltutil.sync_modules: []}
sync states: {saltutil.sync_states: [{saltenv: base}]}
sync nothing: {saltutil.sync_outputters: [{nope: 1}]}
no variable there: {environ.setenv: [{name: BRINE_NOT_THERE}, {value: false}, {false_unsets: true}]}
wrong variable: {environ.setenv: [{name: BRINE_NOT_THERE}, {value: [1]}]}
found: {test.succeed_without_changes: [{name: "{{ salt['dig.A']('www.example') | join(' ') }}"}]}
not found: {test.succeed_without_changes: [{name: "none {{ salt['dig.AAAA']('other.example') | length }}"}]}
"#;

/// What is changed and removed.
pub(super) const CHANGED: &str = r#"
mail: {cron.env_present: [{name: MAILTO}, {value: root}]}
shell: {cron.env_absent: [{name: SHELL}, {user: daemon}]}
backup: {cron.present: [{name: /usr/local/bin/backup --quiet}, {minute: 6}, {identifier: backup}]}
daily: {cron.present: [{name: daily job}, {special: '@weekly'}]}
of another: {cron.absent: [{name: echo a=b c}, {user: daemon}]}
system: {locale.system: [{name: en_GB.UTF-8}]}
zone: {timezone.system: [{name: Etc/UTC}, {utc: false}]}
module: {kmod.absent: [{name: dummy}]}
at the start: {kmod.absent: [{name: bonding}, {persist: true}]}
again: {kmod.present: [{name: bonding}, {persist: true}]}
rule: {iptables.delete: [{chain: INPUT}, {source: 192.0.2.0/24}, {jump: DROP}, {save: true}]}
flushed: {iptables.flush: [{chain: OUTPUT}]}
own chain: {iptables.chain_absent: [{name: OWN}]}
"#;

/// Prints what is there then.
pub(super) const THERE: &str = "cd /etc; for file in /var/spool/cron/crontabs/* locale.gen* default/locale* default/rcS* timezone modules \
                                modules.bak modules-load.d/*; do [ ! -f $file ] || { stat -c '%n %a %U' $file; cat $file; }; done; \
                                readlink localtime; stat -c %a aliases; cat aliases iptables/* /run/mods /run/locales /run/newaliases /run/chains /run/rules";

/// Applies the states of alternatives by Brine alone: Salt has them in an extension since 3008.
pub(super) fn alternatives(side: &Side) {
    let made = r#"
one: {alternatives.install: [{name: tool}, {link: /usr/bin/tool}, {path: /opt/tools/one}, {priority: 20}]}
two: {alternatives.install: [{name: tool}, {link: /usr/bin/tool}, {path: /opt/tools/two}, {priority: 10}]}
missing: {alternatives.install: [{name: tool}, {link: /usr/bin/tool}, {path: /opt/tools/three}, {priority: 1}]}
"#;
    let changed = r#"
other: {alternatives.set: [{name: tool}, {path: /opt/tools/two}]}
none: {alternatives.set: [{name: tool}, {path: /opt/tools/three}]}
best: {alternatives.auto: [{name: tool}]}
gone: {alternatives.remove: [{name: tool}, {path: /opt/tools/one}]}
never there: {alternatives.remove: [{name: no-tool}, {path: /opt/tools/one}]}
"#;
    let before = side.written();
    let dry = side.apply(made, true);
    is(&dry, "one", &Value::Null, "Alternative will be set for tool to /opt/tools/one with priority 20");
    assert_eq!(side.written(), before, "the dry run wrote");
    let first = side.apply(made, false);
    is(&first, "one", &json!(true), "Alternative for tool set to path /opt/tools/one with priority 20");
    let registered = "Alternative /opt/tools/two for tool registered with priority 10 and not set to default";
    is(&first, "two", &json!(true), registered);
    is(&first, "missing", &json!(false), "Alternative for tool not installed: update-alternatives: error");
    let again = side.apply(made, false);
    is(&again, "one", &json!(true), "Alternative /opt/tools/one for tool is already registered");
    let dry = side.apply(changed, true);
    is(&dry, "other", &Value::Null, "Alternative for tool will be set to path /opt/tools/two");
    is(&dry, "gone", &Value::Null, "Alternative for tool will be removed");
    let done = side.apply(changed, false);
    is(&done, "other", &json!(true), "Alternative for tool set to path /opt/tools/two");
    is(&done, "none", &json!(false), "Alternative /opt/tools/three for tool doesn't exist");
    is(&done, "best", &json!(true), "");
    is(&done, "gone", &json!(true), "Alternative for tool removed. Falling back to path /opt/tools/two");
    is(&done, "never there", &json!(false), "Alternative for no-tool doesn't exist");
    assert_eq!(side.root.shell("readlink /etc/alternatives/tool"), "/opt/tools/two\n");
}

/// Checks the result of the state with an id, and how its comment begins.
fn is(states: &Value, id: &str, result: &Value, comment: &str) {
    let states = states.as_object().expect("states");
    let (_, state) = states.iter().find(|(tag, _)| tag.contains(&format!("_|-{id}_|-"))).expect("the state");
    assert_eq!(&state["result"], result, "{id}: {state}");
    assert!(state["comment"].as_str().is_some_and(|said| said.starts_with(comment)), "{id}: {state}");
}
