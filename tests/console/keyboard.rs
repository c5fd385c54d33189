//! Each page by keyboard alone.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::browser::{Browser, Look, needed};
use crate::{PAGES, open, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keyboard_is_enough() {
    if needed().is_none() {
        return;
    }
    let server = server(50);
    server.state.is_in.store(false, Ordering::SeqCst);
    let browser = Browser::start(Look::Light).await;
    open(&browser, &server, "").await;
    browser.until("document.activeElement.id === 'login-name'").await;
    browser.types("ann").await;
    browser.keys(&["Tab"]).await;
    browser.types("wrong").await;
    browser.keys(&["Enter"]).await;
    browser.shows("did not accept").await;
    browser.until("document.activeElement.id === 'login-password'").await;
    browser.types("right").await;
    browser.keys(&["Enter"]).await;
    browser.shows("web00001").await;
    browser.tab_to(".skip").await;
    browser.keys(&["Enter"]).await;
    browser.until("document.activeElement.id === 'main'").await;
    browser.tab_to(".body .row").await;
    browser.keys(&["ArrowDown", "Enter"]).await;
    browser.until("location.hash === '#/fleet/web00001' && document.activeElement.matches('h1')").await;
    // Opening pages starts nothing; only the button does.
    for page in PAGES {
        open(&browser, &server, page).await;
    }
    assert!(server.state.started.lock().expect("no panic").is_empty());
    open(&browser, &server, "run").await;
    browser.tab_to("#run-tgt").await;
    browser.types("web*").await;
    browser.tab_to("#run-fun").await;
    browser.types("pkgtool.install").await;
    browser.tab_to("#run-args").await;
    browser.types("nginx\nversion=2").await;
    browser.shows("Run on 40 minions").await;
    browser.shows("sandbox: {modules: {pkgtool: {process: {}}}}").await;
    assert!(server.state.started.lock().expect("no panic").is_empty());
    browser.tab_to("button.main").await;
    browser.keys(&["Enter"]).await;
    browser.until("location.hash === '#/jobs/20261123190000000001'").await;
    let started = server.state.started.lock().expect("no panic").clone();
    let call = json!({"client": "local_async", "tgt": "web*", "tgt_type": "glob", "fun": "pkgtool.install", "arg": ["nginx"], "kwarg": {"version": 2}});
    assert_eq!(started, [call]);
    // A key is accepted after its fingerprint was shown and a question answered, and it is that key.
    open(&browser, &server, "keys").await;
    browser.tab_to(".body .row").await;
    browser.keys(&["Enter"]).await;
    browser.shows("Key of new").await;
    browser.shows("12:ab:34").await;
    browser.tab_to("dialog .actions button").await;
    browser.keys(&["Enter"]).await;
    browser.shows("Accept this key?").await;
    browser.keys(&["Escape"]).await;
    browser.until("!document.querySelector('dialog') && document.activeElement.matches('.row')").await;
    assert_eq!(server.state.started.lock().expect("no panic").len(), 1);
    browser.keys(&["Enter"]).await;
    browser.tab_to("dialog .actions button").await;
    browser.keys(&["Enter"]).await;
    browser.tab_to("dialog button.main").await;
    browser.keys(&["Enter"]).await;
    browser.until("!document.querySelector('dialog')").await;
    let accepted = server.state.started.lock().expect("no panic")[1].clone();
    assert_eq!((&accepted["fun"], &accepted["match"]), (&json!("key.accept_dict"), &json!({"minions_pre": ["new"]})));
    browser.page.close().await.expect("the browser ends");
}

/// Presses Tab until a link has the focus, follows it, and waits for the page, whose title then has the focus.
async fn follow(browser: &Browser, hash: &str) {
    browser.tab_to(&format!("a[href=\"{hash}\"]")).await;
    browser.keys(&["Enter"]).await;
    browser.until(&format!("location.hash === {} && document.activeElement.matches('h1')", json!(hash))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_read_and_opened_by_keyboard() {
    if needed().is_none() {
        return;
    }
    let server = server(50);
    let browser = Browser::start(Look::Light).await;
    open(&browser, &server, "fleet").await;
    // Filters, then rows: by one, by a page, to both ends.
    browser.tab_to("main input").await;
    browser.types("web").await;
    browser.until("location.hash.includes('web')").await;
    browser.tab_to(".body .row").await;
    let at = "document.activeElement.dataset.at";
    for (key, expected) in [("End", "49"), ("Home", "0"), ("ArrowDown", "1"), ("ArrowUp", "0")] {
        browser.keys(&[key]).await;
        browser.until(&format!("{at} === '{expected}'")).await;
    }
    browser.keys(&["PageDown"]).await;
    browser.until(&format!("Number({at}) > 3")).await;

    follow(&browser, "#/jobs").await;
    browser.tab_to("#jobs-state").await;
    browser.keys(&["ArrowDown"]).await;
    browser.until("document.getElementById('jobs-state').value === 'failed'").await;
    for field in ["#jobs-fun", "#jobs-target", "#jobs-minion", "#jobs-user"] {
        browser.tab_to(field).await;
    }
    browser.tab_to(".body .row").await;
    browser.keys(&["ArrowDown", "Enter"]).await;
    browser.until("location.hash.startsWith('#/jobs/2') && document.activeElement.matches('h1')").await;

    // A job: what is shown, a return, and where it leads to.
    browser.tab_to("#job-state").await;
    browser.keys(&["ArrowDown"]).await;
    browser.until("document.getElementById('job-state').value === 'failed'").await;
    browser.tab_to("summary").await;
    browser.keys(&["Enter"]).await;
    browser.until("!document.activeElement.parentElement.open").await;
    browser.keys(&["Space"]).await;
    browser.until("document.activeElement.parentElement.open").await;
    browser.tab_to(".output").await;
    browser.tab_to("a.button").await;
    browser.keys(&["Enter"]).await;
    browser.until("location.hash.startsWith('#/run?') && document.activeElement.matches('h1')").await;
    assert!(server.state.started.lock().expect("no panic").is_empty());
    browser.page.close().await.expect("the browser ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modules_updates_and_events_are_read_by_keyboard() {
    if needed().is_none() {
        return;
    }
    let server = server(50);
    let browser = Browser::start(Look::Light).await;
    open(&browser, &server, "modules").await;
    browser.tab_to("#modules-q").await;
    browser.tab_to("summary").await;
    browser.keys(&["Enter"]).await;
    browser.until("document.activeElement.parentElement.open").await;
    browser.tab_to(".copy button").await;
    browser.keys(&["Enter"]).await;
    browser.until("/Cop|Ctrl/.test(document.activeElement.textContent)").await;

    follow(&browser, "#/held").await;
    browser.shows("salt-call --local sandbox.approve").await;
    // The only button copies the line: approval is the host's.
    let buttons = "return [...document.querySelectorAll('main button')].every((one) => one.matches('.copy button'))";
    assert_eq!(browser.eval(buttons).await, json!(true));
    browser.tab_to(".copy button").await;
    browser.keys(&["Space"]).await;
    browser.until("document.activeElement.textContent !== 'Copy'").await;
    browser.tab_to("main a[href^='#/fleet/']").await;

    follow(&browser, "#/events").await;
    browser.until("document.querySelectorAll('.body .row').length > 3").await;
    browser.tab_to(".title .actions button").await;
    browser.keys(&["Space"]).await;
    browser.until("document.activeElement.getAttribute('aria-pressed') === 'true'").await;
    browser.tab_to("#events-tag").await;
    browser.types("brine/test/*").await;
    browser.tab_to(".body .row").await;
    browser.keys(&["ArrowDown", "Enter"]).await;
    browser.until("document.querySelector('dialog .output').textContent.includes('fill')").await;
    browser.keys(&["Escape"]).await;
    browser.until("!document.querySelector('dialog') && document.activeElement.matches('.body .row')").await;
    browser.tab_to(".title .actions button").await;
    browser.keys(&["Enter"]).await;
    browser.until("document.activeElement.getAttribute('aria-pressed') === 'false'").await;

    browser.tab_to(".who button").await;
    browser.keys(&["Enter"]).await;
    browser.until("document.activeElement.id === 'login-name'").await;
    assert!(!server.state.is_in.load(Ordering::SeqCst));
    browser.page.close().await.expect("the browser ends");
}

/// Where the window is narrow, pages are behind a button.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_menu_of_a_narrow_page_by_keyboard() {
    if needed().is_none() {
        return;
    }
    let server = server(50);
    let browser = Browser::start(Look::Narrow).await;
    open(&browser, &server, "fleet").await;
    for page in ["#/run", "#/jobs", "#/modules", "#/held", "#/keys", "#/events", "#/fleet"] {
        browser.tab_to(".menu").await;
        browser.keys(&["Enter"]).await;
        browser.until("document.activeElement.getAttribute('aria-expanded') === 'true'").await;
        follow(&browser, page).await;
        browser.until("document.querySelector('.menu').getAttribute('aria-expanded') === 'false'").await;
    }
    browser.tab_to(".menu").await;
    browser.keys(&["Enter"]).await;
    browser.tab_to("nav a").await;
    browser.keys(&["Escape"]).await;
    browser.until("document.querySelector('.menu').getAttribute('aria-expanded') === 'false'").await;
    browser.page.close().await.expect("the browser ends");
}
