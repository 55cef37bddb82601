// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin holds the commands of kubectl headgate. They follow kubectl's own conventions: -n, -o, contexts and
// kubeconfig mean what they mean there.
package plugin

import (
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

// New returns the root command.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{
		Use:         "kubectl-headgate",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl headgate"},
		Short:       "See what rate limits do in the pods that enforce them, and find out what is wrong",
		Long: `See what rate limits do in the pods that enforce them, and find out what is wrong.

Most commands ask the sidecars themselves, through the API server, so that they say what is in force and not what should be.`,
		Example: `  kubectl headgate status -n shop        # how do my policies stand?
  kubectl headgate top checkout -n shop  # what is offered, admitted and denied now?
  kubectl headgate doctor -A             # what is wrong, and what is to be done?`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	flags.AddFlags(root.PersistentFlags())
	session := &session{flags: flags, streams: streams}
	root.AddGroup(&cobra.Group{ID: "see", Title: "See what is enforced:"}, &cobra.Group{ID: "mend", Title: "Mend what is wrong:"}, &cobra.Group{ID: "files", Title: "Work on manifests:"})
	for group, commands := range map[string][]*cobra.Command{
		"see":   {newStatus(session), newTop(session), newExplain(session)},
		"mend":  {newDoctor(session), newRelease(session)},
		"files": {newInject(session), newEject(session)},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddCommand(newVersion(session))
	return root
}

// session is what commands share: the way to the cluster and to the terminal.
type session struct {
	flags   *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams

	// Set by connect.
	client.Client
	config    *rest.Config
	namespace string
}

// connect reads the kubeconfig.
func (s *session) connect() error {
	var err error
	if s.namespace, _, err = s.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if s.config, err = s.flags.ToRESTConfig(); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	s.config.QPS, s.config.Burst = 50, 100 // it asks once for each pod
	s.config.WarningHandlerWithContext = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("scheme: %w", err)
		}
	}
	if s.Client, err = client.New(s.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}
