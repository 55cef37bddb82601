//go:build e2e

// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/headgate/headgate/test/testbed"
)

// suite is what all cases share.
var suite struct {
	*testbed.Cluster
	chart   *testbed.Chart
	images  testbed.Images
	records string // folder of the machine that all nodes see
	kept    string // bin/e2e: what is kept of a run
}

// TestApps holds the cases that leave the operator alone; they run side by side.
func TestApps(t *testing.T) {
	// The longest come first.
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"the total holds while an autoscaler follows the load", totalHoldsWhileAnAutoscalerFollowsTheLoad},
		{"an autoscaler follows what is offered", autoscalerFollowsWhatIsOffered},
		{"Prometheus sees what clients sent", prometheusSeesWhatClientsSent},
		{"no request is lost in rollouts, evictions and rests", noRequestIsLostInRollouts},
		{"ports by number are redirected, and probes spend nothing", numbersAreRedirected},
		{"what cannot be injected is named and runs on", whatCannotBeInjected},
		{"a policy reaches an app that runs already", policyReachesARunningApp},
		{"a denial says when to come back", denialSaysWhenToComeBack},
		{"a crash of the sidecar raises nothing and mends itself", crashOfTheSidecar},
		{"a crash of the app raises nothing and mends itself", crashOfTheApp},
		{"a pod deleted by force raises nothing", podDeletedByForce},
		{"edited numbers reach every pod and hold", editedNumbersHold},
		{"a policy deleted and re-created gives no second burst", recreatedPolicyGivesNoSecondBurst},
		{"a gRPC call is denied in its own words", grpcCallIsDenied},
		{"two policies on one workload both apply", twoPoliciesBothApply},
		{"two workloads of one policy share one limit", twoTargetsShareOneLimit},
		{"a StatefulSet and a DaemonSet are limited", otherWorkloadsAreLimited},
		{"a policy may come before its workload", policyComesFirst},
		{"every sample does what it says", everySampleDoesWhatItSays},
		{"a namespace in shadow mode denies nothing", namespaceInShadowModeDeniesNothing},
		{"explain says what would happen to a request", explainSaysWhatWouldHappen},
		{"top and status say what happens", topAndStatusSayWhatHappens},
		{"a policy that cannot work is refused", policyThatCannotWorkIsRefused},
		{"a way around the sidecar is reported", wayAroundIsReported},
		{"a Job with the sidecar finishes", jobWithTheSidecarFinishes},
		{"mode None and the opt-out label leave traffic alone", trafficIsLeftAlone},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t)
		})
	}
}

// TestDrain sends more than the cases beside it would bear.
func TestDrain(t *testing.T) {
	t.Run("no request of a hundred thousand is lost on any way out", noRequestIsLostOfMany)
}

// TestSilence holds the cases in which pods fall silent, and nobody can say whether they have ended. They break nodes.
func TestSilence(t *testing.T) {
	t.Run("silent pods keep their share until somebody who can know says that they have ended", silentPodsKeepTheirShare)
	t.Run("dead nodes give their shares back", deadNodesGiveTheirSharesBack)
}

// TestOperator holds the cases that take the operator away, one after the other. The last ones replace and remove it.
func TestOperator(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"the leader is killed and no request notices", leaderIsKilled},
		{"twelve pods admit what one would, wherever the demand is", twelvePodsAdmitWhatOneWould},
		{"pods go on and new ones start while there is no operator", operatorIsAway},
		{"doctor names the cause", doctorNamesTheCause},
		{"pods wait for the operator where that is wanted", podsWaitForTheOperator},
		{"neither the operator's crash nor the API server's is noticed", everythingAboveFails},
		{"the restricted level lets the sidecar in", restrictedNamespace},
		{"certificates change under load, and no log holds a key or a token", certificatesChangeUnderLoad},
		{"an upgrade of the chart is not noticed", upgradeIsNotNoticed},
		{"apps outlive the chart, and a new one takes them over", appsOutliveTheChart},
	} {
		t.Run(c.name, c.test)
	}
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard()) // tests say themselves what matters
	unlock, err := testbed.Lock()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer unlock()
	switch err := prepare(ctx); {
	case err == nil:
	case errors.Is(err, errNoCluster) && os.Getenv("CI") != "true":
		fmt.Printf("\n%[1]s\n== SKIPPED: NOT ONE END-TO-END TEST HAS RUN\n== %v\n%[1]s\n\n", strings.Repeat("=", 80), err)
		return 0
	default:
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	code := m.Run()
	if suite.records == "" {
		return code
	}
	if err := os.CopyFS(filepath.Join(suite.kept, "records"), os.DirFS(suite.records)); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: keeping the records:", err)
		return 1
	}
	if err := os.RemoveAll(suite.records); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
	}
	return code
}

// errNoCluster says that this machine cannot run the tests: a reason to skip them, though never in CI.
var errNoCluster = errors.New("no cluster")

func prepare(ctx context.Context) error {
	repository, err := testbed.Repository()
	if err != nil {
		return err
	}
	suite.kept = filepath.Join(repository, "bin", "e2e")
	if err := os.RemoveAll(suite.kept); err != nil {
		return err
	}
	if err := testbed.Make(ctx, repository, "cluster-up", os.Stdout); err != nil {
		return fmt.Errorf("%w: %w", errNoCluster, err)
	}
	if suite.Cluster, err = testbed.Connect(); err != nil {
		return fmt.Errorf("%w: %w", errNoCluster, err)
	}
	if suite.images, err = suite.BringImages(ctx, repository, os.Stdout); err != nil {
		return err
	}
	if err := makeRecords(); err != nil {
		return err
	}
	if err := clear(ctx); err != nil {
		return err
	}
	suite.chart = &testbed.Chart{Cluster: suite.Cluster, Repository: repository, Images: suite.images, Records: suite.records,
		Set: []string{"debug=true"}} // what is logged must hold no secret, and explains failures
	begin := time.Now()
	defer func() { fmt.Printf("chart installed (%.1fs)\n", time.Since(begin).Seconds()) }()
	return suite.chart.Install(ctx)
}

// makeRecords makes a folder where nodes see it: the repository may be in one of the folders that they hide.
func makeRecords() error {
	if !suite.Local {
		return nil
	}
	cache, err := testbed.Cache()
	if err != nil {
		return err
	}
	suite.records = filepath.Join(cache, "e2e", time.Now().Format("20060102-150405"))
	if err := os.MkdirAll(suite.records, fs.ModePerm); err != nil {
		return fmt.Errorf("records: %w", err)
	}
	return os.Chmod(suite.records, fs.ModePerm) // each sidecar writes as its own user
}

// labelCase marks the namespaces of the cases.
const labelCase = "headgate.dev/e2e"

// clear deletes what a run that was killed has left behind.
func clear(ctx context.Context) error {
	var left corev1.NamespaceList
	if err := suite.List(ctx, &left, client.HasLabels{labelCase}); err != nil {
		return err
	}
	for i := range left.Items {
		if err := client.IgnoreNotFound(suite.Delete(ctx, &left.Items[i])); err != nil {
			return err
		}
	}
	return testbed.Wait(ctx, time.Minute, "namespaces of an earlier run to be gone", func(ctx context.Context) error {
		if err := suite.List(ctx, &left, client.HasLabels{labelCase}); err != nil {
			return err
		}
		if n := meta.LenList(&left); n > 0 {
			return fmt.Errorf("%d are still there", n)
		}
		return nil
	})
}
