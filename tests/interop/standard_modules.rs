//! The standard modules return the same as Salt's modules of the same names: each call is made in both, with the same
//! command line and configuration, and the returns are compared.

use std::os::unix::fs::symlink;
use std::path::Path;

use brine_kit::files::set_mode;
use brine_kit::process::{Output, run};
use brine_tests::salt::{Kind, Master, Minion, line};
use serde_json::{Value, json};

const CONFIG: &str = "file_client: local\ngrains: {role: web, nest: {list: [a, {k: v}], n: 1}, void: null, 'odd:key|x': {y: 2}}\nlog_level: quiet";

/// The calls, as words of a command line.
const CALLS: &[&[&str]] = &[
    &["test.ping"],
    &["test.echo", "foo bar"],
    &["test.echo", "{a: [1, 2.5, null, true], b: ünïcödé}"],
    &["test.echo", "text=12"],
    &["test.arg", "1", "two", "3.1", "txt=hello", "wow={a: 1, b: hello}"],
    &["test.arg"],
    &["test.kwarg", "num=1", "txt=two", "env={a: 1, b: hello}"],
    &["test.outputter", "foobar"],
    &["test.retcode"],
    &["test.true"],
    &["test.false"],
    &["test.sleep", "0"],
    &["test.arg_clean", "1", "two", "a=[1]"],
    &["test.arg_repr", "1", "two", "3.1", "[a, {b: null}]", "a=[1]"],
    &["test.arg_repr", "it's"],
    &["test.arg_type", "1", "two", "3.1", "[1]", "{a: 1}", "None", "True", "a=1"],
    &["test.assertion", "1"],
    &["test.conf_test"],
    &["test.cross_test", "test.echo", "[text]"],
    &["test.cross_test", "test.ping"],
    &["test.provider", "nothing"],
    &["test.provider", "test"],
    &["test.raise_exception", "nothing"],
    &["test.raise_exception", "print"],
    &["test.raise_exception", "BaseException"],
    &["test.raise_exception", "ValueError", "it", "1"],
    &["test.raise_exception", "OSError", "2", "No such file", "/tmp/x"],
    &["test.raise_exception", "salt.exceptions.CommandExecutionError", "Went wrong"],
    &["test.raise_exception", "salt.exceptions.nothing"],
    &["test.rand_sleep", "0"],
    &["test.try", "test.exception", "message=Oh"],
    &["test.try", "test.echo", "text=hi"],
    &["test.tty", "pts3", "text"],
    &["random.hash", "a text", "md5"],
    &["random.hash", "ünï"],
    &["random.str_encode", "a text"],
    &["random.seed"],
    &["random.seed", "60"],
    &["random.seed", "60", "hash=web1"],
    &["random.seed", "100000", "hash=12"],
    &["random.rand_int", "1", "1"],
    &["random.rand_int", "1", "1000000", "seed=some"],
    &["random.rand_int", "5", "15", "seed=7"],
    &["random.sample", "[a, b, c, d]", "2", "seed=some"],
    &["random.shuffle", "[a, b, c, {d: 1}, 5]", "seed=some"],
    &["random.get_str", "0"],
    &["sys.doc", "nothing.there"],
    &["sys.list_modules", "grains", "test", "nothing"],
    &["sys.list_modules", "saltuti*"],
    &["sys.list_functions", "sys.list_modul*", "test.ping", "nothing"],
    &["sys.argspec", "test.ping"],
    &["sys.argspec", "test.echo"],
    &["sys.argspec", "test.arg"],
    &["sys.argspec", "test.kwarg"],
    &["sys.argspec", "grains.item"],
    &["sys.argspec", "nothing.there"],
    &["grains.get", "role"],
    &["grains.get", "nest"],
    &["grains.get", "nest:n"],
    &["grains.get", "nest:list:1:k"],
    &["grains.get", "odd:key|x|y", "delimiter=|"],
    &["grains.get", "nothing"],
    &["grains.get", "nothing", "default=[1]"],
    &["grains.item", "role", "nest:n", "nothing"],
    &["grains.item", "role", "id", "sanitize=True"],
    &["grains.item", "nothing", "default=7"],
    &["grains.has_value", "nest:n"],
    &["grains.has_value", "nothing"],
    &["grains.get", "nest:list:k"],
    &["grains.get", "nest:list:-1:k"],
    &["grains.get", "nest:list:7"],
    &["grains.get", "void"],
    &["grains.get", "void", "default=x"],
    &["grains.fetch", "role"],
    &["grains.equals", "role", "web"],
    &["grains.equals", "nest:n", "1"],
    &["grains.equals", "nest:n", "2"],
    &["grains.equals", "nothing", ""],
    &["grains.filter_by", "{web: yes, default: no}", "role"],
    &["grains.filter_by", "{w*: {a: 1, l: [1]}, default: {b: 2}}", "role", "merge={l: [2], c: {d: 1}}"],
    &["grains.filter_by", "{x: {a: 1}, default: {b: 2}}", "grain=nothing", "base=x"],
    &["grains.filter_by", "{x: 1}", "grain=nothing"],
    &["grains.filter_by", "{x: 1, other: 2}", "grain=nothing", "default=other"],
    &["grains.filter_by", "{a: first, default: no}", "nest:list"],
    &["grains.setval", "s1", "val"],
    &["grains.setval", "s2", "[1, {a: b}]"],
    &["grains.setvals", "{s3: {a: {b: c}}, s4: null}"],
    &["grains.setvals", "[s3]"],
    &["grains.item", "s1", "s2", "s3", "s4"],
    &["grains.append", "roles", "a"],
    &["grains.append", "roles", "a"],
    &["grains.append", "roles", "[b, c]"],
    &["grains.append", "s1", "x"],
    &["grains.append", "s1", "x", "convert=True"],
    &["grains.append", "s3:a:list", "x"],
    &["grains.append", "s3|a|list", "y", "delimiter=|"],
    &["grains.remove", "roles", "b"],
    &["grains.remove", "roles", "zz"],
    &["grains.remove", "role", "web"],
    &["grains.remove", "s3:a:list", "x"],
    &["grains.item", "roles", "s1", "s3"],
    &["grains.set", "s5", "1"],
    &["grains.set", "s5", "1"],
    &["grains.set", "s5", "[1]"],
    &["grains.set", "s5", "[1]", "force=True"],
    &["grains.set", "s5", "2"],
    &["grains.set", "s6:x:y", "1"],
    &["grains.set", "s6:x:y", "2"],
    &["grains.set", "s6:x:y:z", "3"],
    &["grains.set", "s6:x:y:z", "3", "force=True"],
    &["grains.set", "roles:a", "1"],
    &["grains.set", "roles:new", "1"],
    &["grains.item", "s5", "s6", "roles"],
    &["grains.delval", "s6"],
    &["grains.delval", "s6", "force=True"],
    &["grains.delval", "s2", "destructive=True", "force=True"],
    &["grains.delkey", "s6"],
    &["grains.delkey", "s3:a", "force=True"],
    &["grains.delkey", "never"],
    &["grains.delkey", "s4"],
    &["grains.item", "s2", "s3", "s4", "s6"],
    &["defaults.merge", "{a: b, l: [1]}", "{d: e, l: [2]}", "merge_lists=True"],
    &["defaults.merge", "None", "{d: e}", "in_place=False"],
    &["defaults.deepcopy", "{a: [1, {b: null}]}"],
    &["defaults.update", "{a: {x: 1}, b: null}", "{y: 2}"],
    &["salt_version.get_release_number", "Oxygen"],
    &["salt_version.get_release_number", "sulfur"],
    &["salt_version.get_release_number", "nothing"],
    &["salt_version.get_release_number", "5"],
    &["salt_version.greater_than", "Sodium"],
    &["salt_version.less_than", "Calcium"],
    &["salt_version.less_than", "nothing"],
    &["salt_version.equal", "Fluorine"],
    &["saltutil.running"],
    &["saltutil.is_running", "test.*"],
    &["saltutil.find_job", "20250101000000000000"],
    &["saltutil.kill_job", "20250101000000000000"],
    &["saltutil.kill_all_jobs"],
];

/// Calls of modules that access the host with the owner's grants. TREE is a folder of files.
const HOST_CALLS: &[&[&str]] = &[
    &["cmd.run", "echo out; echo ünïcödé >&2"],
    &["cmd.run", "echo out; echo err >&2", "redirect_stderr=False"],
    &["cmd.run", "pwd"],
    &["cmd.run", "pwd", "cwd=TREE/sub"],
    &["cmd.run", "3", "shell=/bin/sh"],
    &["cmd.run", "no-such-program", "shell=/bin/sh"],
    &["cmd.run", "echo $A-$B", "env={A: 1, B: two words}"],
    &["cmd.run", "echo $A-$B", "env=[{A: 1}, {B: x}]"],
    &["cmd.run", "echo $LC_ALL$LC_TIME"],
    &["cmd.run", "echo $LC_TIME", "reset_system_locale=False", "env={LC_TIME: de_DE}"],
    &["cmd.run", "cat", "stdin=a\\nb"],
    &["cmd.run", "umask", "umask=077"],
    &["cmd.run", "umask", "umask=9"],
    &["cmd.run", "umask", "umask=0"],
    &["cmd.run", "printf 'a  \\n\\n'"],
    &["cmd.run", "printf 'a  \\n\\n'", "rstrip=False"],
    &["cmd.run", "printf 'a\\344'", "output_encoding=latin-1"],
    &["cmd.run", "echo x", "hide_output=True"],
    &["cmd.run", "echo broken; exit 3", "raise_err=True"],
    &["cmd.run", "echo '$HOME' \"a b\" c\\\\ d", "python_shell=False"],
    &["cmd.run", "echo 'open", "python_shell=False"],
    &["cmd.run", "[echo, $HOME, a b]", "python_shell=False"],
    &["cmd.run", "echo x", "cwd=relative"],
    &["cmd.run", "id -un", "runas=nobody"],
    &["cmd.run", "echo $0", "shell=/bin/sh"],
    &["cmd.run", "echo x", "success_retcodes=[x]"],
    &["cmd.run", "sleep 60", "timeout=1"],
    &["cmd.run_all", "sleep 60", "timeout=1", "python_shell=False"],
    &["cmd.run_all", "echo out; echo err >&2; exit 3"],
    &["cmd.run_all", "echo out; echo err >&2", "redirect_stderr=True"],
    &["cmd.run_all", "exit 3", "success_retcodes=3,4"],
    &["cmd.run_all", "echo good; exit 3", "success_stdout=[good]"],
    &["cmd.run_all", "echo bad >&2; exit 3", "success_stderr=bad,worse"],
    &["cmd.run_all", "kill -9 $$"],
    &["cmd.run_all", "printf 'a\\377b'"],
    &["cmd.run_stdout", "echo out; echo err >&2"],
    &["cmd.run_stderr", "echo out; echo err >&2"],
    &["cmd.retcode", "exit 4"],
    &["cmd.retcode", "exit 0"],
    &["cmd.shell", "for i in 1 2; do echo $i; done"],
    &["cmd.which_bin", "[no-such-program, also-none]"],
    &["cmd.has_exec", "sh"],
    &["cmd.has_exec", "no-such-program"],
    &["disk.usage"],
    &["disk.usage", "kP"],
    &["disk.usage", "z"],
    &["disk.inodeusage"],
    &["disk.percent"],
    &["disk.percent", "/nothing"],
    &["file.read", "TREE/a.txt"],
    &["file.read", "TREE/crlf.txt"],
    &["file.read", "TREE/nothing"],
    &["file.read", "TREE/sub"],
    &["file.seek_read", "TREE/a.txt", "5", "6"],
    &["file.stats", "TREE/a.txt"],
    &["file.stats", "TREE/a.txt", "hash_type=md5"],
    &["file.stats", "TREE/link"],
    &["file.stats", "TREE/absolute"],
    &["file.stats", "TREE/link", "follow_symlinks=False"],
    &["file.stats", "TREE/broken"],
    &["file.stats", "TREE/nothing"],
    &["file.stats", "TREE/sub"],
    &["file.lstat", "TREE/link"],
    &["file.lstat", "TREE/nothing"],
    &["file.lstat", "relative"],
    &["file.find", "TREE"],
    &["file.find", "TREE/*.txt", "print=name"],
    &["file.find", "TREE", "print"],
    &["file.find", "TREE/nothing"],
    &["file.find", "TREE", "type=d"],
    &["file.find", "TREE", "type=l"],
    &["file.find", "TREE", "type=f", "print=path,size,mode,user,group,type,mtime"],
    &["file.find", "TREE", "type=f", "print=md5"],
    &["file.find", "TREE", "type=x"],
    &["file.find", "TREE", "type="],
    &["file.find", "TREE", "what=1"],
    &["file.find", "TREE", "name=*.txt", "maxdepth=1"],
    &["file.find", "TREE", "mindepth=2"],
    &["file.find", "TREE", "iname=A*"],
    &["file.find", "TREE", "regex=[a-c]\\.(txt|bin)"],
    &["file.find", "TREE", "iregex=B"],
    &["file.find", "TREE", "regex=("],
    &["file.find", "TREE", "owner=root", "type=f"],
    &["file.find", "TREE", "group=0", "type=d"],
    &["file.find", "TREE", "size=+10b", "type=f"],
    &["file.find", "TREE", "size=-10b", "type=f"],
    &["file.find", "TREE", "size=big"],
    &["file.find", "TREE", "mtime=2d"],
    &["file.find", "TREE", "mtime=-2d", "type=f"],
    &["file.find", "TREE", "mtime=5"],
    &["file.find", "TREE/sub", "grep=fo+$"],
    &["file.grep", "TREE/a.txt", "foo"],
    &["file.grep", "TREE/a.txt", "foo", "-i", "-n"],
    &["file.grep", "TREE/*.txt", "foo", "-c"],
    &["file.grep", "TREE/*", "foo", "-i"],
    &["file.grep", "TREE", "foo", "-r"],
    &["file.grep", "TREE", "foo", "-rl"],
    &["file.grep", "TREE/a.txt", "foo", "-v"],
    &["file.grep", "TREE/a.txt", "beta", "-A1"],
    &["file.grep", "TREE/a.txt", "Gamma", "-nB1"],
    &["file.grep", "TREE/context.txt", "x", "-C1"],
    &["file.grep", "TREE/context.txt", "x", "-n", "-m2"],
    &["file.grep", "TREE/context.txt", "x", "-m1", "-A2"],
    &["file.grep", "TREE/a.txt", "[[:upper:]]a", "-o"],
    &["file.grep", "TREE/a.txt", "^b.*o\\{2\\}$"],
    &["file.grep", "TREE/a.txt", "(foo|Foo)", "-E"],
    &["file.grep", "TREE/a.txt", "a", "-L"],
    &["file.grep", "TREE/a.txt", "zzz", "-L"],
    &["file.grep", "TREE/a.txt", "eta", "-w"],
    &["file.grep", "TREE/a.txt", "alpha", "-x"],
    &["file.grep", "TREE/a.txt", "foo", "-q"],
    &["file.grep", "TREE/a.txt", "zzz"],
    &["file.grep", "TREE/nothing", "zzz"],
    &["file.grep", "TREE/nothing", "zzz", "-s"],
    &["file.grep", "TREE/a.txt", "x", "-i -n"],
    &["file.get_hash", "TREE/a.txt"],
    &["file.get_hash", "TREE/a.txt", "md5"],
    &["file.get_hash", "TREE/a.txt", "sha512"],
    &["file.get_hash", "TREE/a.txt", "nope"],
    &["file.get_hash", "TREE/nothing"],
    &["file.get_sum", "TREE/a.txt", "sha1"],
    &["file.get_sum", "TREE/nothing"],
    &["file.check_hash", "TREE/a.txt", "md5:123"],
    &["file.check_hash", "TREE/a.txt", "file_hash=md5=6ea8957e594194feff9db0d68d1f990a"],
    &["file.check_hash", "TREE/a.txt", "6ea8957e594194feff9db0d68d1f990a"],
    &["file.check_hash", "TREE/a.txt", "abc"],
    &["file.check_hash", "TREE/a.txt", "123"],
    &["file.readdir", "TREE"],
    &["file.readdir", "TREE/nothing"],
    &["file.file_exists", "TREE/a.txt"],
    &["file.file_exists", "TREE/sub"],
    &["file.directory_exists", "TREE/sub"],
    &["file.directory_exists", "TREE/nothing"],
    &["file.path_exists_glob", "TREE/*.txt"],
    &["file.path_exists_glob", "TREE/sub/[cd]*.log"],
    &["file.path_exists_glob", "TREE/*.nothing"],
    &["file.is_link", "TREE/link"],
    &["file.is_link", "TREE/a.txt"],
    &["file.is_hardlink", "TREE/hard"],
    &["file.is_hardlink", "TREE/sub/c.log"],
    &["file.is_hardlink", "TREE/nothing"],
    &["file.is_fifo", "TREE/a.txt"],
    &["file.readlink", "TREE/link"],
    &["file.readlink", "TREE/link", "canonicalize=True"],
    &["file.readlink", "TREE/absolute", "canonicalize=True"],
    &["file.readlink", "TREE/a.txt"],
    &["file.readlink", "relative"],
    &["file.get_mode", "TREE/a.txt"],
    &["file.get_mode", "TREE/link", "follow_symlinks=False"],
    &["file.get_mode", "TREE/nothing"],
    &["file.get_user", "TREE/a.txt"],
    &["file.get_uid", "TREE/a.txt"],
    &["file.get_group", "TREE/a.txt"],
    &["file.get_gid", "TREE/a.txt"],
    &["file.uid_to_user", "0"],
    &["file.uid_to_user", "54321"],
    &["file.gid_to_group", "0"],
    &["file.access", "TREE/a.txt", "f"],
    &["file.access", "TREE/nothing", "f"],
    &["file.access", "TREE/a.txt", "z"],
    &["file.contains", "TREE/a.txt", "beta"],
    &["file.contains", "TREE/a.txt", "nothing"],
    &["file.contains", "TREE/nothing", "beta"],
    &["file.contains_regex", "TREE/a.txt", "foo$"],
    &["file.contains_regex", "TREE/a.txt", "^Foo"],
    &["file.contains_regex", "TREE/a.txt", "^ha", "lchar=alp"],
    &["file.contains_glob", "TREE/a.txt", "*beta*"],
    &["file.contains_glob", "TREE/a.txt", "beta*"],
    &["file.search", "TREE/a.txt", "^beta foo$"],
    &["file.search", "TREE/a.txt", "^beta foo$", "flags=0"],
    &["file.search", "TREE/a.txt", "GAMMA", "flags=[IGNORECASE]"],
    &["file.search", "TREE/a.txt", "x", "flags=NOPE"],
    &["file.search", "TREE/b.bin", "foo"],
    &["file.search", "TREE/nothing", "foo"],
    &["file.search", "TREE/nothing", "foo", "ignore_if_missing=True"],
    &["file.diskusage", "TREE"],
    &["file.diskusage", "TREE/a.txt"],
    &["file.diskusage", "TREE/nothing"],
    &["file.basename", "/a/b"],
    &["file.dirname", "/a/b/"],
    &["file.join", "/a", "/b", "c"],
    &["file.normpath", "/a//b/../c"],
    &["file.pardir"],
    &["file.extract_hash", "TREE/sums", "md5", "/srv/a.txt"],
    &["file.extract_hash", "TREE/sums", "sha1", "/srv/a.txt"],
    &["file.extract_hash", "TREE/sums", "", "source=http://h/b.txt?x"],
    &["file.extract_hash", "TREE/sums"],
    &["defaults.get", "sub"],
    &["defaults.get", "sub:list:1:k"],
    &["defaults.get", "sub:list:nothing", "default=7"],
    &["defaults.get", "sub:nothing"],
    &["defaults.get", "nothing:a"],
    &["defaults.get", "nothing"],
    &["jinja.load_map", "sub/map.jinja", "map"],
    &["jinja.load_map", "sub/map.jinja", "text"],
    &["jinja.import_yaml", "sub/defaults.yaml"],
    &["jinja.import_json", "sub/values.json"],
    &["ps.kill_pid", "0"],
    &["ps.pkill", "no-such-process"],
    &["saltutil.term_job", "20250101000000000000"],
    &["saltutil.term_all_jobs"],
    &["saltutil.signal_job", "20250101000000000000", "15"],
];

/// Makes all calls like salt-call, but in one process, because Python Salt takes a second or two to start.
const PYTHON: &str = "
import json, sys
import salt.client, salt.minion, salt.utils.args
from salt.exceptions import SaltException
functions = salt.client.Caller(sys.argv[1]).sminion.functions
def call(name, *words):
    parsed = salt.utils.args.parse_input(words)
    # Of a job, as cmd looks at; others would only show its data among their arguments.
    data = {'jid': '20250101000000000000'} if name.startswith('cmd.') else None
    args, kwargs = salt.minion.load_args_and_kwargs(functions[name], parsed, data=data)
    try:
        # Salt's ps.pgrep fails if a process ends while it looks.
        for left in reversed(range(20)):
            try:
                answer = functions[name](*args, **kwargs)
                break
            except TypeError:
                if name != 'ps.pgrep' or not left:
                    raise
    except (SaltException, OSError, ValueError) as error:
        return {'failed': str(error)}
    # As it is now: Salt's grains are changed in place by later calls.
    return answer.decode() if isinstance(answer, bytes) else json.loads(json.dumps(answer))
print(json.dumps([call(*words) for words in json.loads(sys.argv[2])]))
";

#[test]
fn answers_are_salts() {
    compare_same(CALLS, CONFIG);
}

#[test]
fn programs_disks_and_files_answer_as_salts() {
    let tree = tree();
    let path = tree.path().display().to_string();
    let calls: Vec<Vec<String>> =
        HOST_CALLS.iter().map(|call| call.iter().map(|word| word.replace("TREE", &path)).collect()).collect();
    let calls: Vec<Vec<&str>> = calls.iter().map(|call| call.iter().map(String::as_str).collect()).collect();
    let calls: Vec<&[&str]> = calls.iter().map(Vec::as_slice).collect();
    // Grants as in Salt without a sandbox: any program, and this folder.
    let grants = format!("sandbox:\n  modules:\n    cmd: {{process: any}}\n    file: {{filesystem: {{{path}: ro}}}}");
    compare_same(&calls, &format!("{CONFIG}\nfile_roots: {{base: [{path}]}}\n{grants}"));
}

/// Makes files of all kinds, which the executor's user may read too.
fn tree() -> tempfile::TempDir {
    let tree = tempfile::Builder::new().prefix("brine-t").tempdir_in("/tmp").expect("a temporary folder");
    let at = |name: &str| tree.path().join(name);
    std::fs::create_dir_all(at("sub/deep")).expect("our own folder");
    for (name, content) in [
        ("a.txt", "alpha\nbeta foo\nGamma Foo\n"),
        ("crlf.txt", "x\r\ny\r\n"),
        ("context.txt", "1\n2x\n3\n4\n5\n6x\n7x\n8"),
        ("b.bin", "bin\0foo\n"),
        ("sums", "d41d8cd98f00b204e9800998ecf8427e  a.txt\nDA39A3EE5E6B4B0D3255BFEF95601890AFD80709 *b.txt\n"),
        ("sub/c.log", "foo\n"),
        ("sub/defaults.yaml", "list: [a, {k: v}]\nvoid:\n"),
        ("sub/map.jinja", "{% set map = {'role': grains['role'], 'n': [1, none]} %}{% set text = 'a: b' %}"),
        ("sub/values.json", "{\"a\": [true, null]}"),
        ("sub/deep/d.txt", "bar\n"),
    ] {
        std::fs::write(at(name), content).expect("our own folder");
        set_mode(at(name), 0o644);
    }
    for folder in ["", "sub", "sub/deep"] {
        set_mode(at(folder), 0o755);
    }
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3 * 86_400);
    let log = std::fs::File::options().write(true).open(at("sub/c.log")).expect("our own file");
    log.set_modified(old).expect("our own file");
    std::fs::hard_link(at("a.txt"), at("hard")).expect("our own folder");
    for (target, name) in [(Path::new("a.txt"), "link"), (&at("a.txt"), "absolute"), (&at("none"), "broken")] {
        symlink(target, at(name)).expect("our own folder");
    }
    tree
}

/// Makes each call in both with one configuration, and fails with all returns that differ.
pub(super) fn compare_same(calls: &[&[&str]], config: &str) {
    compare(calls, &|_| config.to_owned(), &|_| String::new());
}

/// The same, with a configuration and a folder (TREE) for each kind.
pub(super) fn compare(calls: &[&[&str]], config: &dyn Fn(&str) -> String, tree: &dyn Fn(&str) -> String) {
    let brine = Minion::prepare(Kind::Brine, "m1", 1, &config("brine"));
    let python = Minion::prepare(Kind::Python, "m1", 1, &config("python"));
    let conf = python.path("conf/minion").display().to_string();
    let of_kind = |kind: &str, call: &[&str]| -> Vec<String> {
        let tree = tree(kind);
        call.iter().map(|word| if tree.is_empty() { (*word).to_owned() } else { word.replace("TREE", &tree) }).collect()
    };
    let theirs: Vec<Vec<String>> = calls.iter().map(|call| of_kind("python", call)).collect();
    let output =
        run(&Kind::Python.program("python"), &["-W", "ignore", "-c", PYTHON, &conf, &json!(theirs).to_string()]);
    let expected = output.exits(0).json();
    // Where a folder is named in an answer, it is the same to both.
    let neutral = |kind: &str, answer: Value| match tree(kind) {
        tree if tree.is_empty() => answer,
        tree => serde_json::from_str(&answer.to_string().replace(&tree, "TREE")).expect("JSON still"),
    };

    let mut wrong = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let words = of_kind("brine", call);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output: Output = brine.salt_call(&[&["--local", "--out=json", "--"][..], &words].concat());
        let ours = comparable(call, neutral("brine", local(&output)));
        let theirs = comparable(call, neutral("python", expected[index].clone()));
        if ours != theirs {
            wrong.push(format!("{}: {ours}, in Salt {theirs}; {}", call.join(" "), output.stderr));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Removes the parts of a return that differ between two runs.
fn comparable(call: &[&str], mut answer: Value) -> Value {
    let lines = |text: &mut Value| {
        // The order in the folder differs from run to run.
        if let Some(one) = text.as_str() {
            let mut lines: Vec<&str> = one.lines().collect();
            lines.sort_unstable();
            *text = json!(lines);
        }
    };
    match (call[0], &mut answer) {
        (_, Value::Object(entries)) if entries.contains_key("failed") => {}
        ("file.grep", Value::Object(entries)) => {
            entries.remove("pid");
            for (_, text) in entries.iter_mut().filter(|(key, _)| key.starts_with("std")) {
                lines(text);
            }
        }
        ("cmd.run_all", Value::Object(entries)) => {
            assert!(entries.remove("pid").is_some_and(|pid| pid.as_u64() > Some(0)), "{call:?}: no pid");
        }
        // Reading the files changes it.
        ("file.stats" | "file.lstat", Value::Object(entries)) => {
            entries.retain(|key, _| !key.ends_with("atime"));
            // 3006 shows a link's final target, whatever `follow_symlinks` says.
            if line() == 3006 && call.contains(&"follow_symlinks=False") {
                entries.remove("target");
            }
        }
        // Usage changes all the time.
        ("disk.usage" | "disk.inodeusage", Value::Object(mounts)) => {
            for row in mounts.values_mut().filter_map(Value::as_object_mut) {
                for (_, number) in row.iter_mut().filter(|(key, _)| !matches!(key.as_str(), "filesystem" | "1K-blocks"))
                {
                    assert!(number.is_string(), "{call:?}: {number}");
                    *number = Value::Null;
                }
            }
        }
        ("disk.percent", Value::Object(mounts)) => mounts.values_mut().for_each(|used| *used = json!(used.is_string())),
        ("file.readdir", Value::Array(names)) => names.sort_by_key(Value::to_string),
        _ => {}
    }
    answer
}

fn local(output: &Output) -> Value {
    let answer = serde_json::from_str::<Value>(&output.stdout).map_or(Value::Null, |answer| answer["local"].clone());
    let failed = output.stderr.trim().split_once("Error running '").and_then(|(_, error)| error.split_once("': "));
    failed.map_or(answer, |(_, text)| json!({"failed": text}))
}

/// Files of one master, fetched by both kinds of minion.
#[test]
fn files_of_the_master_are_fetched_as_salt_does() {
    let master = Master::start("timeout: 30\nfile_recv: True");
    for (path, content) in [
        ("a/b.txt", "hi\n"),
        ("a/c/d", "x"),
        ("a/c/e.py", ""),
        ("ab", "not below a"),
        ("web/init.sls", ""),
        ("web/tls.sls", ""),
        ("top.sls", ""),
    ] {
        master.serve(path, content.as_bytes());
    }
    let _python = master.minion_kind(Kind::Python, "python", "");
    let tree = tree();
    set_mode(tree.path(), 0o777);
    let path = tree.path().display().to_string();
    let grants = format!("sandbox: {{modules: {{cp: {{files: any, filesystem: {{{path}: rw}}}}}}}}");
    let _brine = master.minion_kind(Kind::Brine, "brine", &grants);
    for call in CP_CALLS {
        // Each kind writes into its own folder.
        let answer = |kind: &str| {
            let words = call.iter().map(|word| word.replace("TREE", &path).replace("OUT", &format!("{path}/{kind}")));
            let words: Vec<String> = words.collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let text = master.json(kind, &words).to_string().replace(&format!("{path}/{kind}"), "OUT");
            serde_json::from_str::<Value>(&text).expect("JSON still")
        };
        assert_eq!(answer("brine"), answer("python"), "{call:?}");
    }
    for relative in ["one/b.txt", "dir/a/b.txt", "dir/a/c/d", "dir/a/c/e.py"] {
        let content = |kind: &str| std::fs::read(tree.path().join(kind).join(relative)).expect("fetched");
        assert_eq!(content("brine"), content("python"), "{relative}");
    }
    let pushed = |kind: &str| master.path(&format!("cache/minions/{kind}/files/some/name"));
    for kind in ["brine", "python"] {
        assert_eq!(std::fs::read(pushed(kind)).expect("pushed"), b"alpha\nbeta foo\nGamma Foo\n", "{kind}");
    }
}

/// Calls of `cp`. TREE is a folder of files, OUT one to write to.
const CP_CALLS: &[&[&str]] = &[
    &["cp.list_master"],
    &["cp.list_master", "prefix=a/c"],
    &["cp.list_master_dirs"],
    &["cp.list_states"],
    &["cp.list_states", "saltenv=none"],
    &["cp.envs"],
    &["cp.hash_file", "salt://a/b.txt"],
    &["cp.hash_file", "salt://nothing"],
    &["cp.hash_file", "TREE/a.txt"],
    &["cp.stat_file", "TREE/a.txt"],
    &["cp.get_file_str", "salt://a/b.txt"],
    &["cp.get_file_str", "salt://nothing"],
    &["cp.get_file", "salt://nothing", "OUT/x"],
    &["cp.get_file", "salt://a/b.txt", "OUT/none/x"],
    &["cp.get_file", "salt://a/b.txt", "OUT/one/", "makedirs=True"],
    &["cp.get_file", "salt://a/b.txt", "OUT/one/b.txt"],
    &["cp.get_file", "salt://a/b.txt", "OUT/one"],
    &["cp.get_file", "salt://a/c/e.py?saltenv=base", "OUT/one/e", "saltenv=none"],
    &["cp.get_dir", "salt://a", "OUT/dir"],
    &["cp.get_dir", "salt://a/c/", "OUT/dir2"],
    &["cp.get_url", "salt://a/b.txt", "OUT/one/url"],
    &["cp.get_url", "salt://a/b.txt", "None"],
    &["cp.cache_file", "salt://nothing"],
    &["cp.cache_file", "/etc/hosts"],
    &["cp.push", "relative"],
    &["cp.push", "TREE/nothing"],
    &["cp.push", "TREE/a.txt", "upload_path=/some/name"],
];
