#!/bin/bash
# Installs the protobuf compiler, and the types of Google's that come in a package of their own, with Debian's package
# manager; or says what to do. Does nothing when both are there.
set -euo pipefail

well_known() {
	local probe
	probe=$(mktemp -d)
	trap 'rm -rf "$probe"' RETURN
	echo 'syntax = "proto3"; import "google/protobuf/timestamp.proto";' >"$probe/probe.proto"
	protoc -I "$probe" -I /usr/include -o /dev/null "$probe/probe.proto" 2>/dev/null
}
command -v protoc >/dev/null && well_known && exit 0

command -v apt-get >/dev/null || {
	echo "protoc or google/protobuf/timestamp.proto is missing: install the protobuf compiler and its includes with your distribution's package manager" >&2
	exit 1
}
echo "installing protobuf-compiler and libprotobuf-dev"
export DEBIAN_FRONTEND=noninteractive
apt-get -qq -o DPkg::Lock::Timeout=300 update
apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends protobuf-compiler libprotobuf-dev
