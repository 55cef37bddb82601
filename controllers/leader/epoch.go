// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/headgate/headgate/api/v1alpha1"
)

// Epochs keeps the epoch and the leader's address in annotations of the Lease. The epoch only rises, by compare-and-swap;
// leaseTransitions is not used since it starts again when a Lease is deleted.
type Epochs struct {
	// Reader reads live, not from a cache.
	Reader client.Reader
	Writer client.Writer
	Lease  types.NamespacedName
	// Address is where this replica serves quota.
	Address string

	mu      sync.Mutex
	read    time.Time
	last    Leader
	renewed metav1.MicroTime // as last read
	fresh   time.Time        // when renewed was first read
}

// Leader is what the Lease says.
type Leader struct {
	Address string
	Epoch   uint64
}

// Begin raises the epoch above the stored one and above floor, names this replica as the leader and returns the epoch, with
// the last word of the leader directly before, where it left one. The same write takes that away: nobody finds it twice.
func (e *Epochs) Begin(ctx context.Context, floor uint64) (epoch uint64, left []byte, err error) {
	err = retry.OnError(retry.DefaultBackoff, retriable, func() error {
		var lease coordinationv1.Lease
		if err := e.Reader.Get(ctx, e.Lease, &lease); err != nil {
			return err
		}
		left = leftBy(&lease)
		delete(lease.Annotations, v1alpha1.AnnotationHandover)
		now, err := leaderOf(&lease)
		if err != nil {
			return err
		}
		epoch = max(now.Epoch, floor) + 1
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		lease.Annotations[v1alpha1.AnnotationEpoch] = strconv.FormatUint(epoch, 10)
		lease.Annotations[v1alpha1.AnnotationLeader] = e.Address
		return e.Writer.Update(ctx, &lease) // refused when the lease changed since it was read
	})
	if err != nil {
		return 0, nil, fmt.Errorf("raise epoch in lease %s: %w", e.Lease, err)
	}
	return epoch, left, nil
}

// Leave writes a leader's last word for the next one. It is refused where the epoch has been raised since.
func (e *Epochs) Leave(ctx context.Context, epoch uint64, word []byte) error {
	if len(word) == 0 {
		return nil
	}
	err := retry.OnError(retry.DefaultBackoff, retriable, func() error {
		var lease coordinationv1.Lease
		if err := e.Reader.Get(ctx, e.Lease, &lease); err != nil {
			return err
		}
		now, err := leaderOf(&lease)
		if err != nil {
			return err
		}
		if now.Epoch != epoch {
			return fmt.Errorf("epoch %d has passed: it is %d", epoch, now.Epoch)
		}
		lease.Annotations[v1alpha1.AnnotationHandover] = strconv.FormatUint(epoch, 10) + ":" + base64.StdEncoding.EncodeToString(word)
		return e.Writer.Update(ctx, &lease)
	})
	if err != nil {
		return fmt.Errorf("last word in lease %s: %w", e.Lease, err)
	}
	return nil
}

// leftBy returns the last word of the leader whose epoch the lease names. Any other is worth nothing.
func leftBy(lease *coordinationv1.Lease) []byte {
	epoch, word, ok := strings.Cut(lease.Annotations[v1alpha1.AnnotationHandover], ":")
	if !ok || epoch != lease.Annotations[v1alpha1.AnnotationEpoch] {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(word)
	if err != nil {
		return nil
	}
	return b
}

// retriable is everything: a lost race, a short absence of the API server. The backoff bounds it.
func retriable(error) bool { return true }

// believed is for how long what the Lease said is taken to hold. Sidecars that have lost their leader ask at once, and many together.
const believed = 100 * time.Millisecond

// Current returns who leads, read at most ten times a second. A leader that has said its last word leads no more, though the
// lease is still its own: whoever dials it meets nobody.
func (e *Epochs) Current(ctx context.Context) (Leader, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.read) < believed {
		return e.last, nil
	}
	var lease coordinationv1.Lease
	if err := e.Reader.Get(ctx, e.Lease, &lease); err != nil {
		return Leader{}, fmt.Errorf("read lease %s: %w", e.Lease, err)
	}
	l, err := leaderOf(&lease)
	if err != nil {
		return Leader{}, err
	}
	if !e.alive(&lease, time.Now()) || leftBy(&lease) != nil {
		l.Address = ""
	}
	e.read, e.last = time.Now(), l
	return l, nil
}

// alive reports whether somebody holds the lease and still renews it, as far as this replica has seen. The time in the lease
// is another machine's: only its change counts.
func (e *Epochs) alive(lease *coordinationv1.Lease, now time.Time) bool {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil {
		return false
	}
	if !lease.Spec.RenewTime.Equal(&e.renewed) {
		e.renewed, e.fresh = *lease.Spec.RenewTime, now
	}
	return now.Sub(e.fresh) < RenewDeadline
}

func leaderOf(lease *coordinationv1.Lease) (Leader, error) {
	l := Leader{Address: lease.Annotations[v1alpha1.AnnotationLeader]}
	if s := lease.Annotations[v1alpha1.AnnotationEpoch]; s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return l, fmt.Errorf("annotation %s of lease %s/%s: %q is not a number: restore it to one above every epoch in use, or delete the lease", v1alpha1.AnnotationEpoch, lease.Namespace, lease.Name, s)
		}
		l.Epoch = n
	}
	return l, nil
}
