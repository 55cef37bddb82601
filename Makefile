# Headgate's Makefile. `make` alone lists what there is.
#
# Every tool is built from a pinned Go module (hack/tools) into a cache outside
# of the repository, and built again only when a pin changes.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# What you may override, for example: make cluster-up CLUSTER=current
CLUSTER        ?= local
HEADGATE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/headgate
IMG_REGISTRY   ?= localhost/headgate
IMG_TAG        ?=
GO             ?= go
export CLUSTER HEADGATE_CACHE IMG_REGISTRY IMG_TAG

include hack/tools/tools.mk

##@ General

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  \033[36m%-18s\033[0m %s\n", $$1, $$2}' Makefile
	@printf '\nVariables: CLUSTER=%s  IMG_REGISTRY=%s  IMG_TAG=%s  HEADGATE_CACHE=%s\n' \
		'$(CLUSTER)' '$(IMG_REGISTRY)' '$(or $(IMG_TAG),<hash of the binaries>)' '$(HEADGATE_CACHE)'

.PHONY: tools
tools: $(TOOLS) ## Build every pinned tool (other targets build what they need).

##@ Code

HEADER := hack/boilerplate.go.txt
API    := ./api/v1alpha1/...
PROTOS := $(wildcard api/*/v*/*.proto)

.PHONY: generate
generate: generate-api generate-manifests generate-proto generate-config generate-values generate-reference ## Write deep copies, apply configurations, CRDs, RBAC, webhooks, protobuf.

.PHONY: generate-api
generate-api: $(CONTROLLER_GEN)
	$(CONTROLLER_GEN) object:headerFile=$(HEADER) applyconfiguration:headerFile=$(HEADER) crd paths=$(API) \
		output:crd:dir=config/crd/bases

.PHONY: generate-manifests
generate-manifests: $(CONTROLLER_GEN)
	$(if $(wildcard controllers/),$(CONTROLLER_GEN) rbac:roleName=headgate-operator webhook paths=./controllers/... \
		output:rbac:dir=config/rbac output:webhook:dir=config/webhook)
	@# The chart templates what controller-gen wrote: one source for both.
	@cp config/crd/bases/ratelimit.headgate.dev_ratelimitpolicies.yaml charts/headgate/files/crd.yaml
	@cp config/rbac/role.yaml charts/headgate/files/role.yaml
	@cp config/webhook/manifests.yaml charts/headgate/files/webhook.yaml

.PHONY: generate-config
generate-config: generate-manifests $(HELM)
	@# config/manager is the chart, rendered with its defaults.
	@$(HELM) template headgate charts/headgate --namespace headgate-system --no-hooks --set crds.enabled=false \
		| grep -v '^# Source: ' >config/manager/headgate.yaml

.PHONY: generate-values
generate-values: ## Write what values.yaml says of each value into the schema and the README of the chart.
	@$(GO) run ./hack/values charts/headgate

.PHONY: generate-reference
generate-reference: generate-api
	@$(GO) run ./hack/reference config/crd/bases/ratelimit.headgate.dev_ratelimitpolicies.yaml hack/reference/examples.yaml docs/reference/policy.md
	@$(GO) run ./hack/reference/metrics docs/reference/metrics.md
	@$(GO) run ./hack/reference/conditions api/v1alpha1/conditions.go docs/reference/conditions.md
	@$(GO) run ./hack/reference/flags docs/reference/flags.md ./cmd/headgate-operator ./cmd/headgate-sidecar

.PHONY: generate-proto
generate-proto: $(PROTOC_GEN_GO) $(PROTOC_GEN_GO_GRPC) | protoc
	$(if $(PROTOS),PATH=$(TOOLS_BIN):$$PATH protoc $(PROTOS) \
		--go_out=. --go_opt=paths=source_relative \
		--go-grpc_out=. --go-grpc_opt=paths=source_relative)

# protoc is the one tool that is not a Go program.
.PHONY: protoc
protoc:
	@hack/tools/install-protoc.sh

.PHONY: verify-generated
verify-generated: ## Fail when generated code differs from what `make generate` writes.
	@hack/tools/verify-generated.sh

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters; for api/, the Kubernetes API conventions too.
	$(GOLANGCI_LINT) run --allow-parallel-runners ./...

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code.
	$(GOLANGCI_LINT) fmt ./...

##@ Tests

.PHONY: test
test: verify-generated lint chart unit e2e ## Everything: generated code, linters, chart, unit tests, end-to-end tests on a real cluster.

.PHONY: unit
unit: ## Unit tests with the race detector, against a real API server where they need one.
	KUBEBUILDER_ASSETS="$$($(GO) run ./hack/cluster assets)" $(GO) test -race ./...
	@# What the race detector makes too slow, or changes: long simulations, counts of allocations.
	$(GO) test ./limiter/... ./sidecar/admission
	cd hack/tools && $(GO) test ./image
	@# What others have written about the protocols: h2spec, gRPC's interoperability cases.
	cd test/conformance && $(GO) test -race ./...
	@# Alerts, runbooks and dashboards, against the metrics that exist.
	cd test/monitoring && $(GO) test -race ./...

.PHONY: chart
chart: $(HELM) $(HELM3) $(HELM_UNITTEST) $(KUSTOMIZE) ## Lint and unit-test the chart; render it by Helm 3 and 4 and by kustomize.
	@HELM=$(HELM) HELM3=$(HELM3) HELM_UNITTEST=$(HELM_UNITTEST) KUSTOMIZE=$(KUSTOMIZE) hack/tools/chart.sh

# These need a cluster: CLUSTER=local, which they start, or CLUSTER=current.

.PHONY: e2e
e2e: $(HELM) $(ADAPTER) ## End-to-end tests on a real cluster; records and logs are kept in bin/e2e.
	@HELM=$(HELM) ADAPTER=$(ADAPTER) $(GO) test -tags e2e -count=1 -timeout 60m -parallel 2 -v ./test/e2e

.PHONY: demo
demo: ## Watch a limit hold while pods come and go: cluster, operator, app, load and verdict.
	@HELM=$(HELM) $(GO) run ./hack/demo

.PHONY: demo-down
demo-down: ## Remove all that the demo made, the local cluster included.
	@HELM=$(HELM) $(GO) run ./hack/demo down

.PHONY: bench-limiter
bench-limiter: ## Measure the limiter beside its peers; writes bin/bench/limiter.json and docs/benchmarks/limiter.md.
	cd hack/bench/limiter && $(GO) run . -json ../../../bin/bench/limiter.json -page ../../../docs/benchmarks/limiter.md

.PHONY: bench-quota
bench-quota: ## Measure how a limit that is lent is used; writes bin/bench/quota.json and docs/benchmarks/quota.md.
	@$(GO) run ./hack/bench/quota

SEEDS ?= 10000
.PHONY: sim
sim: ## Let everything go wrong in SEEDS simulated worlds, and look at every interval of each (nightly: SEEDS=10000).
	$(GO) test -count=1 -timeout 2h ./limiter/escrow/sim -run Seed -seeds $(SEEDS) -v

.PHONY: bench-proxy
bench-proxy: ## Measure the sidecar beside other proxies; writes bin/bench/proxy.json and docs/benchmarks/proxy.md.
	cd hack/bench/proxy && $(GO) run . -json ../../../bin/bench/proxy.json -page ../../../docs/benchmarks/proxy.md

##@ Images

.PHONY: images
images: $(IMAGE) ## Build the programs and write their images to bin/images.
	@IMAGE=$(IMAGE) GO=$(GO) hack/tools/images.sh

.PHONY: images-load
images-load: images ## Import the images into the nodes of the local cluster.
	@$(GO) run ./hack/cluster images load bin/images/*.tar

.PHONY: images-push
images-push: $(IMAGE) ## Push the images to IMG_REGISTRY, for CLUSTER=current.
	@IMAGE=$(IMAGE) GO=$(GO) PUSH=yes hack/tools/images.sh

.PHONY: release-images
release-images: $(IMAGE) ## Build the images for amd64 and arm64, with their SPDX; PUSH=yes pushes them to IMG_REGISTRY.
	@IMAGE=$(IMAGE) GO=$(GO) ARCHS=amd64,arm64 PUSH=$(PUSH) hack/tools/images.sh

.PHONY: release-manifests
release-manifests: $(HELM) ## Write dist/install.yaml: the chart, rendered with the images of a release (IMG_REGISTRY, IMG_TAG).
	@HELM=$(HELM) hack/tools/release-manifests.sh dist/install.yaml

.PHONY: plugin-archives
plugin-archives: ## Build kubectl-headgate for every platform, with krew's manifest, for the release VERSION=v0.3.0; writes dist/krew.
	@$(GO) run ./hack/krew -version '$(VERSION)'

##@ Cluster

.PHONY: cluster-up
cluster-up: ## Start or repair the local two-node cluster.
	@$(GO) run ./hack/cluster up

.PHONY: cluster-down
cluster-down: ## End the local cluster and remove its state.
	@$(GO) run ./hack/cluster down

.PHONY: cluster-env
cluster-env: $(HELM) ## Print what a shell needs for the local cluster: eval "$$(make -s cluster-env)".
	@$(GO) run ./hack/cluster env
	@echo 'export PATH=$(dir $(HELM)):$$PATH'

.PHONY: cluster-status
cluster-status: ## Show what of the local cluster runs.
	@$(GO) run ./hack/cluster status
