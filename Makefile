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
export CLUSTER HEADGATE_CACHE

include hack/tools/tools.mk

##@ General

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  \033[36m%-18s\033[0m %s\n", $$1, $$2}' Makefile
	@printf '\nVariables: CLUSTER=%s  HEADGATE_CACHE=%s  IMG_REGISTRY=%s  IMG_TAG=%s\n' \
		'$(CLUSTER)' '$(HEADGATE_CACHE)' '$(IMG_REGISTRY)' '$(or $(IMG_TAG),<hash of the binaries>)'

.PHONY: tools
tools: $(TOOLS) ## Build every pinned tool (the others are built when a target needs them).

##@ Code

API_PACKAGES := ./api/v1alpha1/...
PROTOS       := $(wildcard api/quota/v1/*.proto)

.PHONY: generate
generate: generate-api generate-manifests generate-proto ## Write deep copies, apply configurations, CRDs, RBAC, webhooks, protobuf.

.PHONY: generate-api
generate-api: $(CONTROLLER_GEN)
	$(CONTROLLER_GEN) object applyconfiguration crd paths=$(API_PACKAGES) output:crd:dir=config/crd/bases

# Controllers are not there in every checkout of a young repository.
.PHONY: generate-manifests
generate-manifests: $(CONTROLLER_GEN)
	$(if $(wildcard controllers),$(CONTROLLER_GEN) rbac:roleName=headgate-operator webhook paths=./controllers/... \
		output:rbac:dir=config/rbac output:webhook:dir=config/webhook)

.PHONY: generate-proto
generate-proto: $(PROTOC_GEN_GO) $(PROTOC_GEN_GO_GRPC) | protoc
	$(if $(PROTOS),PATH=$(TOOLS_BIN):$$PATH protoc --go_out=. --go_opt=paths=source_relative \
		--go-grpc_out=. --go-grpc_opt=paths=source_relative $(PROTOS))

# protoc is the one tool that is not written in Go.
.PHONY: protoc
protoc:
	@command -v protoc >/dev/null || { \
		command -v apt-get >/dev/null || { echo "protoc is missing: install protobuf-compiler" >&2; exit 1; }; \
		echo "installing protobuf-compiler"; \
		DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq update && \
		DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq install -y --no-install-recommends protobuf-compiler; }

.PHONY: verify-generated
verify-generated: ## Fail when generated code differs from what `make generate` writes.
	@hack/tools/verify-generated.sh

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters, the Kubernetes API conventions for api/ included.
	$(GOLANGCI_LINT) run ./...

##@ Tests

.PHONY: unit
unit: ## Unit tests, with the race detector.
	$(GO) test -race ./...
