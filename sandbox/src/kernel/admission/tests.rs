//! Which calls are admitted, which wait, and which do not.

use super::places::{BEYOND, QUICK};
use super::*;

const MIB: u64 = 1 << 20;

fn bounds() -> Bounds {
    Bounds { max_running: 8, max_waiting: 0, max_queued: 8, memory: 1_000 * MIB }
}

fn jobs(max_running: usize, max_queued: usize) -> Jobs {
    Jobs::new(Bounds { max_running, max_queued, ..bounds() })
}

/// A function of a module, and its caller.
#[derive(Clone)]
struct Fun {
    job: Arc<JobContext>,
    module: ModuleName,
    history: Arc<History>,
    function: usize,
}

fn fun(jid: &str, module: &str) -> Fun {
    let job = Arc::new(JobContext { jid: jid.into(), user: "root".into(), ..JobContext::default() });
    Fun { job, module: module.parse().unwrap(), history: Arc::new(History::new(9)), function: 0 }
}

impl Fun {
    fn request(&self) -> Request<'_> {
        let Self { job, module, history, function } = self;
        let concurrency = Concurrency::default();
        Request {
            job,
            module,
            history,
            function: *function,
            concurrency,
            reserved: false,
            nested: NESTED_OF_ONE,
            memory: MIB,
        }
    }

    /// Records a past call of the function.
    fn was(self, wall_ms: u64, memory: u64) -> Self {
        self.history.ended(self.function, &Usage { wall_us: wall_ms * 1_000, memory_peak: memory, ..Usage::default() });
        self
    }

    fn by(mut self, user: &str) -> Self {
        self.job = Arc::new(JobContext { user: user.into(), ..JobContext::clone(&self.job) });
        self
    }
}

/// Returns a long call, which holds a turn or waits for one.
fn long(jid: &str, module: &str) -> Fun {
    fun(jid, module).was(10_000, 1)
}

fn short(jid: &str, module: &str) -> Fun {
    fun(jid, module).was(1, 1)
}

/// Returns the error of a call that must fail.
fn refused<T>(result: Result<T, String>) -> String {
    result.err().expect("it is refused")
}

fn admit<'a>(jobs: &'a Jobs, fun: &Fun) -> Place<'a> {
    jobs.admit(&fun.request()).unwrap()
}

/// Checks whether the call may begin.
fn begins(place: &mut Place<'_>) -> bool {
    if let Turn::Waits(granted) = &mut place.turn
        && let Ok(lease) = granted.try_recv()
    {
        place.turn = Turn::Has(lease);
    }
    matches!(place.turn, Turn::Has(_))
}

fn crowd<'a>(jobs: &'a Jobs, fun: &Fun, count: usize) -> Vec<Place<'a>> {
    (0..count).map(|_| admit(jobs, fun)).collect()
}

fn begun(places: &mut [Place<'_>]) -> usize {
    places.iter_mut().filter_map(|place| begins(place).then_some(())).count()
}

/// Returns the numbers of held turns, parked jobs, quick places and live jobs, and the bytes lent.
fn held(jobs: &Jobs) -> [usize; 5] {
    let table = jobs.table();
    [table.turns, table.parked, table.quick, table.live, table.memory.lent() as usize]
}

/// Makes all running calls older by this much.
fn later(jobs: &Jobs, by: std::time::Duration) {
    for call in jobs.table().calls.values_mut() {
        if let State::Live(live) = &mut call.state {
            live.since -= by;
        }
    }
    jobs.pulse();
}

#[test]
fn admission_is_bounded() {
    let (jobs, mine) = (jobs(2, 40), long("1", "mine"));
    let places = crowd(&jobs, &mine, 42);
    assert_eq!(
        refused(jobs.admit(&mine.request())),
        "The minion is busy: 2 jobs run and 40 wait. Try again, or raise sandbox:max_queued."
    );
    // Jobs that list or kill others are still admitted.
    let control = Request { reserved: true, ..mine.request() };
    let mut reserved: Vec<_> = (0..RESERVED).map(|_| jobs.admit(&control).unwrap()).collect();
    assert_eq!(begun(&mut reserved), RESERVED);
    drop(reserved);
    // A few jobs of other modules are admitted too.
    let mut others: Vec<_> = (0..KEPT).map(|n| admit(&jobs, &long("2", &format!("m{n}")))).collect();
    refused(jobs.admit(&long("2", "another").request()));
    refused(jobs.admit(&mine.request()));
    assert_eq!(begun(&mut others), 0);
    drop((places, others));
    assert_eq!(jobs.count(), 0);
    assert!(jobs.admit(&mine.request()).is_ok());
}

#[tokio::test]
async fn jobs_are_ended_by_their_id() {
    let (jobs, mine) = (jobs(4, 0), fun("1", "mine"));
    let mut one = admit(&jobs, &mine);
    let _two = admit(&jobs, &fun("2", "mine"));
    let _one_more = admit(&jobs, &mine);
    let mut called = jobs.admit_nested(one.number, &mine.request()).unwrap();
    assert_eq!(jobs.end(|job| job.jid == "1", "killed"), 2);
    assert_eq!(&*one.end.told().await, "killed");
    assert_eq!(&*called.end.told().await, "killed");
    assert_eq!(jobs.end(|job| job.jid == "3", "killed"), 0);
}

/// A module's own limits hold, even while its jobs only wait.
#[test]
fn modules_have_bounds_of_their_own() {
    let jobs = Jobs::new(Bounds { max_waiting: 100, ..bounds() });
    let (mine, other) = (long("1", "mine"), long("3", "other"));
    let concurrency = Concurrency { max_running: Some(1), max_queued: Some(1) };
    let bounded = Request { concurrency, ..mine.request() };
    let (mut one, mut two) = (jobs.admit(&bounded).unwrap(), jobs.admit(&bounded).unwrap());
    assert_eq!(
        refused(jobs.admit(&bounded)),
        "The minion is busy: 1 jobs of module mine run and 1 wait. Try again, or raise sandbox:modules:mine:max_queued."
    );
    jobs.looked(&[(one.number, true)], &[]);
    assert!(begins(&mut one) && !begins(&mut two));
    assert_eq!(
        refused(jobs.admit_nested(one.number, &bounded)),
        "The minion is busy: as many jobs of module mine run as may. Try again, or raise sandbox:modules:mine:max_running."
    );
    // Other modules are not affected.
    assert!(begins(&mut admit(&jobs, &other)));
    drop(one);
    assert!(begins(&mut two));
    drop(two);
    assert!(jobs.table().modules.is_empty());
}

/// A nested call does not wait for turns.
#[test]
fn calls_within_calls_do_not_wait() {
    let (jobs, mine) = (jobs(1, 0), long("1", "mine"));
    let job = admit(&jobs, &mine);
    let called: Vec<_> =
        (0..NESTED_PER_TURN).map(|_| jobs.admit_nested(job.number, &mine.request()).unwrap()).collect();
    assert_eq!(
        refused(jobs.admit_nested(job.number, &mine.request())),
        "The minion is busy: 4 functions called by other functions run. Try again, or raise sandbox:max_running."
    );
    drop(called);
    assert!(jobs.admit_nested(job.number, &mine.request()).is_ok());
    let number = job.number;
    drop(job);
    assert_eq!(refused(jobs.admit_nested(number, &mine.request())), "The job has ended.");
    assert_eq!((jobs.count(), held(&jobs), jobs.table().nested), (0, [0; 5], 0));
}

/// One job cannot take the places of all others' nested calls, whichever of its calls it has them called by.
#[test]
fn calls_within_one_job_are_bounded() {
    let (jobs, mine) = (jobs(4, 0), long("1", "mine"));
    let [job, other] = [admit(&jobs, &mine), admit(&jobs, &long("2", "mine"))];
    let mut called: Vec<Place<'_>> = Vec::new();
    for _ in 0..NESTED_OF_ONE {
        let by = called.last().map_or(job.number, |last| last.number);
        called.push(jobs.admit_nested(by, &mine.request()).unwrap());
    }
    for by in [job.number, called[3].number] {
        assert_eq!(
            refused(jobs.admit_nested(by, &mine.request())),
            "The job is busy: it runs 7 functions that its functions called."
        );
    }
    let others = jobs.admit_nested(other.number, &mine.request()).unwrap();
    called.pop();
    called.push(jobs.admit_nested(job.number, &mine.request()).unwrap());
    // The first call may end before those that it called.
    drop(job);
    drop((called, others, other));
    assert_eq!((jobs.count(), held(&jobs), jobs.table().nested), (0, [0; 5], 0));
}

/// A waiting job gives its turn to others, up to the bound. A job that continues counts again.
#[test]
fn waiting_holds_no_turn() {
    let jobs = Jobs::new(Bounds { max_running: 2, max_waiting: 3, ..bounds() });
    let mut places = crowd(&jobs, &long("1", "mine"), 7);
    assert_eq!(begun(&mut places), 2);
    let looks = |from: usize, to: usize, waits| (from..to).map(|n| (n as u64, waits)).collect::<Vec<_>>();
    jobs.looked(&looks(0, 2, true), &[]);
    assert_eq!(begun(&mut places), 4);
    jobs.looked(&looks(0, 4, true), &[]);
    assert_eq!((begun(&mut places), &held(&jobs)[..2]), (5, &[2, 3][..]));
    // The bound on waiting jobs is reached, so the fourth keeps its turn.
    jobs.looked(&looks(0, 5, true), &[]);
    assert_eq!((begun(&mut places), held(&jobs)[1]), (5, 3));
    // All continue, so no new job begins before turns are free.
    jobs.looked(&looks(0, 5, false), &[]);
    assert_eq!(held(&jobs)[..2], [5, 0]);
    places.drain(..4);
    assert_eq!((begun(&mut places), held(&jobs)[0]), (2, 2));
    drop(places);
    assert_eq!((held(&jobs), jobs.table().waiting()), ([0; 5], 0));
    assert!(!*jobs.contended.borrow());
}

/// A job that waits for its nested call counts as waiting only while that call waits.
#[test]
fn a_job_computes_while_what_it_called_does() {
    let jobs = Jobs::new(Bounds { max_running: 1, max_waiting: 3, ..bounds() });
    let job = admit(&jobs, &long("1", "mine"));
    let called = jobs.admit_nested(job.number, &long("1", "other").request()).unwrap();
    let mut next = admit(&jobs, &long("2", "mine"));
    jobs.looked(&[(job.number, true), (called.number, false)], &[]);
    assert!(!begins(&mut next));
    jobs.looked(&[(job.number, true), (called.number, true)], &[]);
    assert!(begins(&mut next));
    drop(called);
    let _again = jobs.admit_nested(job.number, &long("1", "other").request()).unwrap();
    assert_eq!(held(&jobs)[..2], [2, 0]);
}

/// While all turns are taken, two kinds of calls may still begin: those expected to be short, and the first call of a
/// module of which nothing else runs.
#[test]
fn short_calls_are_let_by() {
    let jobs = Jobs::new(Bounds { max_running: 2, max_waiting: 9, max_queued: 100, ..bounds() });
    let mut hogs = crowd(&jobs, &long("1", "hog"), 50);
    let mut quick: Vec<_> = (0..20).map(|_| admit(&jobs, &short("2", "test"))).collect();
    // A module leaves some of these places to others.
    assert_eq!(begun(&mut quick), QUICK / 2);
    assert!(begins(&mut admit(&jobs, &short("3", "other"))));
    let mut unseen = [admit(&jobs, &fun("4", "new")), admit(&jobs, &fun("4", "new"))];
    assert_eq!(begun(&mut unseen), 1);
    // A call that was not short counts as any other, and the next ones get the quick places.
    later(&jobs, places::MOMENT);
    assert_eq!((begun(&mut quick), begun(&mut hogs)), (QUICK, 2));
    assert_eq!(jobs.table().turns, 2 + QUICK / 2 + 1);
    drop((quick, unseen, hogs));
    assert_eq!(held(&jobs), [0; 5]);
}

/// A function that was short until it got a quick place.
#[test]
fn who_lies_about_being_short_is_found_out() {
    let jobs = Jobs::new(Bounds { max_running: 2, max_waiting: 4, max_queued: 1_000, ..bounds() });
    let _hogs = crowd(&jobs, &long("1", "hog"), 10);
    let liar = short("2", "liar");
    let mut lies = crowd(&jobs, &liar, SHORT_OF_ONE);
    for _ in 0..100 {
        later(&jobs, history::SHORT_WALL);
    }
    let began = begun(&mut lies);
    assert_eq!(began, QUICK / 2);
    assert_eq!(liar.history.expect(0).pace, Pace::Long);
    assert!(begins(&mut admit(&jobs, &short("3", "test"))));
    // However many such calls come, the total stays bounded.
    let others: Vec<_> =
        (0..1_000).filter_map(|n| jobs.admit(&short("4", &format!("m{}", n % 300)).request()).ok()).collect();
    for _ in 0..100 {
        later(&jobs, places::MOMENT);
    }
    assert!(held(&jobs)[3] <= 2 + 4 + BEYOND);
    drop(others);
}

/// Functions that were short so far all hang and only wait. They still leave places and memory to a short call.
#[test]
fn who_was_short_and_hangs_leaves_room_for_short_ones() {
    for memory in [1 << 30, 1 << 40] {
        let jobs = Jobs::new(Bounds { max_running: 16, max_waiting: 256, max_queued: 1_000, memory });
        let liars = [0, 1, 2, 3].map(|n| short("1", &format!("liar{n}")));
        let crowd = liars.iter().flat_map(|liar| [liar; 500]);
        fn request(fun: &Fun) -> Request<'_> {
            Request { memory: 64 * MIB, ..fun.request() }
        }
        let mut places: Vec<_> = crowd.filter_map(|liar| jobs.admit(&request(liar)).ok()).collect();
        for _ in 0..100 {
            later(&jobs, PULSE);
            let live: Vec<_> = jobs.table().calls.keys().map(|number| (*number, true)).collect();
            jobs.looked(&live, &[]);
            begun(&mut places);
            let mut ping = jobs.admit(&request(&short("2", "test"))).unwrap();
            assert!(begins(&mut ping), "{memory}: {:?}", held(&jobs));
        }
        assert!(held(&jobs)[3] <= 16 + 256 + BEYOND);
    }
}

/// No single module or requester gets the last turns, and waiting requesters take turns.
#[test]
fn turns_are_shared_by_module_and_by_who_asked() {
    let jobs = jobs(16, 100);
    let mut hog = crowd(&jobs, &long("1", "hog"), 50);
    assert_eq!(begun(&mut hog), 14);
    // Another module of the same requester gets no more turns; another module of another requester does.
    let mut same = admit(&jobs, &long("2", "other"));
    assert!(!begins(&mut same));
    let mut bob = crowd(&jobs, &long("3", "hog").by("bob"), 2);
    let mut bobs = admit(&jobs, &long("4", "other").by("bob"));
    assert_eq!((begun(&mut bob), begins(&mut bobs)), (0, true));
    assert_eq!(jobs.table().turns, 15);
    // When turns become free, all get some.
    hog.drain(..6);
    assert!(begins(&mut same));
    assert_eq!((begun(&mut bob), begun(&mut hog)), (2, 11));
}

/// Large calls leave memory for small ones, and wait for memory in their order.
#[test]
fn memory_is_kept_for_small_calls() {
    let jobs = Jobs::new(Bounds { max_running: 100, memory: 256 * MIB, max_queued: 100, ..bounds() });
    let hold = long("1", "hold").was(10_000, 60 * MIB);
    let large = Request { memory: 60 * MIB, ..hold.request() };
    let mut holds: Vec<_> = (0..60).map(|_| jobs.admit(&large).unwrap()).collect();
    assert_eq!((begun(&mut holds), held(&jobs)[4] as u64), (3, 180 * MIB));
    let ping = short("2", "test");
    let mut ping = jobs.admit(&Request { memory: 64 * MIB, ..ping.request() }).unwrap();
    assert_eq!((begins(&mut ping), ping.lease()), (true, Some(Some(SMALL))));
    // An unknown function begins with a small lease too, if nothing else of its module runs.
    let unseen = fun("3", "new");
    let unseen = Request { memory: 64 * MIB, ..unseen.request() };
    let mut unseen = [jobs.admit(&unseen).unwrap(), jobs.admit(&unseen).unwrap()];
    assert_eq!((begun(&mut unseen), unseen[0].lease()), (1, Some(Some(SMALL))));
    // A job that can end others does not wait for memory.
    let control = Request { reserved: true, ..large };
    assert!(begins(&mut jobs.admit(&control).unwrap()));
    // A nested call gets free memory or is refused.
    assert_eq!(
        refused(jobs.admit_nested(holds[0].number, &large)),
        "The minion is busy: of the 256 MiB of memory for all jobs too little is free. Try again, or raise \
         sandbox:total_memory."
    );
    assert!(jobs.admit_nested(holds[0].number, &Request { memory: MIB, ..hold.request() }).is_ok());
    assert!(jobs.table().memory.lent() <= 256 * MIB);
    // A running call that needs more memory comes before calls that have not begun.
    let mut more = jobs.grow(unseen[0].number).unwrap().unwrap();
    assert!(more.try_recv().is_err());
    holds.remove(0);
    assert_eq!((more.try_recv().is_ok(), begun(&mut holds)), (true, 2));
    holds.remove(0);
    assert_eq!(begun(&mut holds), 1 + 1);
    assert!(jobs.table().memory.lent() <= 256 * MIB);
    drop((holds, unseen, ping));
    assert_eq!(jobs.table().memory.lent(), 0);
}

/// A waiting call's unused memory, for which it would ask again, goes to others.
#[test]
fn who_waits_and_holds_little_gives_memory_back() {
    let jobs = Jobs::new(Bounds { memory: 160 * MIB, max_waiting: 9, ..bounds() });
    let nap = long("1", "nap").was(10_000, 60 * MIB);
    let nap = Request { memory: 64 * MIB, ..nap.request() };
    let mut naps: Vec<_> = (0..4).map(|_| jobs.admit(&nap).unwrap()).collect();
    assert_eq!(begun(&mut naps), 2);
    let looked: Vec<_> = naps[..2].iter().map(|nap| (nap.number, true)).collect();
    jobs.looked(&looked, &[naps[0].number]);
    assert_eq!((begun(&mut naps), held(&jobs)[4] as u64), (3, (64 + 64 + 4) * MIB));
    // The call needs the memory again, and waits for room.
    let mut more = jobs.grow(naps[0].number).unwrap().unwrap();
    assert!(more.try_recv().is_err());
    drop(naps.remove(1));
    assert!(more.try_recv().is_ok());
    assert_eq!(jobs.table().memory.lent(), 128 * MIB);
}

#[test]
fn what_is_called_counts_for_who_called() {
    let (jobs, mine) = (jobs(8, 8), fun("1", "mine"));
    let usage = |n| Usage {
        wall_us: n,
        cpu_us: n,
        memory_peak: n,
        host_calls: n,
        bytes_in: n,
        bytes_out: n,
        log_dropped: n,
        written: n,
        new_files: n,
        foreseen: u32::try_from(n).unwrap(),
        repeatable: false,
    };
    let job = admit(&jobs, &mine);
    for own in [10, 20] {
        let called = jobs.admit_nested(job.number, &mine.request()).unwrap();
        jobs.spend(called.number, &usage(1));
        let used = called.leave(usage(own));
        assert_eq!(used, Usage { wall_us: own, ..usage(own + 1) });
        jobs.spend(job.number, &used);
    }
    // Nested calls ran one after the other: the largest peak counts, not the sum.
    assert_eq!(job.leave(usage(100)), Usage { wall_us: 100, memory_peak: 121, ..usage(132) });
    assert_eq!(admit(&jobs, &mine).leave(usage(7)), usage(7));
}

/// No executor gets more calls than its bound.
#[test]
fn all_calls_together_are_bounded() {
    for (max_running, max_waiting) in [(1, 0), (16, 256), (1_000, 2_000), (1_000_000, 1_000_000)] {
        let jobs = Jobs::new(Bounds { max_running, max_waiting, ..bounds() });
        assert!(jobs.max_calls() <= MAX_CALLS, "{max_running}");
        assert!(jobs.max_nested > 0 || max_running > MAX_CALLS, "{max_running}");
    }
}
