#!/bin/bash
# Regenerates everything in a copy of the tree and compares: the tree itself
# stays as it is, whether the comparison fails or not.
set -euo pipefail

root=$(git rev-parse --show-toplevel)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cd "$root"
# Deleted files are still in the index: tar warns about them, and they must not be in the copy.
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -cf - 2>/dev/null | tar -xf - -C "$copy"
cp -r "$copy" "$copy.before"
trap 'rm -rf "$copy" "$copy.before"' EXIT

make --no-print-directory -C "$copy" generate >"$copy.before/generate.log" 2>&1 || {
	cat "$copy.before/generate.log" >&2
	echo "verify-generated: 'make generate' failed" >&2
	exit 1
}
rm "$copy.before/generate.log"

# The comment with protoc's version is not compared: distributions have different ones.
if ! diff -ruN -I '^// 	protoc  *v' "$copy.before" "$copy" | sed -e "s|$copy.before|committed|" -e "s|$copy|generated|"; then
	echo >&2
	echo "verify-generated: generated code is stale; run 'make generate' and commit the result" >&2
	exit 1
fi
