#!/usr/bin/env python3
"""Checks the structure of the tree: layers, include cycles between directories, length of files, names of passes, and
that no file names the folder of the checkout, as a recorded source location would.

Layers, from docs/overview.md: a directory may include only directories of a lower layer, or of its own.
Passes, from passes/passes.td: `weft-foo-bar` is FooBarPass and has a test tests/passes/**/foo_bar.mlir; all but the
gates, which stand in one file, are in a file foo_bar.cc in the folder of that test.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

from sources import ROOT, sources

# Longest prefix decides.
LAYER = {
    "runtime/base": 0,
    "planner/machine": 0,
    "ir/layout": 1,
    "runtime/plan": 1,
    "kernels/describe": 1,
    "ir": 2,
    "kernels": 2,
    "planner": 2,
    "passes": 3,
    "runtime": 3,
    "frontend": 4,
    "examples": 5,
    "tools": 5,
    "tests": 6,
}
# What `passes` may see of the layers at or below its own that also execute.
FORBIDDEN = [
    ("passes", "runtime/exec"),
    ("passes", "runtime/comm"),
    ("passes", "runtime/device"),
    ("passes", "runtime/io"),
    ("passes", "kernels/cpu"),
    ("passes", "kernels/kernel.h"),
]
NO_LLVM = ("runtime/", "kernels/", "frontend/weft/", "ir/layout/", "planner/")
FILE_LIMIT = 800
PASS = re.compile(r'^def (\w+) : Weft_Pass<"([\w-]+)">', re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def directory(name):
    best = max((prefix for prefix in LAYER if name == prefix or name.startswith(prefix + "/")), key=len, default=None)
    return best


def resolve(include):
    for base in ("", "frontend/"):
        if (ROOT / (base + include)).exists():
            return base + include
    return include if directory(include) else None


def main():
    names = sources((".cc", ".h", ".cu", ".cuh", ".td"))
    errors = [] if names else [f"no source file found below {ROOT}"]
    edges = defaultdict(set)
    for name in names:
        text = (ROOT / name).read_text(errors="replace")
        lines = text.count("\n")
        if lines > FILE_LIMIT:
            errors.append(f"{name}: {lines} lines, the limit is {FILE_LIMIT}")
        here = directory(name)
        if here is None:
            continue
        if name.startswith(NO_LLVM) and re.search(r'#include "(mlir|llvm)/', text):
            public_source = name.startswith("frontend/weft/") and name.endswith(".cc")
            if not public_source:
                errors.append(f"{name}: includes LLVM or MLIR, but this part of the tree is free of both")
        for include in INCLUDE.findall(text):
            target = resolve(include)
            if target is None:
                continue
            there = directory(target)
            if there is None:
                continue
            if LAYER[there] > LAYER[here]:
                errors.append(f"{name}: layer {LAYER[here]} ({here}) includes {target} of layer {LAYER[there]}")
            for user, used in FORBIDDEN:
                if name.startswith(user + "/") and target.startswith(used):
                    errors.append(f"{name}: {user} must not include {target}")
            source_dir, target_dir = str(Path(name).parent), str(Path(target).parent)
            if source_dir != target_dir and not name.startswith("tests/"):
                edges[source_dir].add(target_dir)
    errors += cycles(edges)
    checkout = f"{ROOT}/".encode()
    errors += [f"{name}: names the folder {ROOT} of this checkout; use a path from its root"
               for name in sources(("",)) if directory(name) and checkout in (ROOT / name).read_bytes()]
    passes = PASS.findall((ROOT / "passes/passes.td").read_text())
    errors += misnamed(passes) if passes else ["passes/passes.td: no pass is declared there"]
    for error in errors:
        print(error)
    if not errors:
        print(f"layers, include cycles, file lengths and {len(passes)} passes: {len(names)} files in order")
    return 1 if errors else 0


def misnamed(passes):
    """Passes whose class, file or test does not have their name."""
    errors = []
    for defined, argument in passes:
        name = argument.replace("-", "_")
        expected = "".join(part.capitalize() for part in argument.split("-")) + "Pass"
        if defined != expected:
            errors.append(f"passes/passes.td: --weft-{argument} is {defined}; it should be {expected}")
        tests = sorted((ROOT / "tests/passes").rglob(f"{name}.mlir"))
        if len(tests) != 1:
            errors.append(f"passes/passes.td: --weft-{argument} has {len(tests)} tests tests/passes/**/{name}.mlir; "
                          "it should have one")
            continue
        folder = tests[0].parent.relative_to(ROOT / "tests")
        if not argument.startswith("verify-") and not (ROOT / folder / f"{name}.cc").exists():
            errors.append(f"passes/passes.td: --weft-{argument} has a test in tests/{folder}, but no file "
                          f"{folder}/{name}.cc")
    return errors


def cycles(edges):
    """Each strongly connected set of directories with more than one member is reported once."""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while True:
                member = stack.pop()
                on_stack.discard(member)
                component.append(member)
                if member == node:
                    break
            if len(component) > 1:
                found.append("directories include each other in a cycle: " + ", ".join(sorted(component)))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


if __name__ == "__main__":
    sys.exit(main())
