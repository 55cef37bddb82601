#!/bin/bash
# Checks the chart: its own tests, and that Helm 3, Helm 4 and kustomize make the same of it.
set -euo pipefail

chart=charts/headgate
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Values that change what is rendered, one line each; the first line has the defaults.
variants=(
	""
	"--set replicas=1,podDisruptionBudget.enabled=false,debug=true"
	"--set certificates.certManager.enabled=true,networkPolicy.enabled=true,webhook.failurePolicy=Fail"
	"--set rollout.enabled=false,crds.enabled=false,serviceAccount.create=false,namespaceSelector.matchLabels.team=a"
)

"$HELM_UNITTEST" --strict "$chart"
for helm in "$HELM" "$HELM3"; do
	"$helm" lint --strict "$chart" >"$out/lint" 2>&1 || { cat "$out/lint" >&2; exit 1; }
done
# The two write documents in another order, and blank lines between them.
sorted() { grep -v '^$' | tr '\n' '\a' | sed 's/\a---\a/\n/g' | sort | tr '\a' '\n'; }
for set in "${variants[@]}"; do
	for helm in "$HELM" "$HELM3"; do
		# shellcheck disable=SC2086 # a line of options
		"$helm" template headgate "$chart" --namespace headgate-system --kube-version 1.33.0 $set | sorted >"$out/$(basename "$helm")"
	done
	[[ $(wc -l <"$out/helm") -gt 300 ]] || { echo "chart: next to nothing is rendered with '$set'" >&2; exit 1; }
	diff "$out/$(basename "$HELM")" "$out/$(basename "$HELM3")" >&2 || { echo "chart: Helm 3 and Helm 4 differ with '$set'" >&2; exit 1; }
done
if "$HELM" template headgate "$chart" --kube-version 1.32.0 >/dev/null 2>&1; then
	echo "chart: a cluster without native sidecars was accepted" >&2
	exit 1
fi
"$KUSTOMIZE" build config/default >/dev/null
