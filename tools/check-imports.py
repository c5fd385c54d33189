#!/usr/bin/env python3
"""Within a crate, modules import one way: what a module imports does not reach it again (make lint).

The modules are those at the top of a crate's src; what counts is every `crate::` in code outside of tests. A closed
room is a folder of a crate that imports nothing else of the crate; the modules in it import one way too.
"""
import pathlib
import re
import sys


CLOSED_ROOMS = ["sandbox/src/kernel"]


def code(file):
    """The code of a file without comments and tests."""
    if "tests" in (file.stem, file.parent.name):
        return ""
    return re.sub(r"(?m)^\s*//.*$", "", file.read_text().split("#[cfg(test)]\nmod tests {")[0])


def named(text, base):
    """The modules behind each `crate::`, also those in braces. With a longer base, those behind that."""
    for match in re.finditer(base + r"(?:(\w+)|\{([^;]*)\})", text):
        flat = match[2] or ""
        while "{" in flat:
            flat = re.sub(r"\{[^{}]*\}", "", flat)
        yield from [match[1]] if match[1] else re.findall(r"(?:^|,)\s*(\w+)", flat)


def imports(src, base="crate::"):
    files = [file for file in src.rglob("*.rs") if file.stem not in ("tests", "lib", "main", "mod") or file.parent != src]
    top = lambda file: file.relative_to(src).parts[0].removesuffix(".rs")
    edges = {top(file): set() for file in files}
    for file in files:
        edges[top(file)] |= {to for to in named(code(file), base) if to in edges and to != top(file)}
    return edges


def leaving(room, base):
    """The imports of a closed room that lead out of it: other `crate::` paths, and `super::` above the room."""
    inside = base.removeprefix("crate::").removesuffix("::")
    for file in sorted(room.rglob("*.rs")):
        text, path = code(file), file.relative_to(room).with_suffix("").parts
        out = [f"crate::{to}" for to in named(text, "crate::") if to != inside]
        # Forms that hide where they lead.
        out += re.findall(r"\bcrate::\*|\bcrate\s+as\b|[{,]\s*super\b", text)
        depth = len(path) - (path[-1] == "mod")
        out += [chain for chain in re.findall(r"(?:\bsuper::)+\w+", text) if chain.count("super::") > depth]
        yield from (f"{file.relative_to(room)}: {to}" for to in out)


def reaches(edges, start, goal):
    seen, todo = set(), [start]
    while todo:
        for to in edges[todo.pop()] - seen:
            if to == goal:
                return True
            seen.add(to)
            todo.append(to)
    return False


def circles(where, edges):
    circle = sorted(module for module in edges if reaches(edges, module, module))
    among = [f"{a} -> {b}" for a in circle for b in sorted(edges[a]) if b in circle]
    return [f"{where}: modules import each other in a circle: {', '.join(among)}"] if circle else []


def main():
    root, wrong = pathlib.Path(__file__).resolve().parent.parent, []
    for manifest in sorted(root.glob("**/Cargo.toml")):
        src, crate = manifest.parent / "src", str(manifest.parent.relative_to(root))
        if "target" in crate.split("/") or not src.is_dir():
            continue
        wrong += circles(crate, imports(src))
    for name in CLOSED_ROOMS:
        room, base = root / name, f"crate::{name.split('/src/')[1].replace('/', '::')}::"
        wrong += circles(name, imports(room, base))
        wrong += [f"{name} is closed and imports from outside: {out}" for out in leaving(room, base)]
    sys.exit("\n".join(f"imports: {line}" for line in wrong) if wrong else 0)


main()
