package quotav1

// Whole is the denominator of a share: lcm(1..24) * 1024. One n-th of it is exact for every n up to 24; beyond that the
// rounding loses less than n/Whole of the limit, always downwards.
const Whole uint64 = 5354228880 * 1024

// Protocol is the version of the wire contract that this package describes.
const Protocol uint32 = 1

// TokenAudience is the audience of the ServiceAccount token that a sidecar presents. A token of any other audience (the
// API server's own among them) is refused, so that a stolen sidecar token opens nothing else and no other token opens this.
const TokenAudience = "quota.headgate.dev"

// Ports of the sidecar. 15000 to 15100 belong to Istio, 4100 to 4200 to Linkerd.
const (
	// PortInbound is the first inbound listener; app port number i (from 0) is served on PortInbound+i.
	PortInbound = 14101
	// MaxInbound is how many app ports a sidecar serves at most.
	MaxInbound = 32
	// PortAdmin serves health, metrics and the drain hook on the pod's address.
	PortAdmin = 14190
	// PortLocal serves live state and decisions on loopback only.
	PortLocal = 14191
)

// Paths of the sidecar's servers: on PortAdmin where not said otherwise.
const (
	PathStarted = "/startz"  // the process is up
	PathReady   = "/readyz"  // a share is in hand and the process is not draining
	PathMetrics = "/metrics" // Prometheus
	PathProbe   = "/probe/"  // + container/kind: runs that probe of the app
	PathQuiet   = "/quiet"   // answers once no client has come for a while: the preStop hook of an app that has none

	// PathDrain begins the drain, on PortLocal; the preStop hook calls it through "headgate-sidecar drain", so that nobody
	// outside the pod can.
	PathDrain = "/v1/drain"
	// PathState is live state as JSON, on PortLocal.
	PathState = "/v1/state"
	// PathCheck decides one request described in JSON, on PortLocal.
	PathCheck = "/v1/check"
	// PathExplain says what every limit would make of one request described in JSON, and takes nothing; on PortLocal.
	PathExplain = "/v1/explain"
)

// Environment of the sidecar, set by the injector.
const (
	EnvPorts    = "HEADGATE_PORTS"    // "14101=8080,14102=9090": listener = app port on loopback
	EnvOperator = "HEADGATE_OPERATOR" // host:port of the operator's quota service
	EnvPod      = "HEADGATE_POD"      // namespace/name, for logs only
	EnvProbes   = "HEADGATE_PROBES"   // Probes as JSON: what the sidecar asks the app for the kubelet; empty = nothing
	EnvHostIPs  = "HEADGATE_HOST_IPS" // of the node; for the redirect program, which refuses to work in the node's network
	EnvPodIPs   = "HEADGATE_POD_IPS"  // of the pod, for the same
	EnvSource   = "HEADGATE_SOURCE"   // "file" for a static pod, for the same
	EnvRecord   = "HEADGATE_RECORD"   // folder for decision records (test/oracle); empty = none
)

// Files that the injector projects into the sidecar.
const (
	PathIdentity  = "/var/run/headgate"              // projected volume
	FileToken     = PathIdentity + "/token"          // ServiceAccount token of TokenAudience
	FileCA        = PathIdentity + "/ca.crt"         // CA bundle of the operator; may appear late
	ServerName    = "headgate-operator.headgate.dev" // TLS name of every replica
	ContainerName = "headgate"
	// ContainerRedirect is the init container of mode Redirect.
	ContainerRedirect = "headgate-redirect"
)
