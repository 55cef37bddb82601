// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Identity is the pod that a token is bound to, as the API server says.
type Identity struct {
	Namespace string
	Pod       string
	UID       types.UID
}

// ErrUnauthenticated wraps why a token was refused.
var ErrUnauthenticated = errors.New("unauthenticated")

// Extra keys that the API server gives the user of a token bound to a pod.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

const (
	maxReviews    = 20               // at once
	cacheTime     = 10 * time.Second // a reconnect storm costs one review per token
	cacheSize     = 4096
	maxTokenBytes = 16 << 10
)

// Reviewer asks the API server whose a token is.
type Reviewer struct {
	client client.Client
	slots  chan struct{}

	mu    sync.Mutex
	cache map[[32]byte]reviewed
}

type reviewed struct {
	id    Identity
	until time.Time
}

// NewReviewer returns a reviewer that creates TokenReviews with c.
func NewReviewer(c client.Client) *Reviewer {
	return &Reviewer{client: c, slots: make(chan struct{}, maxReviews), cache: map[[32]byte]reviewed{}}
}

// Review returns whose token it is: it must be of our audience and bound to a pod. Refusals wrap ErrUnauthenticated.
func (r *Reviewer) Review(ctx context.Context, token string) (Identity, error) {
	if token == "" || len(token) > maxTokenBytes {
		return Identity{}, fmt.Errorf("%w: no token", ErrUnauthenticated)
	}
	key := sha256.Sum256([]byte(token))
	if id, ok := r.cached(key); ok {
		return id, nil
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return Identity{}, ctx.Err()
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{
		Token: token, Audiences: []string{quotav1.TokenAudience},
	}}
	if err := r.client.Create(ctx, review); err != nil {
		return Identity{}, fmt.Errorf("review token: %w", err)
	}
	id, err := identityOf(&review.Status)
	if err != nil {
		return Identity{}, err
	}
	r.remember(key, id)
	return id, nil
}

func identityOf(s *authenticationv1.TokenReviewStatus) (Identity, error) {
	if !s.Authenticated {
		return Identity{}, fmt.Errorf("%w: the API server refuses the token", ErrUnauthenticated)
	}
	if !slices.Contains(s.Audiences, quotav1.TokenAudience) {
		return Identity{}, fmt.Errorf("%w: the token is not for audience %s", ErrUnauthenticated, quotav1.TokenAudience)
	}
	parts := strings.Split(s.User.Username, ":")
	name, uid := s.User.Extra[extraPodName], s.User.Extra[extraPodUID]
	if len(parts) != 4 || parts[0] != "system" || parts[1] != "serviceaccount" || len(name) != 1 || len(uid) != 1 || uid[0] == "" {
		return Identity{}, fmt.Errorf("%w: the token is not bound to a pod", ErrUnauthenticated)
	}
	return Identity{Namespace: parts[2], Pod: name[0], UID: types.UID(uid[0])}, nil
}

func (r *Reviewer) cached(key [32]byte) (Identity, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.cache[key]
	if !ok || time.Now().After(e.until) {
		delete(r.cache, key)
		return Identity{}, false
	}
	return e.id, true
}

func (r *Reviewer) remember(key [32]byte, id Identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cache) >= cacheSize {
		clear(r.cache) // rare, and costs one review per stream
	}
	r.cache[key] = reviewed{id: id, until: time.Now().Add(cacheTime)}
}
