#!/usr/bin/env python3
"""Within a crate, modules import one way: what a module imports does not reach it again (make lint).

The modules are those at the top of a crate's src; what counts is every `crate::` in code outside of tests.
"""
import pathlib
import re
import sys


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
            text = file.read_text().split("#[cfg(test)]\nmod tests {")[0]
            text = re.sub(r"(?m)^\s*//.*$", "", text)
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
    root, wrong = pathlib.Path(__file__).resolve().parent.parent, []
    for manifest in sorted(root.glob("**/Cargo.toml")):
        src, crate = manifest.parent / "src", str(manifest.parent.relative_to(root))
        if "target" in crate.split("/") or not src.is_dir():
            continue
        edges = imports(src)
        circle = sorted(module for module in edges if reaches(edges, module, module))
        if circle:
            among = [f"{a} -> {b}" for a in circle for b in sorted(edges[a]) if b in circle]
            wrong.append(f"{crate}: modules import each other in a circle: {', '.join(among)}")
    sys.exit("\n".join(f"imports: {line}" for line in wrong) if wrong else 0)


main()
