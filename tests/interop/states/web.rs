//! A web server on loopback: what sources of states find there, and what goes wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use brine_kit::process::run_with;
use tempfile::TempDir;

/// What `/endless` has: more than a module may be answered.
const TOO_MUCH: usize = 64 << 20;
/// The files that it serves, and one list of hashes; the first of them is of another file.
const FILES: &str = "
echo 'hello from the web' > a.txt; printf '{{ what }} for {{ grains.id }}\\n' > t.jinja
mkdir top; echo x > top/x; tar cf t.tar --mtime=@1700000000 --owner=0 --group=0 top
{ echo \"$(printf %064d 0)  b.txt\"; sha256sum a.txt t.tar; } > SHA256SUMS; sha256sum < a.txt | cut -c-64
";

/// The server, which ends with the test's process.
pub(super) struct Web {
    pub(super) port: u16,
    /// The hash of `/a.txt`.
    pub(super) hash: String,
    _folder: TempDir,
}

impl Web {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let line = format!("cd '{}' && {FILES}", folder.path().display());
        let hash = run_with(Path::new("/bin/sh"), &["-ec", &line], &[]).exits(0).stdout.trim().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let port = listener.local_addr().expect("it is bound").port();
        let files: Arc<PathBuf> = Arc::new(folder.path().to_owned());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let files = Arc::clone(&files);
                // A client that goes away is no failure of the server.
                thread::spawn(move || drop(serve(&stream, &files)));
            }
        });
        Self { port, hash, _folder: folder }
    }
}

fn serve(mut stream: &TcpStream, files: &Path) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut authorized = false;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
        // `user:word`
        authorized |= line.to_ascii_lowercase().starts_with("authorization:") && line.contains("dXNlcjp3b3Jk");
    }
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut answer = |status: &str, header: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{header}\r\n", body.len());
        stream.write_all(head.as_bytes())?;
        if method == "HEAD" { Ok(()) } else { stream.write_all(body) }
    };
    let file = |name: &str| std::fs::read(files.join(name));
    match path {
        "/moved" => answer("302 Found", "Location: /a.txt\r\n", b""),
        // Another host, to which nothing leads that was granted.
        "/away" => answer("302 Found", "Location: http://127.0.0.2:1/a.txt\r\n", b""),
        "/loop" => answer("302 Found", "Location: /loop\r\n", b""),
        "/private" if authorized => answer("200 OK", "", &file("a.txt")?),
        "/private" => answer("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", b""),
        "/short" => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\nhello"),
        "/endless" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            (0..TOO_MUCH >> 16).try_for_each(|_| stream.write_all(&[b'x'; 1 << 16]))
        }
        // Until the client goes away.
        "/hangs" => reader.read(&mut [0]).map(drop),
        _ => match file(path.trim_start_matches('/')) {
            Ok(content) => answer("200 OK", "", &content),
            Err(_) => answer("404 Not Found", "", b"there is no such file\n"),
        },
    }
}
