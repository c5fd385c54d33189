//! Files and archives from the web, and texts that states add from files.

use super::Side;
use super::web::Web;

/// What there is before.
pub(super) const MADE: &str = "
mkdir -p /opt/f; cd /opt/f; printf 'one\\ntwo\\n' > text; cp text prepended; cp text lines; cp text same; echo 'hello from the web' > same
printf 'a\\n# start\\nold\\n# end\\nz\\n' > block; cp block block2
seq 20 > numbers; cp numbers numbered; cp numbers shifted; sed -i '1i zero' shifted; cp numbers odd; sed -i 's/^2$/two/; s/^3$/three/' odd; cp numbers there
sed 's/^3$/THREE/; s/^18$/EIGHTEEN/; $a 21' numbers > new; (diff -u numbers new || true) > patch; sed 's/THREE/{{ what }}/' patch > patch.jinja
cp new there; mkdir -p tree/sub old/a/b old/c/d; cp numbers tree/sub/n; seq 3 > old/c/d/kept
(cd tree; mkdir a; cp -r sub a/; cp -r a b; cp ../new b/sub/n; echo made > b/sub/m; (diff -ruN a b || true) > ../patch.tree; rm -r a b)
# Without times, which the two roots have others of; but for those of files that are not there.
sed -i '/1970/! s/^\\(---\\|+++\\) \\([^\\t]*\\)\\t.*/\\1 \\2/' patch patch.jinja patch.tree
printf '{{ what }} {{ grains.id }}\\nlast {{ what }}\\n' > t.jinja; printf 'plain\\n' > plain; printf '{{ broken' > broken.jinja; : > empty
";

/// Salt's dry run names temporary files.
const PATCHES: &str = "
patched: {file.patch: [{name: /opt/f/numbered}, {source: /opt/f/patch}]}
patched_jinja: {file.patch: [{name: /opt/f/numbers}, {source: /opt/f/patch.jinja}, {template: jinja}, {context: {what: drei}}]}
patched_shifted: {file.patch: [{name: /opt/f/shifted}, {source: [/opt/f/none, /opt/f/patch]}]}
patched_there: {file.patch: [{name: /opt/f/there}, {source: /opt/f/patch}]}
patched_tree: {file.patch: [{name: /opt/f/tree}, {source: /opt/f/patch.tree}, {strip: 1}]}
patched_options: {file.patch: [{name: /opt/f/tree}, {source: /opt/f/patch.tree}, {options: '-p1 -o /opt/f/x'}]}
patched_strip: {file.patch: [{name: /opt/f/tree}, {source: /opt/f/patch.tree}, {options: '-px'}]}
patched_none: {file.patch: [{name: /opt/f/no-such}, {source: /opt/f/patch}]}
patched_relative: {file.patch: [{name: f/there}, {source: /opt/f/patch}]}
patched_rejects: {file.patch: [{name: /opt/f/there}, {source: /opt/f/patch}, {reject_file: /opt/no-such/x}]}
patched_sources: {file.patch: [{name: /opt/f/there}, {source: [/opt/f/none, /opt/f/neither]}]}
patched_hash: {file.patch: [{name: /opt/f/there}, {source: /opt/f/patch}, {hash: old}]}
pruned: {file.pruned: [{name: /opt/f/old/a/b}]}
pruned_full: {file.pruned: [{name: /opt/f/old/c}]}
pruned_below: {file.pruned: [{name: /opt/f/old/a}, {recurse: True}]}
pruned_partly: {file.pruned: [{name: /opt/f/old}, {ignore_errors: True}]}
pruned_young: {file.pruned: [{name: /opt/f/old/c/d}, {older_than: 1}]}
pruned_none: {file.pruned: [{name: /opt/f/no-such}]}
";

pub(super) const THERE: &str =
    "cd /opt/f; find . -type f -printf '%p %m %U\\n' | sort; find . -type f | sort | xargs sha256sum";

pub(super) fn made(web: &Web) -> String {
    let none = "0".repeat(64);
    let of_the_web = WEB.replace("WEB", &format!("http://127.0.0.1:{}", web.port));
    of_the_web.replace("HASH", &web.hash).replace("NONE", &none) + PATCHES
}

pub(super) const TEXTS: &str = "
appended: {file.append: [{name: /opt/f/text}, {source: /opt/f/t.jinja}, {template: jinja}, {context: {what: more}}]}
appended_twice: {file.append: [{name: /opt/f/lines}, {sources: [/opt/f/plain, /opt/f/t.jinja]}, {defaults: {what: d}}]}
appended_both: {file.append: [{name: /opt/f/lines}, {source: /opt/f/plain}, {sources: [/opt/f/plain]}]}
prepended: {file.prepend: [{name: /opt/f/prepended}, {source: /opt/f/t.jinja}, {template: jinja}, {context: {what: more}}]}
prepended_header: {file.prepend: [{name: /opt/f/prepended}, {source: /opt/f/plain}, {header: True}]}
blocked: {file.blockreplace: [{name: /opt/f/block}, {marker_start: '# start'}, {marker_end: '# end'}, {source: /opt/f/t.jinja}, {template: jinja}, {context: {what: more}}]}
blocked_more: {file.blockreplace: [{name: /opt/f/block2}, {marker_start: '# start'}, {marker_end: '# end'}, {content: first}, {sources: [/opt/f/plain, /opt/f/t.jinja]}, {defaults: {what: d}}]}
packed: {file.serialize: [{name: /opt/f/packed}, {serializer: msgpack}, {dataset: {a: [1, -200, {b: c}], d: null, e: 1.5, f: 70000, g: true}}]}
checked: {test.check_pillar: [{name: x}, {present: [a, none]}, {integer: b:c}, {string: [s, b]}, {listing: l}, {dictionary: b}, {boolean: l}, {verbose: True}]}
/opt/f/plain: {file.cached: []}
cached_hash: {file.cached: [{name: /opt/f/plain}, {source_hash: ff20f3f7bfa5cfa5b4a5c4b3c6a1b7e2d1a7a9a2f0e1c9e7b9d5f4c3b2a19088}]}
cached_none: {file.cached: [{name: /opt/f/nosuch}]}
uncached: {file.not_cached: [{name: /opt/f/plain}]}
uncached_web: {file.not_cached: [{name: 'http://h.invalid/x'}]}
cached_ftp: {file.cached: [{name: 'ftp://h.invalid/x'}]}
";

const WEB: &str = "
/opt/f/w1: {file.managed: [{source: WEB/a.txt}, {source_hash: HASH}]}
/opt/f/w2: {file.managed: [{source: WEB/a.txt}, {source_hash: sha256=HASH}, {mode: '0600'}]}
/opt/f/w3: {file.managed: [{source: WEB/a.txt}, {source_hash: WEB/SHA256SUMS}]}
/opt/f/w4: {file.managed: [{source: WEB/a.txt}, {skip_verify: True}]}
/opt/f/w5: {file.managed: [{source: WEB/a.txt}]}
/opt/f/w6: {file.managed: [{source: WEB/a.txt}, {source_hash: NONE}]}
/opt/f/w7: {file.managed: [{source: WEB/moved}, {source_hash: HASH}]}
/opt/f/w8: {file.managed: [{source: [/srv/nosuch, WEB/nosuch, WEB/a.txt]}, {source_hash: HASH}]}
/opt/f/w10: {file.managed: [{source: [WEB/nosuch, /srv/nosuch]}, {source_hash: HASH}]}
/opt/f/w11: {file.managed: [{source: WEB/t.jinja}, {skip_verify: True}, {template: jinja}, {context: {what: text}}]}
/opt/f/w12: {file.managed: [{source: WEB/nosuch}, {source_hash: HASH}]}
/opt/f/w13: {file.managed: [{source: WEB/nosuch}, {skip_verify: True}]}
/opt/f/w14: {file.managed: [{source: WEB/a.txt}, {source_hash: WEB/nosuch}]}
/opt/f/w15: {file.managed: [{source: WEB/a.txt}, {source_hash: md5=HASH}]}
/opt/f/w16: {file.managed: [{source: WEB/a.txt}, {source_hash: WEB/SHA256SUMS}, {source_hash_name: b.txt}]}
/opt/f/same: {file.managed: [{source: WEB/a.txt}, {source_hash: HASH}]}
/opt/f/x1: {archive.extracted: [{source: WEB/t.tar}, {source_hash: WEB/SHA256SUMS}]}
/opt/f/x2: {archive.extracted: [{source: WEB/t.tar}, {skip_verify: True}]}
/opt/f/x5: {archive.extracted: [{source: [WEB/nosuch.tar, WEB/t.tar]}, {source_hash: WEB/SHA256SUMS}]}
appended_web: {file.append: [{name: /opt/f/lines}, {source: WEB/a.txt}, {source_hash: HASH}]}
";

/// Servers that mean harm: each state fails and says why, and nothing is made. Python waits for an hour, or takes what comes.
pub(super) fn none_is_taken_in(side: &Side, web: &Web) {
    let bad = ["short", "endless", "loop", "away", "private", "hangs"];
    let state = |path: &&str| {
        let source = format!("source: 'http://127.0.0.1:{}/{path}'", web.port);
        format!("{path}: {{file.managed: [{{name: /opt/f/bad_{path}}}, {{{source}}}, {{skip_verify: True}}]}}\n")
    };
    let word = format!(
        "/opt/f/word: {{file.managed: [{{source: 'http://user:word@127.0.0.1:{}/private'}}, {{skip_verify: True}}]}}\n",
        web.port
    );
    let archive = format!(
        "/opt/f/x6: {{archive.extracted: [{{source: 'http://127.0.0.1:{}/nosuch.tar'}}, {{skip_verify: True}}]}}\n",
        web.port
    );
    let applied = side.apply(&(bad.iter().map(state).collect::<String>() + &word + &archive), false);
    let of = |id: &str| {
        let states = applied.as_object().expect("states");
        let (_, state) = states.iter().find(|(tag, _)| tag.contains(&format!("_|-{id}_|-"))).expect("the state");
        (state["result"].clone(), state["comment"].as_str().unwrap_or_default().to_owned())
    };
    for (id, says) in bad.iter().zip(["", "", "redirect", "127.0.0.2:1", "HTTP 401: Unauthorized reading /private"]) {
        let (result, comment) = of(id);
        assert!(result == false && comment.contains(says), "{id}: {comment}");
    }
    // The limit of the state ends it, or what is left of it ends the request: whichever is first.
    let (result, comment) = of("hangs");
    assert!(
        result == false && (comment.contains("limit of 10 s") || comment.contains("not done in its time")),
        "{comment}"
    );
    assert!(of("/opt/f/word").1.contains("the URL has a user in it"), "{applied}");
    assert_eq!(of("/opt/f/x6").1, "Error: HTTP 404: Not Found reading /nosuch.tar");
    assert!(!applied.to_string().contains("user:word"), "{applied}");
    assert_eq!(side.root.shell("ls /opt/f | grep -c bad_ || true"), "0\n");
}
