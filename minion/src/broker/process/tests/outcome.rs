//! The input and output of a program: arguments, stdin, stdout, stderr, and its end.

use super::*;

#[tokio::test]
async fn what_ended_how_and_said_what() {
    let done = run(sh("echo out; echo err >&2; exit 3")).await;
    assert_eq!((stdout(&done).as_str(), bytes(&done, "stderr")), ("out\n", &b"err\n"[..]));
    assert_eq!((number(&done, "code"), number(&done, "signal")), (Some(3), None));
    assert_eq!(done.get("timed_out"), Some(&Value::from(false)));
    assert!(number(&done, "pid").unwrap() > 1);
    let killed = run(sh("kill -9 $$")).await;
    assert_eq!((number(&killed, "code"), number(&killed, "signal")), (None, Some(9)));
    let merged = run(ProcessRun { merge_stderr: true, ..sh("echo 1; echo 2 >&2; echo 3; echo 4 >&2") }).await;
    assert_eq!((stdout(&merged).as_str(), bytes(&merged, "stderr")), ("1\n2\n3\n4\n", &b""[..]));
    let raw = run(argv(&["/usr/bin/printf", "\\377\\0a"])).await;
    assert_eq!(bytes(&raw, "stdout"), b"\xff\0a");
}

/// Arguments are passed to the program unchanged.
#[tokio::test]
async fn arguments_are_not_interpreted() {
    let args = ["$HOME", "a b", "; echo x", "`id`", "*", "", "-n", "\"", "\n", "é"];
    let mut asked = argv(&["/usr/bin/printf", "<%s>"]);
    asked.argv.extend(args.iter().map(ToString::to_string));
    let expected: String = args.iter().map(|arg| format!("<{arg}>")).collect();
    assert_eq!(stdout(&run(asked).await), expected);
    // The program sees its name as it was asked for.
    for sh in ["sh", "/bin/sh"] {
        assert_eq!(
            stdout(&run(argv(&[sh, "-c", "tr '\\0' ' ' < /proc/$$/cmdline"])).await),
            format!("{sh} -c tr '\\0' ' ' < /proc/$$/cmdline ")
        );
    }
}

#[tokio::test]
async fn input_is_read_and_may_be_left() {
    let input = vec![b'x'; 3 << 20];
    let with = |asked, input: &[u8]| ProcessRun { stdin: Some(input.to_vec().into()), ..asked };
    let counted = run(with(argv(&["wc", "-c"]), &input)).await;
    assert_eq!(stdout(&counted).trim(), (3 << 20).to_string());
    let echoed = ProcessRun { max_output: Some(4 << 20), ..with(argv(&["cat"]), &input) };
    assert_eq!(bytes(&run(echoed).await, "stdout"), input);
    assert_eq!(number(&run(with(argv(&["true"]), &input)).await, "code"), Some(0));
    assert_eq!(stdout(&run(with(argv(&["cat"]), b"")).await), "");
    assert_eq!(stdout(&run(argv(&["cat"])).await), "");
}

#[tokio::test]
async fn outputs_have_a_cap_and_the_rest_is_counted() {
    let asked = ProcessRun { max_output: Some(4), ..sh("printf 123456; printf abcdefgh >&2") };
    let done = run(asked).await;
    assert_eq!((bytes(&done, "stdout"), number(&done, "stdout_dropped")), (&b"1234"[..], Some(2)));
    assert_eq!((bytes(&done, "stderr"), number(&done, "stderr_dropped")), (&b"abcd"[..], Some(4)));
    let size = 5 << 20;
    let many = format!("head -c {size} /dev/zero");
    let done = run(sh(&many)).await;
    assert_eq!(bytes(&done, "stdout").len() as u64, super::super::request::OUTPUT);
    assert_eq!(number(&done, "stdout_dropped"), Some(size - super::super::request::OUTPUT as i64));
    let done = run(ProcessRun { max_output: Some(u64::MAX), ..sh(&many) }).await;
    assert_eq!(bytes(&done, "stdout").len(), 4 << 20);
    assert_eq!(number(&done, "stdout_dropped"), Some(1 << 20));
    let none = run(ProcessRun { max_output: Some(0), ..sh("echo x") }).await;
    assert_eq!((bytes(&none, "stdout"), number(&none, "stdout_dropped")), (&b""[..], Some(2)));
}

#[tokio::test]
async fn a_flood_takes_no_memory() {
    let size: i64 = 1 << 30;
    let before = resident();
    let done = run(argv(&["head", "-c", &size.to_string(), "/dev/zero"])).await;
    assert_eq!(number(&done, "stdout_dropped"), Some(size - super::super::request::OUTPUT as i64));
    let grown = resident().saturating_sub(before);
    // The resources of parallel tests.
    assert!(grown < 256 << 20, "{grown} bytes more");
}

fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}
