//! Refusals about URLs and HTTP requests.

use super::*;

#[test]
fn urls_come_out_in_one_form() {
    let who = caller(&policy(ANY), "mine", "f", None);
    let plain = |url: &str| match check(&who, get(url)) {
        Ok(HostOp::Http(HttpOp::Request(request))) => Ok(request.url),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    };
    for (url, expect) in [
        ("https://a.example", "https://a.example/"),
        ("HTTPS://A.Example.:443/x?y#z", "https://a.example/x?y"),
        ("http://a.example?x=1", "http://a.example/?x=1"),
        ("http://a.example:8080/%2e%2e/x", "http://a.example:8080/%2e%2e/x"),
        ("http://[::ffff:10.0.0.1]/", "http://10.0.0.1/"),
        ("http://[0:0::1]:80/", "http://[::1]/"),
        ("https://a.example/@b", "https://a.example/@b"),
        ("https://a.example/?u=http://b", "https://a.example/?u=http://b"),
    ] {
        assert_eq!(plain(url).as_deref(), Ok(expect), "{url}");
    }
    let scheme = "does not begin with http:// or https://";
    let odd = "has characters that a URL cannot have; write them as %XX";
    let host = "names no host, or an address in another form than a.b.c.d";
    for (url, why) in [
        ("file:///etc/passwd", scheme),
        ("ftp://a.example/", scheme),
        ("//a.example/", scheme),
        ("a.example", scheme),
        ("http:a.example", scheme),
        ("http://a.example/ x", odd),
        ("http://a.example\\@b.example/", odd),
        ("http://a.example/\r\nHost: b", odd),
        ("http://\u{430}.example/", odd),
        ("http://user@a.example/", "has a user in it; write an Authorization header"),
        ("http://user:pw@a.example/", "has a user in it; write an Authorization header"),
        ("http://a.example@b.example/", "has a user in it; write an Authorization header"),
        ("http:///x", host),
        ("http://127.1/", host),
        ("http://0x7f000001/", host),
        ("http://2130706433/", host),
        ("http://0177.0.0.1/", host),
        ("http://a%2eexample/", host),
        ("http://[::1%25lo]/", host),
        ("http://[10.0.0.1]/", host),
        ("http://::1/", "has an address without brackets"),
        ("http://a.example:0/", "has a port that is none"),
        ("http://a.example:/", "has a port that is none"),
        ("http://a.example:65536/", "has a port that is none"),
        ("http://a.example:+80/", "has a port that is none"),
    ] {
        assert_eq!(plain(url), Err(format!("the URL {why}")), "{url}");
    }
}

#[test]
fn requests_have_a_form() {
    let request = |change: &dyn Fn(&mut HttpRequest)| {
        let mut request =
            HttpRequest { method: "GET".into(), url: "http://a.example/".into(), ..HttpRequest::default() };
        change(&mut request);
        http(request)
    };
    for method in ["", "GE T", "GET\r\n", "CONNECT", "connect"] {
        never(
            request(&|request| request.method = method.into()),
            "the method is not one as GET, and CONNECT is not taken",
        );
    }
    let header = |name: &'static str, value: &'static str| {
        request(&move |request| request.headers = vec![(name.into(), value.into())])
    };
    never(header("a b", ""), "the name of a header is not one");
    never(header("", ""), "the name of a header is not one");
    never(header("Host", "b.example"), "the header Host is the host's to write");
    never(header("content-length", "0"), "the header content-length is the host's to write");
    never(header("Transfer-Encoding", "chunked"), "the header Transfer-Encoding is the host's to write");
    never(header("X", "a\r\nHost: b"), "the header X has control characters");
    never(
        request(&|request| request.headers = vec![("X".into(), String::new()); 101]),
        "the request has 101 headers; the most is 100",
    );
    never(
        request(&|request| request.headers = vec![("X".into(), "x".repeat(64 << 10))]),
        "the headers: 65541 bytes; the most is 65536",
    );
    let all = caller(&policy(ANY), "mine", "f", None);
    let op = request(&|request| request.max_redirects = 1_000);
    assert!(matches!(check(&all, op), Ok(HostOp::Http(HttpOp::Request(request))) if request.max_redirects == 20));
}

#[test]
fn redirects_are_checked_as_requests_are() {
    let who = caller(&policy("modules:\n  mine: {network: [\"a.example:443\"]}\n"), "mine", "f", None);
    let owner = Lines::default();
    assert!(check_host(&owner, &who, "A.example.", 443).is_ok());
    assert!(owner.0.lock().unwrap().is_empty());
    let error = check_host(&owner, &who, "169.254.169.254", 80).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "module mine may not reach 169.254.169.254:80{GRANTS_IT}mine: {{network: [\"169.254.169.254:80\", \"a.example:443\"]}}"
        )
    );
    let line = "mine: {network: [\"169.254.169.254:80\"]}".to_owned();
    assert_eq!(owner.0.into_inner().unwrap(), [("reach 169.254.169.254:80".to_owned(), Some(line))]);
}
