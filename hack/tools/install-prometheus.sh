#!/bin/bash
# Installs Prometheus and promtool with Debian's package manager; or says what to do. Does nothing when both are there. The
# service that the package brings is not started: who needs a Prometheus starts one.
set -euo pipefail

command -v promtool >/dev/null && command -v prometheus >/dev/null && exit 0

command -v apt-get >/dev/null || {
	echo "prometheus or promtool is missing: install Prometheus with your distribution's package manager" >&2
	exit 1
}
echo "installing prometheus"
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get -qq -o DPkg::Lock::Timeout=300 update
apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends prometheus
