#!/usr/bin/env python3
"""Checks that scripts/install.sh installs all that this build tree was made with, from a machine with nothing on it.

    scripts/check_packages.py build/release

apt resolves `weft_packages` against an empty package state (nothing is installed), which gives the packages that a
minimal system gets. Every file outside of the project that the build tree names (tools and libraries in the CMake cache,
files that configuring read, headers that compiling read) must belong to one of them, or to the packages that every
Debian system has. Exit status 77: it cannot be checked here, with the reason.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = 77
# Tools that CMake's find modules of other packages look for and that nothing of the build runs.
UNUSED = {"pkg-config", "xmllint"}


def output(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def weft_packages():
    script = 'source "$0" && printf "%s\\n" "${weft_packages[@]}"'
    return output(["bash", "-c", script, str(ROOT / "scripts/install.sh")], check=True).stdout.split()


def resolve(packages):
    """What apt would install for `packages` where nothing is installed; a text where it cannot say."""
    with tempfile.NamedTemporaryFile() as nothing:
        found = output(["apt-get", "install", "--simulate", "--no-install-recommends", "-o",
                        f"Dir::State::status={nothing.name}", *packages])
    if found.returncode != 0:
        return None, (found.stdout + found.stderr).strip()
    return set(re.findall(r"^Inst (\S+)", found.stdout, re.M)), ""


def everywhere():
    """Packages of every Debian system: the essential and the required ones."""
    rows = output(["dpkg-query", "-W", "-f", "${Package} ${Essential} ${Priority}\\n"], check=True).stdout
    return {row.split()[0] for row in rows.splitlines() if " yes " in row or row.endswith(" required")}


def files_of(build):
    """Existing files outside of the project and the build tree that the tree names."""
    ninja = (build / "build.ninja").read_text()
    cache = (build / "CMakeCache.txt").read_text()
    named = set(re.findall(r":(?:FILEPATH|PATH|STRING|INTERNAL)=(/[^;\s]+)", cache))
    named |= set(re.findall(r"(?<![\w=])(/[\w.+/-]+)", ninja.replace("$:", ":")))
    deps = output(["ninja", "-C", str(build), "-t", "deps"], check=True).stdout
    named |= set(re.findall(r"^    (/\S+)", deps, re.M))
    project = (str(ROOT) + "/", str(build.resolve()) + "/")
    return {name for name in named if not (name + "/").startswith(project) and Path(name).is_file()}


def owners(files):
    """Packages of each file that has some. The link of a development package is its own, whatever it points to; only
    what no package holds (an alternative of several compilers, say) is followed. Files below /usr may be recorded
    without it."""
    owner = {}
    for spell in (str, lambda name: str(Path(name).resolve())):
        spellings = {}
        for name in files - owner.keys():
            spellings[spell(name)] = spellings[spell(name).removeprefix("/usr")] = name
        listed = sorted(spellings)
        for start in range(0, len(listed), 500):
            for row in output(["dpkg-query", "-S", *listed[start:start + 500]]).stdout.splitlines():
                packages, _, path = row.rpartition(": ")
                if path in spellings and not packages.startswith("diversion"):
                    owner.setdefault(spellings[path], set()).update(p.split(":")[0] for p in packages.split(", "))
    return owner


def main():
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "build.ninja").exists():
        print("usage: check_packages.py BUILD_TREE (of the generator Ninja)", file=sys.stderr)
        return 2
    try:
        resolved, reason = resolve(weft_packages())
    except FileNotFoundError as error:
        print(f"skipped: {error.filename} is not on this machine; the packages are Debian's")
        return SKIPPED
    if resolved is None:
        if not any(Path("/var/lib/apt/lists").glob("*Packages*")):
            print("skipped: this machine has no package lists; run apt-get update")
            return SKIPPED
        print(f"apt cannot install the packages of scripts/install.sh from nothing:\n{reason}")
        return 1
    files = files_of(Path(sys.argv[1]))
    owner = owners(files)
    installed = resolved | everywhere()
    lost = sorted(name for name in files
                  if name in owner and not owner[name] & installed and Path(name).name not in UNUSED)
    for name in lost:
        print(f"{name} belongs to {' or '.join(sorted(owner[name]))}, which scripts/install.sh does not install")
    for name in sorted(files - owner.keys()):
        print(f"not checked, as it belongs to no package: {name}")
    print(f"{len(weft_packages())} packages named, {len(resolved)} resolved from nothing; {len(files)} files of the "
          f"system used, {len(lost)} not among them")
    return 1 if lost or not files else 0


if __name__ == "__main__":
    sys.exit(main())
