//! Describes the machine of the benchmark, with the two speeds that decide how long a job takes: each publication is signed once, and
//! each job and return is synced.

use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use brine_openssl::OpensslKey;
use brine_protocol::keys::{PrivateOps as _, SignAlg};

use crate::table::{Figure, number};

/// Bits of a key, as the master's by default.
const KEY_BITS: usize = 2048;
/// Time for which signatures are made.
const SIGN_FOR: Duration = Duration::from_millis(500);
/// Syncs, and bytes before each: a page of the job store.
const SYNCS: usize = 200;
const PAGE: usize = 4096;

/// Returns one sentence about this machine, without its name.
pub(crate) fn describe() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map(|(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = read("/proc/meminfo");
    let kib =
        memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
    let gib = kib.unwrap_or(0).div_ceil(1024 * 1024);
    let release = read("/proc/sys/kernel/osrelease");
    // The rest of the version names a particular build.
    let kernel: String = release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let folder = std::env::temp_dir();
    format!(
        "{}, {cores} cores, {gib} GiB of memory, Linux {kernel}, temporary folders on {}. \
         RSA: {} signatures of {KEY_BITS} bits a second on a core. A sync of {PAGE} bytes: {} ms",
        model.unwrap_or("a processor without a name"),
        filesystem(&folder),
        number(signatures_a_second()),
        number(sync_ms(&folder)),
    )
}

/// Returns how many signatures one core makes in a second, as the master makes them.
#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn signatures_a_second() -> f64 {
    let key = brine_openssl::generate(KEY_BITS).expect("OpenSSL makes a key");
    let key = OpensslKey::new(&key).expect("OpenSSL takes its own key");
    let (began, mut made) = (Instant::now(), 0_usize);
    while began.elapsed() < SIGN_FOR {
        key.sign(SignAlg::Pkcs1v15Sha1, b"a publication").expect("OpenSSL signs");
        made += 1;
    }
    made as f64 / began.elapsed().as_secs_f64()
}

/// Returns the median time of a sync of one page that was written before, in milliseconds.
fn sync_ms(folder: &std::path::Path) -> f64 {
    let mut file = tempfile::tempfile_in(folder).expect("a temporary file");
    file.write_all(&[0; PAGE]).expect("the temporary folder has room");
    let one = |at: usize| {
        file.write_all_at(&[u8::try_from(at % 251).unwrap_or(0); PAGE], 0).expect("the temporary folder has room");
        let began = Instant::now();
        file.sync_data().expect("the temporary folder can be synced");
        began.elapsed()
    };
    Figure::ms(&(0..SYNCS).map(one).collect::<Vec<_>>()).median
}

/// Returns the type of the file system of a folder.
fn filesystem(folder: &std::path::Path) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let fields = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
    };
    let under = mounts.lines().filter_map(fields).filter(|(point, _)| folder.starts_with(point));
    under.max_by_key(|(point, _)| point.len()).map_or_else(|| "an unknown file system".into(), |(_, kind)| kind)
}
