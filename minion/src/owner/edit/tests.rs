//! Changed texts, by example.

use super::*;
use brine_protocol::config::yaml;

fn path(text: &str) -> Vec<String> {
    text.split('/').map(str::to_owned).collect()
}

const FILE: &str = "\
# the host's minion
master: m.example   # where

sandbox:
  # what we let in
  limits: {memory: 64MiB}
  modules:
    # for the load
    cmd:
      process:   # only this
        - /usr/bin/uptime
    \"disk\": {grains: true}

  # after all
user: root
";

#[test]
fn an_entry_is_set_and_all_other_lines_stay() {
    let value = yaml::load("{process: [/a]}").unwrap();
    for (at, expect) in [
        ("sandbox/modules/disk", FILE.replace("\"disk\": {grains: true}", "disk: {process: [/a]}")),
        (
            "sandbox/modules/cmd",
            FILE.replace(
                "    cmd:\n      process:   # only this\n        - /usr/bin/uptime\n",
                "      # only this\n    cmd: {process: [/a]}\n",
            ),
        ),
        ("sandbox/modules/new", FILE.replace("{grains: true}\n", "{grains: true}\n    new: {process: [/a]}\n")),
        (
            "sandbox/masters/aa:bb/modules/cmd",
            FILE.replace(
                "{grains: true}\n",
                "{grains: true}\n  masters:\n    \"aa:bb\":\n      modules:\n        cmd: {process: [/a]}\n",
            ),
        ),
        ("other/x", format!("{FILE}other:\n  x: {{process: [/a]}}\n")),
    ] {
        assert_eq!(set(FILE, &path(at), &value).as_deref(), Some(expect.as_str()), "{at}");
    }
    assert_eq!(set("", &path("a/b"), &value).as_deref(), Some("a:\n  b: {process: [/a]}\n"));
    let inner = "a:\n  b:\n    # why\n    c: 1\n";
    assert_eq!(set(inner, &path("a/b"), &value).as_deref(), Some("a:\n    # why\n  b: {process: [/a]}\n"));
}

#[test]
fn an_entry_is_removed_with_maps_that_would_be_empty() {
    for (at, expect) in [
        ("sandbox/modules/disk", FILE.replace("    \"disk\": {grains: true}\n", "")),
        ("user", FILE.replace("user: root\n", "")),
    ] {
        assert_eq!(remove(FILE, &path(at)).as_deref(), Some(expect.as_str()), "{at}");
    }
    assert_eq!(remove("x: 1\na:\n  b:\n    # why\n    c: 1\n", &path("a/b/c")).as_deref(), Some("x: 1\n    # why\n"));
    // Comments of the lines around it stay, and the one on its own line goes with it.
    assert_eq!(
        remove("x: 1\na:   # all\n  # of b\n  b: # more\n    c: 1   # this\n", &path("a/b/c")).as_deref(),
        Some("x: 1\n# all\n  # of b\n  # more\n")
    );
    assert_eq!(remove(FILE, &path("sandbox/nothing")), None);
}

/// Changes the value at a path, and checks that it is read as what was meant.
fn changed(text: &str, at: &str, new: &str) -> String {
    let (old, new) = (yaml::load(text).unwrap(), yaml::load(new).unwrap());
    let path = path(at);
    let text = change(text, &path, crate::owner::value::at(&old, &path), &new).unwrap();
    let mut expect = old;
    crate::owner::value::put(&mut expect, &path, Some(new)).unwrap();
    assert!(crate::owner::value::same(&yaml::load(&text).unwrap(), &expect), "{text}");
    text
}

#[test]
fn as_few_lines_as_can_be_are_changed() {
    for (from, new, to) in [
        // A list keeps its style and its comments.
        (
            "a:\n  m:\n    process:   # p\n      - /x   # first\n      # before\n      - /y\n\n    grains: true\n",
            "{process: [/x, /y, /z], grains: true}",
            "a:\n  m:\n    process:   # p\n      - /x   # first\n      # before\n      - /y\n      - /z\n\n    grains: true\n",
        ),
        ("a:\n  m:\n    process:\n    - /x\n    - /y\n", "{process: [/y]}", "a:\n  m:\n    process:\n    - /y\n"),
        ("a:\n  m:\n    process: [/x]   # p\n", "{process: [/x, /y]}", "a:\n  m:\n    process: [/x, /y]   # p\n"),
        (
            "a:\n  m: {process: [\"/x # y\"]}   # it's\n",
            "{process: [\"/x # y\", /y]}",
            "a:\n  m: {process: [\"/x # y\", /y]}   # it's\n",
        ),
        (
            "a:\n  m:\n    # c\n    changes:\n      /etc/x: ro   # look\n",
            "{changes: {/etc/x: rw, /etc/y: ro}, grains: true}",
            "a:\n  m:\n    # c\n    changes:\n      /etc/x: rw   # look\n      /etc/y: ro\n    grains: true\n",
        ),
        ("a:\n  m:\n    grains: true\n    process:\n      - /x\n", "{grains: true}", "a:\n  m:\n    grains: true\n"),
    ] {
        assert_eq!(changed(from, "a/m", new), to);
    }
}

#[test]
fn a_map_in_flow_style_is_not_entered() {
    let value = Value::from(true);
    assert_eq!(set("sandbox: {modules: {}}\n", &path("sandbox/modules/x"), &value), None);
}

/// A line granted in a file, and the file then. None: the file is left as it is.
fn granted(text: &str) -> Option<String> {
    let path = path("sandbox/modules/cmd");
    let Ok(old) = yaml::load(text) else { return Some("it is no YAML".to_owned()) };
    let old = if old.is_nil() { Value::Map(Vec::new()) } else { old };
    let mut new = at(&old, &path).cloned().unwrap_or(Value::Nil);
    crate::owner::value::add(&mut new, &yaml::load("{process: [/b]}").unwrap()).unwrap();
    let mut expect = old.clone();
    crate::owner::value::put(&mut expect, &path, Some(new)).unwrap();
    let edited = edit(text, &path, &old, &expect)?;
    // As who calls it does.
    crate::owner::value::same(&yaml::load(&edited).ok()?, &expect).then_some(edited)
}

/// Files as owners have them, or as somebody who means harm would leave them.
#[test]
fn a_line_is_granted_in_files_of_every_style_or_nothing_is_changed() {
    let long = "x".repeat(100_000);
    let mut wrong = Vec::new();
    for (name, text, expect) in [
        ("nothing", "", Some("sandbox:\n  modules:\n    cmd: {process: [/b]}\n")),
        ("comments alone", "# a\n\n# b\n", Some("sandbox:\n  modules:\n    cmd: {process: [/b]}\n# a\n\n# b\n")),
        ("an empty section", "sandbox:   # s\n", Some("sandbox:   # s\n  modules:\n    cmd: {process: [/b]}\n")),
        (
            "no line end",
            "sandbox:\n  modules:\n    x: {grains: true}",
            Some("sandbox:\n  modules:\n    x: {grains: true}\n    cmd: {process: [/b]}\n"),
        ),
        (
            "the line ends of Windows",
            "# a\r\nsandbox:\r\n  modules:\r\n    cmd: {process: [/a]}  # c\r\nuser: root\r\n",
            Some("# a\r\nsandbox:\r\n  modules:\r\n    cmd: {process: [/a, /b]}   # c\r\nuser: root\r\n"),
        ),
        ("line ends of both kinds", "# a\r\nsandbox:\n  modules: {}\n", None),
        ("the line ends of old Macs", "sandbox:\r  modules:\r    x: {grains: true}\r", None),
        (
            "the mark of UTF-8",
            "\u{feff}sandbox:\n  modules:\n    x: {grains: true}\n",
            Some("\u{feff}sandbox:\n  modules:\n    x: {grains: true}\n    cmd: {process: [/b]}\n"),
        ),
        (
            "a map on one line",
            "sandbox: {modules: {cmd: {process: [/a]}}, learn: true}   # all\nuser: root\n",
            Some("sandbox: {modules: {cmd: {process: [/a, /b]}}, learn: true}   # all\nuser: root\n"),
        ),
        (
            "an empty map on one line",
            "sandbox:\n  modules: {}  # none\n",
            Some("sandbox:\n  modules: {cmd: {process: [/b]}}   # none\n"),
        ),
        (
            "a map on several lines",
            "sandbox:\n  modules: {\n    x: {grains: true},   # x\n    # y\n    cmd: {process: [/a]}}\nuser: root\n",
            Some("sandbox:\n    # x\n    # y\n  modules: {x: {grains: true}, cmd: {process: [/a, /b]}}\nuser: root\n"),
        ),
        (
            "an anchor",
            "sandbox:\n  modules:\n    x: &x {process: [/a]}\n    cmd: *x\n",
            Some("sandbox:\n  modules:\n    x: &x {process: [/a]}\n    cmd: {process: [/a, /b]}\n"),
        ),
        ("an anchor that others name", "sandbox:\n  modules:\n    cmd: &x {process: [/a]}\n    x: *x\n", None),
        ("an anchor of all", "y: &m {x: {grains: true}}\nsandbox:\n  modules: *m\n", None),
        (
            "a map that is merged",
            "x: &x {grains: true}\nsandbox:\n  modules:\n    cmd:\n      <<: *x\n      process: [/a]\n",
            Some("x: &x {grains: true}\nsandbox:\n  modules:\n    cmd:\n      <<: *x\n      process: [/a, /b]\n"),
        ),
        (
            "a tab after the colon",
            "sandbox:\t# s\n  modules:\n    cmd:\t{process: [/a]}\t# c\n",
            Some("sandbox:\t# s\n  modules:\n    cmd: {process: [/a, /b]}   # c\n"),
        ),
        (
            "a blank before the colon",
            "sandbox :\n  modules :\n    \"cmd\" : {process: [/a]}\n",
            Some("sandbox :\n  modules :\n    cmd: {process: [/a, /b]}\n"),
        ),
        ("a key with an escape", "sandbox:\n  modules:\n    \"cm\\x64\": {process: [/a]}\n", None),
        ("a key that is asked for", "sandbox:\n  modules:\n    ? cmd\n    : {process: [/a]}\n", None),
        (
            "a # in a text in quotes",
            "sandbox:\n  modules:\n    cmd: {process: ['/it''s # x', \"/y # z\"]}   # c\n",
            Some("sandbox:\n  modules:\n    cmd: {process: [\"/it's # x\", \"/y # z\", /b]}   # c\n"),
        ),
        (
            "a document's begin and end",
            "%YAML 1.1\n---   # d\nsandbox:\n  modules:\n    x: {grains: true}\n...\n# e\n",
            Some(
                "%YAML 1.1\n---   # d\nsandbox:\n  modules:\n    x: {grains: true}\n    cmd: {process: [/b]}\n...\n# e\n",
            ),
        ),
        (
            "a text that looks like the section",
            "motd: |\n  sandbox:\n    modules:\n      cmd: {}\n  # no comment\nsandbox:\n  modules:\n    x: {grains: true}\n",
            Some(
                "motd: |\n  sandbox:\n    modules:\n      cmd: {}\n  # no comment\nsandbox:\n  modules:\n    x: {grains: true}\n    cmd: {process: [/b]}\n",
            ),
        ),
        (
            "a text at the end",
            "sandbox:\n  modules:\n    x: {grains: true}\nmotd: |\n  a\n\n  # no comment\n",
            Some(
                "sandbox:\n  modules:\n    x: {grains: true}\n    cmd: {process: [/b]}\nmotd: |\n  a\n\n  # no comment\n",
            ),
        ),
        (
            "items in the column of their key",
            "sandbox:\n  modules:\n    cmd:\n      process:\n      - /a   # a\n      # last\n    # after\n  learn: true\n",
            Some(
                "sandbox:\n  modules:\n    cmd:\n      process:\n      - /a   # a\n      - /b\n      # last\n    # after\n  learn: true\n",
            ),
        ),
        (
            "an item on the next line",
            "sandbox:\n  modules:\n    cmd:\n      process:\n      -\n        /a\n",
            Some("sandbox:\n  modules:\n    cmd:\n      process: [/a, /b]\n"),
        ),
        (
            "comments in all places",
            "# 1\nsandbox: # 2\n# 3\n  # 4\n  modules: # 5\n      # 6\n      cmd: # 7\n         # 8\n         grains: true # 9\n  # 10\n# 11\n",
            Some(
                "# 1\nsandbox: # 2\n# 3\n  # 4\n  modules: # 5\n      # 6\n      cmd: # 7\n         # 8\n         grains: true # 9\n         process: [/b]\n  # 10\n# 11\n",
            ),
        ),
    ] {
        let edited = granted(text);
        if edited.as_deref() != expect {
            wrong.push(format!("{name}: {edited:?}"));
        }
        for comment in text.split(['\r', '\n']).filter_map(|line| line.rsplit_once(" # ")) {
            if edited.as_ref().is_some_and(|edited| !edited.contains(comment.1)) {
                wrong.push(format!("{name} loses {comment:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let text = format!("sandbox:\n  # {long}\n  modules:\n    x: {{process: [/{long}]}}\n");
    assert_eq!(granted(&text), Some(format!("{text}    cmd: {{process: [/b]}}\n")));
}

/// What was granted is taken back, and the file is what it was.
#[test]
fn what_is_taken_back_leaves_the_file_as_it_was() {
    for text in [
        "sandbox:\n  modules:\n    x: {grains: true}   # x\n",
        "a: 1\r\nsandbox:\r\n  # s\r\n  modules:\r\n    x: {grains: true}\r\n",
        "sandbox: {modules: {x: {grains: true}}}   # s\n",
        "\u{feff}sandbox:\n  modules: {x: {grains: true}}   # s\n",
        "---\nuser: root\nsandbox:\n  modules:\n    # no cmd\n    x: {grains: true}\n...\n",
    ] {
        let (old, with, path) = (yaml::load(text).unwrap(), granted(text).unwrap(), path("sandbox/modules/cmd"));
        assert_eq!(edit(&with, &path, &yaml::load(&with).unwrap(), &old).as_deref(), Some(text));
    }
}
