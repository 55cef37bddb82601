// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	admissionregistrationac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldOwner owns the authorities in the webhook configurations, and nothing else there.
const FieldOwner = client.FieldOwner("headgate-certificates")

// webhooks is one configuration.
type webhooks struct {
	object client.Object
	// clients returns, by the names of the webhooks, whom the API server trusts.
	clients func() map[string][]byte
	// apply says whom to trust.
	apply func(ca []byte, names []string) runtime.ApplyConfiguration
}

func (k *Keeper) webhooks() []webhooks {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	return []webhooks{
		{mutating, func() map[string][]byte {
			out := map[string][]byte{}
			for _, h := range mutating.Webhooks {
				out[h.Name] = h.ClientConfig.CABundle
			}
			return out
		}, func(ca []byte, names []string) runtime.ApplyConfiguration {
			c := admissionregistrationac.MutatingWebhookConfiguration(k.opts.Webhook)
			for _, n := range names {
				c.WithWebhooks(admissionregistrationac.MutatingWebhook().WithName(n).
					WithClientConfig(admissionregistrationac.WebhookClientConfig().WithCABundle(ca...)))
			}
			return c
		}},
		{validating, func() map[string][]byte {
			out := map[string][]byte{}
			for _, h := range validating.Webhooks {
				out[h.Name] = h.ClientConfig.CABundle
			}
			return out
		}, func(ca []byte, names []string) runtime.ApplyConfiguration {
			c := admissionregistrationac.ValidatingWebhookConfiguration(k.opts.Webhook)
			for _, n := range names {
				c.WithWebhooks(admissionregistrationac.ValidatingWebhook().WithName(n).
					WithClientConfig(admissionregistrationac.WebhookClientConfig().WithCABundle(ca...)))
			}
			return c
		}},
	}
}

// trust makes the API server trust what the operator serves, and reports whether it does.
func (k *Keeper) trust(ctx context.Context) (bool, error) {
	ca := k.CA()
	all := ca != nil
	for _, w := range k.webhooks() {
		err := k.client.Get(ctx, client.ObjectKey{Name: k.opts.Webhook}, w.object)
		if apierrors.IsNotFound(err) {
			all = false
			continue
		} else if err != nil {
			return false, fmt.Errorf("webhook configuration %s: %w", k.opts.Webhook, err)
		}
		var names []string
		stale := false
		for name, have := range w.clients() {
			names = append(names, name)
			stale = stale || !bytes.Equal(have, ca)
			if k.opts.External && len(have) == 0 {
				all = false
			}
		}
		if k.opts.External || !stale || ca == nil {
			continue
		}
		slices.Sort(names)
		if err := k.client.Apply(ctx, w.apply(ca, names), FieldOwner, client.ForceOwnership); err != nil {
			return false, fmt.Errorf("authority in webhook configuration %s: %w", k.opts.Webhook, err)
		}
	}
	return all, nil
}
