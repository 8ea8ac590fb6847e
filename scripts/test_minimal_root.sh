#!/usr/bin/env bash
# Runs the README's two commands as on a fresh machine: in a minimal Debian 12 root with nothing installed, as root, from
# an unpacked archive (no git there) and from a clone that belongs to another user, each command twice.
#
#   scripts/test_minimal_root.sh [FOLDER]    as root; FOLDER (default: a temporary one) takes the root, about 4 GiB
#
# Needs mmdebstrap or debootstrap, and git here. Takes long: everything is built once without a compiler cache.
set -euo pipefail
source_tree=$(cd "$(dirname "$0")/.." && pwd)
if [ "$(id -u)" -ne 0 ]; then
  echo "test_minimal_root.sh: a root file system can only be made as root" >&2
  exit 1
fi
folder=${1:-$(mktemp -d)}
root=$folder/root
mkdir -p "$root"
keep=${1:-}
trap '[ -n "$keep" ] || rm -rf --one-file-system "$folder"' EXIT

make_root() {
  if command -v mmdebstrap >/dev/null; then
    mmdebstrap --quiet --variant=minbase bookworm "$root"
  elif command -v debootstrap >/dev/null; then
    debootstrap --variant=minbase bookworm "$root"
  else
    echo "test_minimal_root.sh: neither mmdebstrap nor debootstrap is installed" >&2
    exit 1
  fi
}

# What the root needs of this machine to reach its packages: names, how apt fetches (a proxy, say), certificates.
lend_network() {
  apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/90network" || true
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
}

# Runs a command in the root. The mounts live in a namespace of their own and end with the command.
inside() {
  unshare --mount --propagation private bash -c '
    for place in proc sys dev; do mount --rbind "/$place" "$0/$place"; done
    exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb bash -c "cd /weft && $1"
  ' "$root" "$1"
}

# Both commands, twice; the second time there is nothing to install and nothing to build.
both_commands() {
  for round in first second; do
    for command in scripts/demo.sh scripts/test.sh; do
      echo "== $1, $command, the $round time"
      inside "$command" >"$folder/log" 2>&1 || {
        tail -n 60 "$folder/log"
        echo "== FAILED: $1, $command, the $round time; the whole output: $folder/log" >&2
        keep=1
        exit 1
      }
      grep -E '^Installing|newly installed|test.*passed|tests failed|validation loss' "$folder/log" || tail -n 3 "$folder/log"
    done
  done
}

make_root
lend_network
packages_of() { chroot "$root" dpkg-query -W -f '${Package} ${Version}\n' | sort; }
packages_of >"$folder/before"
mkdir "$root/weft"
git -c safe.directory='*' -C "$source_tree" archive HEAD | tar -x -C "$root/weft"
both_commands "unpacked archive"
packages_of >"$folder/after"
echo "== installed: $(comm -13 "$folder/before" "$folder/after" | wc -l) packages"
comm -13 "$folder/before" "$folder/after" | cut -d ' ' -f 1 | paste -s -d ' '

# At the same place, so that the compiler cache, which the first command installed, serves both.
rm -rf "$root/weft"
git -c safe.directory='*' clone -q "$source_tree" "$root/weft"
chown -R 1234:1234 "$root/weft"
both_commands "clone of another user"
echo "== both commands pass from an archive and from a clone, twice"
