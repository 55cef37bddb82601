// Command headgate-sidecar enforces a pod's share of its rate limits. See headgate-sidecar --help.
package main

import (
	"os"

	"github.com/headgate/headgate/sidecar"
)

func main() {
	os.Exit(sidecar.Main())
}
