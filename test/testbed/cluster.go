// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

// Cluster is a cluster, seen by its administrator.
type Cluster struct {
	client.WithWatch
	// Local is false for CLUSTER=current: somebody else's cluster.
	Local bool
	// Kubeconfig is the file to hand to kubectl and helm; empty = the usual rules.
	Kubeconfig string
}

// Cache is the folder of everything that outlives a run.
func Cache() (string, error) {
	if cache := os.Getenv("HEADGATE_CACHE"); cache != "" {
		return filepath.Abs(cache)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w; set HEADGATE_CACHE", err)
	}
	return filepath.Join(user, "headgate"), nil
}

// Local reports whether the cluster is the one that hack/cluster makes.
func Local() bool { return os.Getenv("CLUSTER") != "current" }

// Binaries is the folder with the local cluster's kubectl.
func (c *Cluster) Binaries() string {
	return filepath.Join(filepath.Dir(filepath.Dir(c.Kubeconfig)), "bin")
}

// Connect returns the cluster that CLUSTER names. It does not start one.
func Connect() (*Cluster, error) {
	c := &Cluster{Local: Local()}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if c.Local {
		cache, err := Cache()
		if err != nil {
			return nil, err
		}
		c.Kubeconfig = filepath.Join(cache, "run", "admin.kubeconfig")
		rules = &clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}
	}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return c, c.connect(cfg)
}

func (c *Cluster) connect(cfg *rest.Config) (err error) {
	// Tests ask often, and for themselves alone.
	cfg.QPS, cfg.Burst = 200, 400
	cfg.WarningHandlerWithContext = rest.NoWarnings{} // those of the webhook are for people
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	if c.WithWatch, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}
