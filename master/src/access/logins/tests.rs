use std::net::IpAddr;

use super::failures::{ADDRESS, TOGETHER, USER};
use super::*;

const FRED: (&str, &str) = ("file", "fred");

fn net(last: u8) -> Address {
    Address::Network(IpAddr::from([192, 0, 2, last]))
}

fn here(_n: u32) -> Address {
    Address::Here
}

async fn attempt(logins: &Logins, from: Address, user: (&str, &str), right: bool) -> Result<bool, &'static str> {
    let attempt = Attempt { from, user, bytes: 100, is_gone: &|| false };
    logins.attempt(attempt, async move { right }).await.map_err(|held| held.why)
}

/// Starts `size` wrong log-ins at once; `who` maps a number to address and name.
fn crowd(
    logins: &Arc<Logins>,
    size: u32,
    who: impl Fn(u32) -> (Address, String),
) -> tokio::task::JoinSet<Result<bool, &'static str>> {
    let mut guesses = tokio::task::JoinSet::new();
    for n in 0..size {
        let (logins, (from, name)) = (Arc::clone(logins), who(n));
        guesses.spawn(async move { attempt(&logins, from, ("file", &name), false).await });
    }
    guesses
}

async fn settle() {
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_passwords_are_slow_however_many_try() {
    let logins = Arc::new(Logins::default());
    let began = Instant::now();
    let guesses = crowd(&logins, TOGETHER.failures + 20, |n| (net(u8::try_from(n).unwrap()), n.to_string()));
    settle().await;
    assert_eq!(attempt(&logins, Address::Here, FRED, true).await, Ok(true), "this host has places of its own");
    assert!(began.elapsed() < WRONG_TAKES);
    assert!(guesses.join_all().await.iter().all(|right| *right == Ok(false)));
    assert!(began.elapsed() >= WRONG_TAKES * 5, "four at a time: {:?}", began.elapsed());
}

/// 90 wrong log-ins of this host, in many names or in the name of the user that then logs in.
#[tokio::test(start_paused = true)]
async fn wrong_log_ins_of_this_host_lock_no_right_one_out() {
    for name in [|n: u32| format!("user{n}"), |_| "fred".to_owned(), |n| format!("user{}", n % 3)] {
        let logins = Arc::new(Logins::default());
        for round in 0..3 {
            let guesses = crowd(&logins, 90, |n| (here(n), name(n)));
            settle().await;
            let began = Instant::now();
            for right in [("file", "ann"), FRED, ("pam", "user1")] {
                assert_eq!(attempt(&logins, Address::Here, right, true).await, Ok(true), "{right:?} in round {round}");
            }
            assert!(began.elapsed() <= WRONG_TAKES * 3, "{:?} in round {round}", began.elapsed());
            guesses.join_all().await;
        }
    }
}

/// A user who logged in lately has places that a crowd in other names does not fill.
#[tokio::test(start_paused = true)]
async fn who_came_in_lately_passes_a_crowd_that_never_ends() {
    for from in [Address::Here, net(1)] {
        let logins = Arc::new(Logins::default());
        assert_eq!(attempt(&logins, from, FRED, true).await, Ok(true));
        for round in 0..5 {
            let of = |n: u32| if from == Address::Here { from } else { net(u8::try_from(n).unwrap()) };
            let mut crowd = crowd(&logins, 200, |n| (of(n + 20), format!("{round} {n}")));
            settle().await;
            let began = Instant::now();
            assert_eq!(attempt(&logins, from, FRED, true).await, Ok(true));
            assert!(began.elapsed() < WRONG_TAKES / 10, "{:?} in round {round}", began.elapsed());
            // The next round displaces them before they are answered.
            crowd.detach_all();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn when_too_many_wait_the_oldest_is_refused() {
    let logins = Arc::new(Logins::default());
    let held = crowd(&logins, TOGETHER.failures, |n| (net(u8::try_from(n).unwrap()), n.to_string()));
    settle().await;
    let mut guesses = crowd(&logins, 100, |n| (net(u8::try_from(n + 100).unwrap()), n.to_string()));
    settle().await;
    assert_eq!(logins.network.waiting(), WAITING_MAX);
    let mut refused = 0;
    while let Some(Ok(answer)) = guesses.try_join_next() {
        assert_eq!(answer, Err("too many log-ins wait already"));
        refused += 1;
    }
    assert_eq!(refused, 100 - WAITING_MAX - PLACES);
    let began = Instant::now();
    assert_eq!(attempt(&logins, net(250), FRED, true).await, Ok(true));
    assert!(began.elapsed() <= WRONG_TAKES);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_goes_on_is_not_heard_for_a_while() {
    let behind = |last: u8| Address::Behind(IpAddr::from([192, 0, 2, last]));
    for (one, two) in [(net(1), net(2)), (behind(1), behind(2)), (behind(1), Address::Here)] {
        let logins = Logins::default();
        let mut heard = 0;
        while attempt(&logins, one, ("file", &heard.to_string()), false).await.is_ok() {
            heard += 1;
            assert!(heard < 20, "an address is heard for ever");
        }
        assert!(heard >= ADDRESS.failures, "{heard}");
        let asked = std::cell::Cell::new(false);
        let check = async {
            asked.set(true);
            true
        };
        let again = Attempt { from: one, user: FRED, bytes: 100, is_gone: &|| false };
        assert!(logins.attempt(again, check).await.is_err(), "whatever the name");
        assert!(!asked.get(), "no password is looked at");
        assert_eq!(attempt(&logins, two, FRED, true).await, Ok(true), "others are heard");
        tokio::time::advance(ADDRESS.each).await;
        assert_eq!(attempt(&logins, one, FRED, true).await, Ok(true), "and it is heard again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_under_attack_comes_in_all_the_same() {
    let logins = Arc::new(Logins::default());
    assert_eq!(attempt(&logins, net(1), FRED, true).await, Ok(true));
    let now = Instant::now();
    for n in 0..USER.failures {
        logins.failures().ended(net(100 + u8::try_from(n).unwrap()), FRED, false, now);
    }
    assert_eq!(logins.failures().standing(net(2), FRED, now), LoginStanding::Suspect);
    assert_eq!(
        logins.failures().standing(Address::Here, FRED, now),
        LoginStanding::Good,
        "the network is not this host"
    );
    assert_eq!(logins.failures().standing(net(2), ("file", "ann"), now), LoginStanding::Good);
    assert_eq!(logins.failures().standing(net(1), FRED, now), LoginStanding::Known, "where fred came from before");
    let guesses = crowd(&logins, 16, |n| (net(150 + u8::try_from(n).unwrap()), "fred".to_owned()));
    settle().await;
    let began = Instant::now();
    assert_eq!(attempt(&logins, net(2), FRED, true).await, Ok(true), "a new address of fred's");
    assert!(began.elapsed() <= WRONG_TAKES, "{:?}: one wrong one before it", began.elapsed());
    assert!(guesses.join_all().await.iter().all(|right| *right == Ok(false)));
    assert!(began.elapsed() >= WRONG_TAKES * 15, "{:?}: one a second", began.elapsed());
    assert!(logins.of_users().is_empty());
}
