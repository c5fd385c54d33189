//! What salt-api says of its own paths.

use crate::api::Api;

/// `/openapi.json` has every path of the router with its methods, and no other.
#[test]
fn the_description_has_every_path() {
    let api = Api::start();
    let described = api.send("GET", "/openapi.json", &[], "");
    assert_eq!((described.status, described.header("content-type")), (200, Some("application/json")));
    let described = described.json();
    assert_eq!(described["openapi"].as_str().map(|version| &version[..2]), Some("3."));
    let all = [
        "/",
        "/login",
        "/logout",
        "/run",
        "/token",
        "/minions",
        "/minions/{id}",
        "/jobs",
        "/jobs/{jid}",
        "/keys",
        "/keys/{id}",
        "/stats",
        "/events",
        "/ws",
        "/hook",
        "/hook/{tag}",
        "/v1/fleet/{id}",
        "/v1/plan",
        "/openapi.json",
    ];
    for path in all {
        assert!(described["paths"].get(path).is_some(), "{path} is not described");
    }
    for (path, operations) in described["paths"].as_object().expect("a map") {
        let methods: Vec<&str> =
            ["GET", "POST"].into_iter().filter(|method| operations.get(method.to_lowercase()).is_some()).collect();
        // A method that no path has is told which ones this path has.
        let real = path.replace("{id}", "m1").replace("{tag}", "x").replace("{jid}", "20200101000000000000");
        let refused = api.send("DELETE", &real, &[], "");
        assert_eq!(refused.status, 405, "{path}: {refused:?}");
        let allowed = refused.header("allow").expect("the methods").split(',').map(str::trim);
        let mut allowed: Vec<&str> = allowed.filter(|method| *method != "HEAD").collect();
        allowed.sort_unstable();
        assert_eq!(allowed, methods, "{path}");
        for method in methods {
            let operation = &operations[method.to_lowercase()];
            // What needs a token is 401 without one, and nothing else is.
            if !operation["security"].is_null() {
                assert_eq!(
                    api.send(method, &real, &[("Content-Type", "application/json")], "{}").status,
                    401,
                    "{method} {path}"
                );
            } else if method == "GET" {
                assert_eq!(
                    api.send(method, &real, &[("Content-Type", "application/json")], "{}").status,
                    200,
                    "{method} {path}"
                );
            }
        }
    }
}
