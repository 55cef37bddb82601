// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/headgate/headgate/cmd/kubectl-headgate/meter"
)

// What a terminal is told.
const (
	otherScreen = "\x1b[?1049h\x1b[?25l" // a screen of our own, without a cursor
	ownScreen   = "\x1b[?25h\x1b[?1049l" // what was there before
	home        = "\x1b[H"
	restOfLine  = "\x1b[K"
	restBelow   = "\x1b[J"
)

// screen draws lines in place, on a terminal.
type screen struct {
	out io.Writer
	fd  int
}

// newScreen takes over the terminal; nil where the output is none.
func newScreen(out io.Writer) *screen {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	s := &screen{out, int(f.Fd())}
	fmt.Fprint(out, otherScreen)
	return s
}

// close gives the terminal back.
func (s *screen) close() {
	if s != nil {
		fmt.Fprint(s.out, ownScreen)
	}
}

// style fits the terminal as it is now.
func (s *screen) style() meter.Style {
	width, _, err := term.GetSize(s.fd)
	if err != nil {
		width = 0
	}
	_, plain := os.LookupEnv("NO_COLOR")
	return meter.Style{Bars: true, Colour: !plain, Width: width}
}

// draw writes lines over those before; what does not fit is counted.
func (s *screen) draw(lines []string) {
	if s == nil {
		return
	}
	_, height, err := term.GetSize(s.fd)
	if err != nil {
		height = 0
	}
	fmt.Fprint(s.out, frame(lines, height))
}

// frame is a full screen.
func frame(lines []string, height int) string {
	if height > 1 && len(lines) > height-1 {
		left := len(lines) - (height - 2)
		lines = append(lines[:height-2:height-2], fmt.Sprintf("... and %d more lines: make the window taller, or name a policy", left))
	}
	var b strings.Builder
	b.WriteString(home)
	for _, line := range lines {
		b.WriteString(line + restOfLine + "\r\n")
	}
	b.WriteString(restBelow)
	return b.String()
}
