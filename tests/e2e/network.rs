//! The module `network`: addresses in the mine and in templates, and what only the owner opens.

use std::net::TcpListener;

use brine_tests::salt::{Kind, Master};
use serde_json::json;

const STATE: &str = "\
{% set all = salt['mine.get']('*', 'network.ip_addrs') %}
{% set own = salt['network.ip_addrs']('lo', include_loopback=True) %}
addresses:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: '{{ all | dictsort | tojson }} {{ own | join }} {{ salt.network.calc_net(own[0], \"255.0.0.0\") }}'
";

/// What a formula does to know its other hosts: each minion's mine has its addresses.
#[test]
fn addresses_go_by_the_mine_to_templates() {
    let master = Master::start("");
    let mine = "mine_functions: {network.ip_addrs: {interface: lo, include_loopback: True}}";
    let _first = master.minion_kind(Kind::Brine, "m1", mine);
    let _second = master.minion_kind(Kind::Brine, "m2", "mine_functions: {network.ip_addrs: []}");
    for id in ["m1", "m2"] {
        assert_eq!(master.json(id, &["mine.update"]), json!(true));
    }
    let own = master.json("m2", &["network.ip_addrs"]);
    let all = json!({"m1": ["127.0.0.1"], "m2": own});
    assert_eq!(master.json("m2", &["mine.get", "*", "network.ip_addrs"]), all);
    master.serve("addresses.sls", STATE.as_bytes());
    let answer = master.json("m2", &["state.apply", "addresses"]);
    let state = &answer["test_|-addresses_|-addresses_|-configurable_test_state"];
    let list = json!([["m1", ["127.0.0.1"]], ["m2", own]]);
    let said = state["comment"].as_str().unwrap_or_default();
    let (listed, rest) = said.split_once("]]] ").unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&format!("{listed}]]]")).ok(), Some(list), "{said}");
    assert_eq!(rest, "127.0.0.1 127.0.0.0/8");
}

#[test]
fn only_the_owner_opens_connections_and_programs() {
    let master = Master::start("");
    let _plain = master.minion_kind(Kind::Brine, "plain", "");
    let _open = master.minion_kind(Kind::Brine, "open", "sandbox: {profiles: [observe]}");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a bound port").port().to_string();
    assert!(master.json("plain", &["network.interfaces"])["lo"]["up"].is_boolean());
    assert!(master.json("plain", &["network.routes"]).is_array() && master.json("plain", &["network.arp"]).is_object());
    for (call, line) in [
        (&["network.active_tcp"][..], "network: {kernel: [interfaces, net/arp, net/ipv6_route, net/route, net/tcp]}"),
        (&["network.netstat"], "network: {kernel: [interfaces, net/arp, net/ipv6_route, net/route, net/tcp]}"),
        (&["network.ping", "127.0.0.1"], "network: {process: [/"),
        (&["network.get_route", "127.0.0.1"], "network: {process: [/"),
        (&["network.mod_hostname", "other"], "network: {process: [/"),
        (&["network.connect", "127.0.0.1", &port], "network: {network: [\"127.0.0.1:"),
    ] {
        let output = master.salt(&[&["plain"], call].concat());
        assert!(output.stdout.contains("refused") && output.stdout.contains(line), "{call:?}: {output:?}");
    }
    // Who looks sees connections, and reaches nobody.
    let sockets = master.json("open", &["network.netstat"]);
    let local = format!("127.0.0.1:{port}");
    let own = sockets.as_array().and_then(|all| all.iter().find(|socket| socket["local-address"] == local.as_str()));
    let own = own.unwrap_or_else(|| panic!("{sockets}"));
    assert_eq!((&own["proto"], &own["state"], &own["program"]), (&json!("tcp"), &json!("LISTEN"), &json!("-")));
    assert!(master.json("open", &["network.active_tcp"])["0"]["remote_port"].is_u64());
    for call in [&["network.ping", "127.0.0.1"][..], &["network.connect", "127.0.0.1", &port]] {
        let output = master.salt(&[&["open"], call].concat());
        assert!(output.stdout.contains("refused"), "{call:?}: {output:?}");
    }
}
