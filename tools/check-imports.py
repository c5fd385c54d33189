#!/usr/bin/env python3
"""Within a crate, modules import one way: what a module imports does not reach it again (make lint).

The modules are those at the top of a crate's src; what counts is every `crate::` outside of tests.
"""
import pathlib
import re
import sys

# Imports that close a circle, of old. Whoever unties one takes it out here; none is added.
KNOWN = """
sandbox/executor: directories -> narrower
sandbox/executor: guest -> host
sandbox/executor: guest -> memory
sandbox/executor: guest -> outcome
sandbox/executor: outcome -> guest
sandbox/executor: params -> modules
""".split("\n")[1:-1]


def named(text):
    """The modules behind each `crate::`, also those in braces."""
    for match in re.finditer(r"crate::(?:(\w+)|\{([^;]*)\})", text):
        flat = match[2] or ""
        while "{" in flat:
            flat = re.sub(r"\{[^{}]*\}", "", flat)
        yield from [match[1]] if match[1] else re.findall(r"(?:^|,)\s*(\w+)", flat)


def imports(src):
    files = [file for file in src.rglob("*.rs") if file.stem not in ("tests", "lib", "main") or file.parent != src]
    top = lambda file: file.relative_to(src).parts[0].removesuffix(".rs")
    edges = {top(file): set() for file in files}
    for file in files:
        if file.stem != "tests":
            text = file.read_text().split("#[cfg(test)]\nmod tests")[0]
            edges[top(file)] |= {to for to in named(text) if to in edges and to != top(file)}
    return edges


def reaches(edges, start, goal):
    seen, todo = set(), [start]
    while todo:
        for to in edges[todo.pop()] - seen:
            if to == goal:
                return True
            seen.add(to)
            todo.append(to)
    return False


def main():
    root, wrong, closing = pathlib.Path(__file__).resolve().parent.parent, [], set()
    for manifest in sorted(root.glob("**/Cargo.toml")):
        src, crate = manifest.parent / "src", str(manifest.parent.relative_to(root))
        if "target" in crate.split("/") or not src.is_dir():
            continue
        edges = imports(src)
        for start in sorted(edges):
            for to in sorted(edges[start]):
                if reaches(edges, to, start) and f"{crate}: {start} -> {to}" in KNOWN:
                    closing.add(f"{crate}: {start} -> {to}")
        for edge in closing:
            start, to = edge.split(": ")[1].split(" -> ")
            if edge.startswith(f"{crate}: "):
                edges[start].discard(to)
        circle = sorted(module for module in edges if reaches(edges, module, module))
        if circle:
            among = [f"{a} -> {b}" for a in circle for b in sorted(edges[a]) if b in circle]
            wrong.append(f"{crate}: modules import each other in a circle: {', '.join(among)}")
    wrong += [f"{edge}: closes no circle any more; take it out of KNOWN" for edge in KNOWN if edge not in closing]
    sys.exit("\n".join(f"imports: {line}" for line in wrong) if wrong else 0)


main()
