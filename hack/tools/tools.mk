# Where the pinned tools are built, and how. A tool's folder is named after the
# hash of all that decides what the binary is: a changed pin is another folder,
# and switching between two branches builds nothing twice.

TOOLS_HASH := $(shell cat hack/tools/go.mod hack/tools/go.sum $(filter-out %_test.go,$(wildcard hack/tools/image/*.go)) | sha256sum | cut -c1-12)
LINT_HASH  := $(shell cat hack/tools/lint/go.mod hack/tools/lint/go.sum | sha256sum | cut -c1-12)
CHART_HASH := $(shell cat hack/tools/chart/go.mod hack/tools/chart/go.sum | sha256sum | cut -c1-12)
TOOLS_BIN  := $(HEADGATE_CACHE)/tools/$(TOOLS_HASH)
ADAPTER_HASH := $(shell cat hack/tools/adapter/go.mod hack/tools/adapter/go.sum | sha256sum | cut -c1-12)
ADAPTER_BIN  := $(HEADGATE_CACHE)/tools/adapter-$(ADAPTER_HASH)
LINT_BIN   := $(HEADGATE_CACHE)/tools/lint-$(LINT_HASH)
CHART_BIN  := $(HEADGATE_CACHE)/tools/chart-$(CHART_HASH)

CONTROLLER_GEN     := $(TOOLS_BIN)/controller-gen
PROTOC_GEN_GO      := $(TOOLS_BIN)/protoc-gen-go
PROTOC_GEN_GO_GRPC := $(TOOLS_BIN)/protoc-gen-go-grpc
KUSTOMIZE          := $(TOOLS_BIN)/kustomize
HELM               := $(TOOLS_BIN)/helm
IMAGE              := $(TOOLS_BIN)/image
GOLANGCI_LINT      := $(LINT_BIN)/golangci-lint
HELM_UNITTEST      := $(CHART_BIN)/helm-unittest
HELM3              := $(CHART_BIN)/helm3

# prometheus-adapter, for the test of autoscaling: its dependencies would hold back the others'.
ADAPTER            := $(ADAPTER_BIN)/adapter

TOOLS := $(CONTROLLER_GEN) $(PROTOC_GEN_GO) $(PROTOC_GEN_GO_GRPC) $(KUSTOMIZE) $(HELM) $(IMAGE) $(GOLANGCI_LINT) $(HELM_UNITTEST) $(HELM3)

$(CONTROLLER_GEN):     package := sigs.k8s.io/controller-tools/cmd/controller-gen
$(PROTOC_GEN_GO):      package := google.golang.org/protobuf/cmd/protoc-gen-go
$(PROTOC_GEN_GO_GRPC): package := google.golang.org/grpc/cmd/protoc-gen-go-grpc
$(KUSTOMIZE):          package := sigs.k8s.io/kustomize/kustomize/v5
$(HELM):               package := helm.sh/helm/v4/cmd/helm
$(IMAGE):              package := ./image
$(HELM_UNITTEST):      package := github.com/helm-unittest/helm-unittest/cmd/helm-unittest
$(HELM3):              package := helm.sh/helm/v3/cmd/helm
$(GOLANGCI_LINT):      package := sigs.k8s.io/kube-api-linter/cmd/golangci-lint-kube-api-linter

# CGO_ENABLED=0 as in every other build here: the packages that tools and
# cluster have in common are then compiled once. -o goes to a name of its own
# first, so that a killed build leaves nothing that looks finished.
$(TOOLS_BIN)/%:
	@echo "building $(@F)"
	@mkdir -p $(@D)
	@CGO_ENABLED=0 $(GO) build -C hack/tools -ldflags "-s -w" -o $@.partial $(package)
	@mv $@.partial $@

$(LINT_BIN)/%:
	@echo "building $(@F) (a few minutes the first time)"
	@mkdir -p $(@D)
	@CGO_ENABLED=0 $(GO) build -C hack/tools/lint -ldflags "-s -w" -o $@.partial $(package)
	@mv $@.partial $@

$(ADAPTER_BIN)/%:
	@echo "building prometheus-adapter (a few minutes the first time)"
	@mkdir -p $(@D)
	@CGO_ENABLED=0 $(GO) build -C hack/tools/adapter -ldflags "-s -w" -o $@.partial sigs.k8s.io/prometheus-adapter/cmd/adapter
	@mv $@.partial $@

$(CHART_BIN)/%:
	@echo "building $(@F)"
	@mkdir -p $(@D)
	@CGO_ENABLED=0 $(GO) build -C hack/tools/chart -ldflags "-s -w" -o $@.partial $(package)
	@mv $@.partial $@
