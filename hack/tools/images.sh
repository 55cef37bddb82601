#!/bin/bash
# Builds the programs and writes one image archive each to bin/images:
#
#   bin/images/<name>.tar             for `make images-load`, docker load, kind load image-archive;
#                                     with ARCHS=amd64,arm64 a folder <name> in OCI's layout
#   bin/images/<program>.<arch>.spdx.json   what the program is made of
#   bin/images/tag                    the tag that all of them have
#   bin/images/names                  their full names
#
# Without IMG_TAG the tag is a hash of the binaries: what has not changed keeps
# its name, and a cluster never runs an older program under a newer name.
set -euo pipefail

declare -A programs=(
	[operator]=cmd/headgate-operator
	[sidecar]=cmd/headgate-sidecar
	[echo]=hack/demo/echo
)
# The most bytes that a program may have: a sidecar is pulled by every node, and
# lives beside every pod.
declare -A limits=([operator]=60000000 [sidecar]=20000000 [echo]=20000000)

# gRPC's request traces need html/template, whose calls by name keep the linker
# from leaving out any exported method of anything: 4 MB that nobody looks at.
tags=grpcnotrace

out=bin/images
archs=${ARCHS:-$("$GO" env GOARCH)}
mkdir -p "$out"
rm -rf "$out"/*

names=$(printf '%s\n' "${!programs[@]}" | sort)
binaries=()
for name in $names; do
	program=${programs[$name]}
	for arch in ${archs//,/ }; do
		# The state of the repository must not change the hash. Without cgo, as in the
		# cluster's build: the two share many compiled packages.
		CGO_ENABLED=0 GOARCH=$arch "$GO" build -buildvcs=false -tags "$tags" -ldflags "-s -w" -o "bin/$arch/${program##*/}" "./$program"
		binaries+=("bin/$arch/${program##*/}")
	done
done

tag=${IMG_TAG:-$(cat "${binaries[@]}" | sha256sum | cut -c1-12)}
echo "$tag" >"$out/tag"
for name in $names; do
	archive=$out/$name
	[[ $archs == *,* ]] || archive+=.tar
	"$IMAGE" -o "$archive" -t "$IMG_REGISTRY/$name:$tag" -arch "$archs" -limit "${limits[$name]}" -sbom "$out" \
		${PUSH:+-push} "bin/{arch}/$(basename "${programs[$name]}")"
	echo "$IMG_REGISTRY/$name:$tag" | tee -a "$out/names"
done
