#!/bin/bash
# Writes the chart as one manifest, for whoever installs without Helm: kubectl apply --server-side -f install.yaml
# IMG_TAG names a release's images in IMG_REGISTRY; without it they are the chart's own.
set -euo pipefail

out=$1
images=()
if [[ -n ${IMG_TAG:-} ]]; then
	images=(--set "image.repository=$IMG_REGISTRY/operator,image.tag=$IMG_TAG"
		--set "sidecar.image.repository=$IMG_REGISTRY/sidecar,sidecar.image.tag=$IMG_TAG")
fi
mkdir -p "$(dirname "$out")"
{
	printf 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: headgate-system\n'
	"$HELM" template headgate charts/headgate --namespace headgate-system --no-hooks ${images[@]+"${images[@]}"} | grep -v '^# Source: '
} >"$out.partial"
mv "$out.partial" "$out"
echo "$out"
