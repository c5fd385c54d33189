//! What an operator types wrong, and what the commands then say.

use brine_tests::process::{program, run};
use brine_tests::salt::{Kind, Master};

#[test]
fn wrong_calls_get_one_line_with_the_right_signature() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    for (call, expected) in [
        (&["test.pingg"][..], "'test.pingg' is not available."),
        (&["nomodule.ping"], "'nomodule.ping' is not available."),
        (&["test.fib", "many"], "Passed invalid arguments to test.fib"),
        (&["test.fib"], "Passed invalid arguments to test.fib"),
        (&["test.fib", "1", "2"], "Passed invalid arguments to test.fib"),
        (&["test.fib", "nom=1"], "Passed invalid arguments to test.fib"),
        (&["test.fib", "-1"], "Passed invalid arguments to test.fib"),
    ] {
        let mut args = vec!["--out=json", "--static", "*"];
        args.extend(call);
        let output = master.salt(&args).exits(1);
        let text = output.json()["web1"].as_str().expect("an error text").to_owned();
        assert!(text.starts_with(expected), "{call:?}: {text}");
        assert!(!text.contains('\n'), "one line: {text}");
        if expected.starts_with("Passed") {
            assert!(text.contains("test.fib(num: u32)"), "the signature: {text}");
        }
        assert!(output.stderr.contains("ERROR: Minions returned with non-zero exit code"), "{output:?}");
    }
}

#[test]
fn the_retcode_of_a_function_fails_the_command() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    let output = master.salt(&["*", "test.retcode", "7"]).exits(1);
    assert_eq!(output.stdout, "web1:\n    True\n");
    let raised = master.salt(&["*", "test.exception", "the reason"]).exits(1);
    assert!(raised.stdout.contains("the reason"), "{raised:?}");
}

#[test]
fn a_return_that_is_too_large_for_the_event_bus_is_printed_whole() {
    let master = Master::start("max_event_size: 20000");
    let _minion = master.minion("web1");
    let large = "x".repeat(100_000);
    let output = master.salt(&["--out=json", "--static", "*", "test.echo", &large]).exits(0);
    assert!(output.json()["web1"] == large.as_str(), "{} bytes", output.stdout.len());
    assert_eq!(output.stderr, "");
}

#[test]
fn a_silent_minion_is_named_with_its_job() {
    let master = Master::start("timeout: 1\ngather_job_timeout: 1");
    let quick = master.minion("quick");
    let silent = master.minion("silent");
    silent.running().signal(rustix::process::Signal::STOP);
    let output = master.salt(&["*", "test.ping"]).exits(1);
    assert!(output.stdout.contains("quick:\n    True\n"), "{output:?}");
    assert!(output.stdout.contains("silent:\n    Minion did not return."), "{output:?}");
    assert!(output.stdout.contains("salt-run jobs.lookup_jid "), "{output:?}");
    silent.running().signal(rustix::process::Signal::CONT);
    drop(quick);
}

#[test]
fn a_job_that_takes_longer_than_the_timeout_is_waited_for() {
    let master = Master::start("timeout: 1\ngather_job_timeout: 5");
    let _minion = master.minion("web1");
    let output = master.salt(&["*", "test.sleep", "4"]).exits(0);
    assert_eq!(output.stdout, "web1:\n    True\n");
}

#[test]
fn no_master_no_key_no_configuration_unknown_option() {
    let mut master = Master::start("");
    // Salt exits 0 when authentication fails.
    std::fs::write(master.path("cache/.root_key"), "wrong").expect("our own folder");
    let wrong_key = master.salt(&["*", "test.ping"]).exits(0);
    assert!(
        format!("{}{}", wrong_key.stdout, wrong_key.stderr).contains("Authentication error occurred."),
        "{wrong_key:?}"
    );

    master.stop();
    let down = master.salt(&["*", "test.ping"]);
    assert!(format!("{}{}", down.stdout, down.stderr).to_lowercase().contains("master"), "{down:?}");

    let unknown = run(&program("salt"), &["--no-such-option"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("--no-such-option"), "{unknown:?}");

    std::fs::write(master.path("conf/master"), "interface: [127.0.0.1\n").expect("our own folder");
    let broken = run(&program("salt-master"), &["-c", &master.conf()]);
    assert!(broken.code != 0 && broken.stderr.contains("conf/master"), "{broken:?}");
    assert!(broken.stderr.trim().lines().count() <= 2, "{broken:?}");
}

#[test]
fn a_port_in_use_is_named() {
    let first = Master::start("");
    let mut second = Master::prepare(Kind::Brine, "");
    let conf = second.path("conf/master");
    let text = std::fs::read_to_string(&conf).expect("just written");
    let text = text.replace(&format!("ret_port: {}", second.ret_port), &format!("ret_port: {}", first.ret_port));
    std::fs::write(&conf, text).expect("our own folder");
    let output = run(&program("salt-master"), &["-c", &second.conf()]);
    assert!(output.code != 0, "{output:?}");
    assert!(output.stderr.contains(&first.ret_port.to_string()), "{output:?}");
    second.stop();
}
