//! The module `network` returns the same as Salt's on the same host, and its functions that only compute too.

use std::net::TcpListener;

use super::standard_modules::compare_same;

const CALLS: &[&[&str]] = &[
    &["network.interfaces"],
    &["network.interface", "lo"],
    &["network.interface", "eth99"],
    &["network.interface_ip", "lo"],
    &["network.interface_ip", "eth99"],
    &["network.hw_addr", "lo"],
    &["network.hwaddr", "lo"],
    &["network.ip_addrs"],
    &["network.ip_addrs", "include_loopback=True"],
    &["network.ip_addrs", "lo", "True"],
    &["network.ip_addrs", "[l?, eth*]", "include_loopback=True"],
    &["network.ip_addrs", "interface=l*,nothing", "include_loopback=True"],
    &["network.ip_addrs", "include_loopback=True", "cidr=127.0.0.0/8"],
    &["network.ip_addrs", "cidr=127.0.0.0/8"],
    &["network.ip_addrs", "cidr=127.0.0.1/8"],
    &["network.ip_addrs", "include_loopback=True", "type=public"],
    &["network.ip_addrs", "include_loopback=True", "type=private"],
    &["network.ipaddrs", "nothing"],
    &["network.ip_addrs6"],
    &["network.ip_addrs6", "include_loopback=True"],
    &["network.ipaddrs6", "lo", "include_loopback=True", "cidr=::1/128"],
    &["network.subnets"],
    &["network.subnets", "interfaces=lo"],
    &["network.subnets", "[lo, eth0]"],
    &["network.subnets6"],
    &["network.ip_networks"],
    &["network.ip_networks", "lo", "include_loopback=True"],
    &["network.ip_networks", "include_loopback=True", "verbose=True"],
    &["network.ip_networks6", "include_loopback=True"],
    &["network.in_subnet", "0.0.0.0/0"],
    &["network.in_subnet", "127.0.0.0/8"],
    &["network.in_subnet", "nonsense"],
    &["network.ifacestartswith", "127.0"],
    &["network.ifacestartswith", "9999"],
    &["network.ip_in_subnet", "172.17.0.4", "172.16.0.0/12"],
    &["network.ip_in_subnet", "172.17.0.4", "172.16.0.1/12"],
    &["network.ip_in_subnet", "nonsense", "172.16.0.0/12"],
    &["network.convert_cidr", "172.31.0.9/16"],
    &["network.convert_cidr", "nonsense"],
    &["network.calc_net", "172.17.0.5", "255.255.255.240"],
    &["network.calc_net", "2a02:f6e:a000:80:84d8:8332:7866:4e07/64"],
    &["network.is_private", "10.0.0.3"],
    &["network.is_private", "nonsense"],
    &["network.is_loopback", "127.0.0.1"],
    &["network.reverse_ip", "172.17.0.4"],
    &["network.iphexval", "10.0.0.1"],
    &["network.get_hostname"],
    &["network.routes", "inet"],
    &["network.routes", "nonsense"],
    &["network.default_route"],
    &["network.default_route", "inet"],
    &["network.default_route", "inet6"],
    &["network.get_bufsize", "lo"],
    &["network.connect", "host="],
    &["network.connect", "127.0.0.1"],
    &["network.connect", "127.0.0.1", "PORT"],
    &["network.connect", "127.0.0.1", "1", "timeout=2"],
    &["network.get_route", "127.0.0.1"],
];

#[test]
fn networks_answer_as_salts() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a bound port").port().to_string();
    let calls: Vec<Vec<&str>> = CALLS
        .iter()
        .map(|call| call.iter().map(|word| if *word == "PORT" { port.as_str() } else { word }).collect())
        .collect();
    let calls: Vec<&[&str]> = calls.iter().map(Vec::as_slice).collect();
    let grants = "{process: {lines: []}, network: ['127.0.0.1:*']}";
    compare_same(&calls, &format!("file_client: local\nlog_level: quiet\nsandbox: {{modules: {{network: {grants}}}}}"));
}
