#!/bin/bash
# Builds the programs and writes one image archive each to bin/images:
#
#   bin/images/<name>.tar   for `make images-load`, docker load, kind load image-archive
#   bin/images/tag          the tag that all of them have
#   bin/images/names        their full names
#
# Without IMG_TAG the tag is a hash of the binaries: what has not changed keeps
# its name, and a cluster never runs an older program under a newer name.
set -euo pipefail

declare -A programs=(
	[operator]=cmd/headgate-operator
	[sidecar]=cmd/headgate-sidecar
	[echo]=hack/demo/echo
)

out=bin/images
mkdir -p "$out"
rm -f "$out"/*.tar "$out"/tag "$out"/names

binaries=()
for name in "${!programs[@]}"; do
	program=${programs[$name]}
	[[ -d $program ]] || continue
	# The state of the repository must not change the hash. Without cgo, as in the
	# cluster's build: the two share many compiled packages.
	CGO_ENABLED=0 "$GO" build -buildvcs=false -ldflags "-s -w" -o "bin/${program##*/}" "./$program"
	binaries+=("$name=bin/${program##*/}")
done
[[ ${#binaries[@]} -gt 0 ]] || { echo "images: there are no programs to build yet" >&2; exit 1; }

mapfile -t binaries < <(printf '%s\n' "${binaries[@]}" | sort)
tag=${IMG_TAG:-$(cat "${binaries[@]#*=}" | sha256sum | cut -c1-12)}
echo "$tag" >"$out/tag"
for entry in "${binaries[@]}"; do
	name=${entry%%=*}
	"$IMAGE" -o "$out/$name.tar" -t "$IMG_REGISTRY/$name:$tag" ${PUSH:+-push} "${entry#*=}"
	echo "$IMG_REGISTRY/$name:$tag" | tee -a "$out/names"
done
