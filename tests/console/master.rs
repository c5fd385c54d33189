//! The main path with a real master, a minion and salt-api: log in, the fleet, a plan, a job, its return, a restart.

use std::net::TcpStream;

use brine_kit::ports::free_ports;
use brine_kit::process::Daemon;
use brine_kit::programs::program;
use brine_kit::wait::wait_for;
use brine_tests::salt::Master;
use serde_json::json;

use crate::browser::{Browser, Look, needed};

const PASSWORD: &str = "right-horse-battery";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_from_log_in_to_return() {
    if needed().is_none() {
        return;
    }
    let [port] = free_ports();
    let mut master = Master::start(&format!(
        "external_auth: {{sharedsecret: {{admin: ['.*', '@runner', '@wheel', '@events'], joe: [test.ping]}}}}\nsharedsecret: {PASSWORD}\n\
         netapi_enable_clients: [local_async, wheel]\napi_logfile: api.log\napi_pidfile: api.pid\n\
         rest_cherrypy: {{host: 127.0.0.1, port: {port}, disable_ssl: True}}"
    ));
    let _minion = master.minion("m1");
    let _api = Daemon::start(&program("salt-api"), &["-c", &master.conf()], &master.path("api.out"));
    wait_for("salt-api to listen", || TcpStream::connect(("127.0.0.1", port)).ok().map(drop));
    let browser = Browser::start(Look::Light).await;
    let watch = json!({"source": "document.addEventListener('securitypolicyviolation', (event) => { (window.reports ??= []).push(event.violatedDirective); });"});
    browser.cdp("Page.addScriptToEvaluateOnNewDocument", watch).await;

    browser.page.goto(&format!("http://127.0.0.1:{port}/")).await.expect("the page");
    log_in(&browser, "admin").await;
    browser.shows("m1").await;
    browser.eval("location.hash = '#/events'").await;
    browser.shows("None were lost").await;
    // Of a job that another page starts, the events come here.
    browser.eval("location.hash = '#/run?tgt=*&fun=test.ping'").await;
    browser.shows("Run on 1 minion").await;
    browser.eval("document.querySelector('button.main').click()").await;
    browser.until("location.hash.startsWith('#/jobs/2')").await;
    browser.until("document.querySelector('.progress .big').textContent.includes('1 of 1')").await;
    browser.shows("Host calls").await;
    browser.until("document.querySelector('.output').textContent === 'true'").await;
    browser.eval("location.hash = '#/jobs'").await;
    browser.shows("test.ping").await;
    browser.eval("location.hash = '#/fleet/m1'").await;
    browser.shows("Grains").await;
    for page in ["modules", "held", "keys"] {
        browser.eval(&format!("location.hash = '#/{page}'")).await;
        browser.until("document.activeElement.matches('h1')").await;
        browser.until("!document.querySelector('.notice.failed')").await;
    }
    browser.shows("accepted").await;

    // The master restarts: the same page goes on, with events.
    browser.eval("window.same = true; location.hash = '#/events'").await;
    master.stop();
    browser.shows("The master is away").await;
    master.up();
    browser.until("!document.querySelector('.away.is')").await;
    browser.eval("location.hash = '#/fleet'").await;
    browser.until("document.body.innerText.includes('connected') && window.same").await;

    // Who may do less is offered less.
    browser.eval("document.querySelector('.who button').click()").await;
    browser.until("document.activeElement.id === 'login-name'").await;
    log_in(&browser, "joe").await;
    browser.shows("Fleet").await;
    assert_eq!(browser.eval("return document.querySelector('nav').innerText.includes('Keys')").await, json!(false));
    browser.eval("location.hash = '#/run?tgt=*&fun=cmd.run'").await;
    browser.shows("Your permissions do not allow this call").await;
    assert_eq!(browser.eval("return window.reports ?? []").await, json!([]));
    browser.page.close().await.expect("the browser ends");
}

async fn log_in(browser: &Browser, user: &str) {
    browser.until("document.activeElement.id === 'login-name'").await;
    browser.types(user).await;
    browser.keys(&["Tab"]).await;
    browser.types(PASSWORD).await;
    let choose = "const kind = document.getElementById('login-kind'); kind.value = 'sharedsecret'; kind.dispatchEvent(new Event('change', {bubbles: true}))";
    browser.eval(choose).await;
    browser.keys(&["Enter"]).await;
    browser.until("document.querySelector('nav')").await;
}
