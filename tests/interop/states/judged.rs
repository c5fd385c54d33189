//! States that judge a host, wait for it, and set what logrotate and `virtualenv` make of it. `virtualenv` is a small program of the
//! root's own, which makes a Python with a pip that only keeps a list.

use super::web::Web;

/// Makes the program, and what there is before.
pub(super) const MADE: &str = r#"
cat > /usr/bin/virtualenv << 'END'
#!/bin/sh
[ "$1" != --version ] || { echo 'virtualenv 20.17.1+ds from /usr/lib/python3'; exit; }
for path; do :; done
case "$path" in */broken) mkdir -p "$path/bin"; echo 'no such Python' >&2; exit 3 ;; esac
mkdir -p "$path/bin"
echo "$*" > "$path/made"
echo pip==23.0.1 > "$path/list"
cp /opt/fake-python "$path/bin/python"
echo made "$path"
END
cat > /opt/fake-python << 'END'
#!/bin/sh
list=${0%/bin/*}/list
case "$*" in
*' freeze'*) cat "$list" ;;
*--version*) echo 'pip 23.0.1 from /x (python 3.11)' ;;
-V) echo 'Python 2.7.18' >&2 ;;
*no-such*) echo 'ERROR: No matching distribution found' >&2; exit 1 ;;
*install*) for last; do :; done; echo "${last##*/}==1.0" >> "$list"; echo installed ;;
esac
END
chmod 755 /usr/bin/virtualenv /opt/fake-python
rm -rf /opt/j; mkdir -p /opt/j; echo demo > /opt/j/requirements.txt
rm -rf /etc/logrotate.d; mkdir -p /etc/logrotate.d
printf '# rotate\nweekly\nrotate 4\ninclude /etc/logrotate.d\n/var/log/own {\n    monthly\n    rotate 1\n}\n' > /etc/logrotate.conf
printf '/var/log/apt/*.log\n/var/log/term {\n  rotate 12\n  postrotate\n    true # {\n  endscript\n}\n' > /etc/logrotate.d/apt
printf '/var/log/wtmp {\n    missingok\n    create 0664 root utmp\n    rotate 1\n}\n' > /etc/logrotate.d/wtmp
"#;

/// What is there afterwards.
pub(super) const THERE: &str =
    "cat /etc/logrotate.conf /etc/logrotate.d/*; cd /opt/j; find . | sort; cat */made */list";

pub(super) fn made(web: &Web) -> String {
    STATES.replace("PORT", &web.port.to_string())
}

const STATES: &str = r#"
load: {status.loadavg: [{name: 1-min}, {maximum: 100000}]}
load text: {status.loadavg: [{name: 15-min}, {maximum: '99999.5'}, {minimum: 0}]}
no load: {status.loadavg: [{name: 2-min}]}
bad load: {status.loadavg: [{name: 5-min}, {minimum: 3}, {maximum: 2}]}
process: {status.process: [{name: '^root '}]}
no process: {status.process: [{name: 'no-such-[p]rocess'}]}
/: {disk.status: [{maximum: 100%}, {minimum: 0}]}
free: {disk.status: [{name: /}, {minimum: 1 KB}, {absolute: True}, {free: True}]}
bad disk: {disk.status: [{name: /}, {maximum: 101}]}
no number: {disk.status: [{name: /}, {minimum: x}]}
bad disks: {disk.status: [{name: /}, {maximum: 5}, {minimum: 6}]}
127.0.0.1: {firewall.check: [{port: PORT}]}
closed: {firewall.check: [{name: 127.0.0.1}, {port: 1}, {timeout: 2}]}
no port: {firewall.check: [{name: 127.0.0.1}]}
nothing: {stateconf.set: [{a: b}]}
tried: {firewall.check: [{name: 192.0.2.1}, {port: 1}, {test: True}]}
until: {loop.until: [{name: test.echo}, {m_args: [abc]}, {condition: "'b' in m_ret and m_ret.startswith('a')"}]}
until by name: {loop.until: [{name: test.arg}, {m_kwargs: {n: {a: [1, 2]}}}, {condition: "m_ret['kwargs']['n']['a'][-1] == 2"}]}
until never: {loop.until: [{name: test.ping}, {condition: m_ret is False}, {period: 0.01}, {timeout: 0.02}]}
until nothing: {loop.until: [{name: test.ping}]}
until unknown: {loop.until: [{name: no.such}, {condition: m_ret}]}
until when: {loop.until: [{name: test.ping}, {condition: m_ret}, {period: often}]}
until how long: {loop.until: [{name: test.ping}, {condition: m_ret}, {timeout: long}]}
equal: {loop.until_no_eval: [{name: test.echo}, {args: [x]}, {expected: x}]}
less: {loop.until_no_eval: [{name: test.echo}, {kwargs: {text: 5}}, {expected: 7}, {compare_operator: lt}]}
has: {loop.until_no_eval: [{name: test.echo}, {args: [[1, 2]]}, {expected: 2}, {compare_operator: contains}, {init_wait: 0.01}]}
never: {loop.until_no_eval: [{name: test.ping}, {expected: False}, {period: 0.5}, {timeout: 0.1}]}
no function: {loop.until_no_eval: [{name: no.such}, {expected: 1}]}
no operator: {loop.until_no_eval: [{name: test.ping}, {expected: 1}, {compare_operator: nothing}]}
no period: {loop.until_no_eval: [{name: test.ping}, {expected: 1}, {period: x}]}
rotate: {logrotate.set: [{key: rotate}, {value: '2'}]}
weekly: {logrotate.set: [{key: weekly}, {value: True}]}
compress: {logrotate.set: [{key: compress}, {value: True}]}
own: {logrotate.set: [{key: /var/log/own}, {value: rotate}, {setting: 3}]}
wtmp: {logrotate.set: [{key: /var/log/wtmp}, {value: rotate}, {setting: 1}]}
wtmp new: {logrotate.set: [{key: /var/log/wtmp}, {value: minsize}, {setting: 1M}]}
term: {logrotate.set: [{key: /var/log/term}, {value: rotate}, {setting: '7'}]}
new: {logrotate.set: [{key: /var/log/new}, {value: daily}, {setting: True}]}
/opt/j/a: {virtualenv.managed: [{system_site_packages: True}, {python: /usr/bin/python3}, {prompt: p}]}
/opt/j/b: {virtualenv.managed: [{venv_bin: virtualenv}, {never_download: False}, {pip_pkgs: [demo_one]}]}
/opt/j/broken: {virtualenv.managed: []}
wheels: {virtualenv.managed: [{name: /opt/j/a}, {use_wheel: True}]}
no package: {virtualenv.managed: [{name: /opt/j/a}, {pip_pkgs: [no-such]}]}
file: {virtualenv.managed: [{name: /opt/j/a}, {requirements: /opt/j/requirements.txt}]}
no file: {virtualenv.managed: [{name: /opt/j/a}, {requirements: 'salt://no-such.txt'}]}
cleared: {virtualenv.managed: [{name: /opt/j/b}, {clear: True}]}
"#;
