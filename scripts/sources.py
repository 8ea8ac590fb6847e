#!/usr/bin/env python3
"""Prints the project's files with the given endings, one per line, relative to its root.

The tree is walked instead of asking git: the checks also run in an unpacked archive, without git, and in a clone that
belongs to somebody else.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def sources(endings):
    """Sorted names below the root that end in one of `endings`; build trees and hidden folders are left out."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        top = Path(folder) == ROOT
        folders[:] = [name for name in folders if not name.startswith(".") and not (top and name == "build")]
        found += [str((Path(folder) / name).relative_to(ROOT)) for name in files if name.endswith(tuple(endings))]
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(sources(sys.argv[1:])))
