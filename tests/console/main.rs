//! The console in a browser, against a scripted server: each page by keyboard and for everybody, hostile output, ten thousand
//! minions, a master that is away.

mod browser;
mod keyboard;
mod master;
mod scripted;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use browser::{Browser, Look, needed};
use scripted::{HOSTILE, Scripted, State};
use serde_json::json;

const PAGES: [&str; 10] = [
    "fleet",
    "fleet/web00001",
    "run?tgt=*&fun=pkg.install",
    "run?tgt=*&fun=cmd.run",
    "jobs",
    "jobs/1",
    "modules",
    "held",
    "keys",
    "events",
];

fn server(minions: usize) -> Scripted {
    let server = Scripted::start(State { minions, output: HOSTILE.repeat(3), ..State::default() });
    server.state.is_in.store(true, Ordering::SeqCst);
    server.state.events.store(1, Ordering::SeqCst);
    server
}

async fn open(browser: &Browser, server: &Scripted, page: &str) {
    // Another document first, so that nothing of the page before is there.
    browser.page.goto("about:blank").await.expect("a blank page");
    browser.page.goto(&server.url(page)).await.expect("the page");
    browser.until("document.querySelector('main h1') && !document.body.innerText.includes('Opening…')").await;
    tokio::time::sleep(Duration::from_millis(700)).await;
}

/// Each page, and that for who is not logged in, has nothing that WCAG 2.1 AA forbids.
async fn check_pages(look: Look) {
    let Some(axe) = needed() else { return };
    let server = server(50);
    let browser = Browser::start(look).await;
    server.state.is_in.store(false, Ordering::SeqCst);
    open(&browser, &server, "").await;
    browser.check(&axe, "log in").await;
    server.state.is_in.store(true, Ordering::SeqCst);
    for page in PAGES {
        open(&browser, &server, page).await;
        browser.check(&axe, page).await;
        // What is folded counts too.
        browser.eval("for (const one of document.querySelectorAll('details')) one.open = true").await;
        browser.check(&axe, &format!("{page}, unfolded")).await;
    }
    open(&browser, &server, "keys").await;
    browser.eval("document.querySelector('.body .row').click()").await;
    browser.shows("Key of new").await;
    browser.check(&axe, "the dialog of a key").await;
    if look == Look::Narrow {
        browser.keys(&["Escape"]).await;
        browser.eval("document.querySelector('.menu').click()").await;
        browser.check(&axe, "the menu").await;
    }
    browser.page.close().await.expect("the browser ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_for_everybody() {
    check_pages(Look::Light).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dark_pages_are_for_everybody() {
    check_pages(Look::Dark).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn narrow_pages_are_for_everybody() {
    check_pages(Look::Narrow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_output_stays_text() {
    if needed().is_none() {
        return;
    }
    let server =
        Scripted::start(State { minions: 10, output: HOSTILE.repeat((1 << 20) / HOSTILE.len()), ..State::default() });
    server.state.is_in.store(true, Ordering::SeqCst);
    server.state.events.store(1, Ordering::SeqCst);
    let browser = Browser::start(Look::Light).await;
    let watch = json!({"source": "document.addEventListener('securitypolicyviolation', (event) => { (window.reports ??= []).push(`${event.violatedDirective} ${event.blockedURI}`); });"});
    browser.cdp("Page.addScriptToEvaluateOnNewDocument", watch).await;
    for page in PAGES {
        open(&browser, &server, page).await;
        assert_eq!(browser.eval("return window.reports ?? []").await, json!([]), "{page}");
        let found =
            "return [document.title.includes('owned'), document.querySelectorAll('img, iframe, main script').length,
            /[\\u202e\\u2066]/.test(document.documentElement.textContent)]";
        assert_eq!(browser.eval(found).await, json!([false, 0, false]), "{page}");
    }
    open(&browser, &server, "jobs/1").await;
    // Of a return of 1 MiB, the browser lays out 64 KiB until somebody wants all.
    browser.shows("⟨U+202E⟩").await;
    let shown = "return document.querySelector('.output').textContent.length";
    assert_eq!(browser.eval(shown).await, json!(65536));
    browser.eval("document.querySelector('.output-box button').click()").await;
    browser.until("document.querySelector('.output').textContent.length > 1000000").await;
    browser.page.close().await.expect("the browser ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_minions_are_shown_at_once() {
    if needed().is_none() {
        return;
    }
    let server = server(10_000);
    server.state.events.store(0, Ordering::SeqCst);
    let browser = Browser::start(Look::Light).await;
    browser.page.goto(&server.url("fleet")).await.expect("the page");
    browser.shows("web00001").await;
    let paint = "return performance.getEntriesByName('first-contentful-paint')[0].startTime";
    let paint = browser.eval(paint).await.as_f64().expect("a time");
    assert!(paint <= 1500.0, "first paint after {paint} ms");
    // All of them are reached, and only those in view are in the page.
    let began = Instant::now();
    while browser
        .eval("scrollTo(0, document.body.scrollHeight); return document.body.innerText.includes('web09999')")
        .await
        != json!(true)
    {
        assert!(began.elapsed() < Duration::from_secs(60), "the last minion is not reached");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let rows = browser.eval("return document.querySelectorAll('.body .row').length").await;
    assert!(rows.as_u64().is_some_and(|rows| rows < 120), "{rows} rows");
    let heap = heap(&browser).await;
    let process = browser.memory();
    println!("first paint after {paint} ms; {heap} bytes of the page, {process} of its process");
    assert!(heap < 200 << 20 && process < 200 << 20, "{heap} bytes, {process} of the process");
    browser.page.close().await.expect("the browser ends");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_events_does_not_grow_the_page() {
    if needed().is_none() {
        return;
    }
    let server = server(10);
    server.state.events.store(10, Ordering::SeqCst);
    let browser = Browser::start(Look::Light).await;
    open(&browser, &server, "events").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (before, sent) = (heap(&browser).await, server.state.sent.load(Ordering::SeqCst));
    let seen = seen(&browser).await;
    let seconds = if brine_tests::long() { 60 } else { 15 };
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let sent = server.state.sent.load(Ordering::SeqCst) - sent;
    let seen = self::seen(&browser).await - seen;
    let after = heap(&browser).await;
    println!("{seen} of {sent} events in {seconds} s; from {before} to {after} bytes");
    assert!(after < before + (12 << 20), "from {before} to {after} bytes");
    // All came, but for what is on its way and for the page's next paint.
    assert!(seen + 2_000 > sent && sent > 500 * seconds, "{seen} of {sent} events");
    browser.page.close().await.expect("the browser ends");
}

/// How many events the page says that it has seen.
async fn seen(browser: &Browser) -> u64 {
    let number =
        "return Number(/([\\d\u{202f}\u{a0},.' ]+) seen/.exec(document.body.innerText)[1].replace(/\\D/g, ''))";
    browser.eval(number).await.as_u64().expect("a number")
}

/// What the page holds after its garbage is gone.
async fn heap(browser: &Browser) -> u64 {
    browser.cdp("HeapProfiler.collectGarbage", json!({})).await;
    let usage = browser.cdp("Runtime.getHeapUsage", json!({})).await;
    let count = |name: &str| usage[name].as_f64().unwrap_or_default();
    (count("usedSize") + count("embedderHeapUsedSize") + count("backingStorageSize")) as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_outlives_the_master() {
    if needed().is_none() {
        return;
    }
    let server = server(10);
    let browser = Browser::start(Look::Light).await;
    open(&browser, &server, "fleet").await;
    browser.eval("window.same = true").await;
    server.state.away.store(true, Ordering::SeqCst);
    browser.shows("The master is away").await;
    browser.shows("web00001").await;
    server.state.away.store(false, Ordering::SeqCst);
    browser.until("!document.querySelector('.away.is')").await;
    assert_eq!(browser.eval("return window.same").await, json!(true), "the page was loaded anew");
    // A page that is opened meanwhile comes by itself.
    server.state.away.store(true, Ordering::SeqCst);
    browser.page.goto("about:blank").await.expect("a blank page");
    browser.page.goto(&server.url("jobs")).await.expect("the page");
    browser.shows("The master is away").await;
    server.state.away.store(false, Ordering::SeqCst);
    browser.shows("state.apply").await;
    browser.page.close().await.expect("the browser ends");
}
