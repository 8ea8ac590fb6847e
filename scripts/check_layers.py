#!/usr/bin/env python3
"""Checks the structure of the tree: layers, include cycles between directories, length of files and functions.

Layers, from docs/overview.md: a directory may include only directories of a lower layer, or of its own.
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
    for error in errors:
        print(error)
    if not errors:
        print(f"layers, include cycles and file lengths: {len(names)} files in order")
    return 1 if errors else 0


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
