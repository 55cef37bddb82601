// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// farewell says what to try next.
func (s *stage) farewell() {
	fmt.Println("\nEverything is still running. Try next:")
	if s.cluster.Kubeconfig != "" {
		fmt.Printf("\n  export KUBECONFIG=%s PATH=$PATH:%s\n", s.cluster.Kubeconfig, s.cluster.Binaries())
	}
	fmt.Printf(`
  # The policy, and what every pod enforces
  kubectl -n %[1]s get hrlp
  kubectl -n %[1]s describe hrlp %[2]s

  # A request; then more than a key may have, and the answer when it is used up
  curl -i -H 'X-API-Key: me' %[3]s/
  for i in $(seq 40); do curl -s -o /dev/null -w '%%{http_code} ' -H 'X-API-Key: me' %[3]s/; done; echo
  curl -i -H 'X-API-Key: me' %[3]s/

  # Other numbers, applied in every pod at once
  kubectl -n %[1]s edit hrlp %[2]s

  # More pods: each gets a smaller share, the total stays
  kubectl -n %[1]s patch hpa %[2]s -p '{"spec":{"minReplicas":5,"maxReplicas":5}}'
  kubectl -n %[1]s get hrlp -w

  make demo-down     # remove everything
`, namespace, appName, strings.TrimSuffix(s.address, ":80"))
}
