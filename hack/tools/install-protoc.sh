#!/bin/bash
# Installs the protobuf compiler with Debian's package manager, or says what to do.
set -euo pipefail

command -v apt-get >/dev/null || {
	echo "protoc is missing: install the protobuf compiler with your distribution's package manager" >&2
	exit 1
}
echo "installing protobuf-compiler"
export DEBIAN_FRONTEND=noninteractive
apt-get -qq -o DPkg::Lock::Timeout=300 update
apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends protobuf-compiler
