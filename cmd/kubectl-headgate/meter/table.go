// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Style says how a table looks.
type Style struct {
	// Bars and colours are for terminals.
	Bars, Colour bool
	// Width cuts lines; 0 = never.
	Width int
}

// width of a bar.
const barWidth = 20

// Header names the columns.
var header = []string{"POLICY", "LIMIT", "PODS", "OFFERED/S", "ADMITTED/S", "DENIED/S", "LIMIT/S", "USE"}

// Table writes rows as lines, the header first.
func Table(rows []Row, style Style) []string {
	cells := [][]string{header}
	for i := range rows {
		cells = append(cells, rows[i].cells())
	}
	widths := make([]int, len(header))
	for _, line := range cells {
		for i, c := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	out := make([]string, len(cells))
	for n, line := range cells {
		var b strings.Builder
		for i, c := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i > 0 {
				b.WriteString("   ")
			}
			if i >= 2 { // numbers
				b.WriteString(pad + c)
			} else {
				b.WriteString(c + pad)
			}
		}
		text := b.String()
		if style.Bars && n > 0 {
			text += "  " + bar(rows[n-1].Use)
		}
		text = cut(strings.TrimRight(text, " "), style.Width)
		if style.Colour && n > 0 {
			text = paint(text, &rows[n-1])
		}
		out[n] = text
	}
	return out
}

// cells are the columns of a row.
func (r *Row) cells() []string {
	policy, limit, pods := r.Policy, r.Limit, fmt.Sprint(r.Pods)
	if r.Pod != "" {
		_, name, _ := strings.Cut(r.Pod, "/")
		policy, limit, pods = "  "+name, "", ""
	}
	if r.Shadow && r.Pod == "" {
		limit += " (shadow)"
	}
	most := number(r.Most)
	switch {
	case r.InFlight != nil:
		most += " at once"
	case r.Keys != nil:
		most += " per key"
	}
	use := "-"
	switch {
	case r.Use != nil:
		use = fmt.Sprintf("%.0f%%", *r.Use*100)
	case r.Keys != nil && r.Pod == "":
		use = fmt.Sprintf("%d keys", *r.Keys)
	}
	return []string{policy, limit, pods, number(r.Offered), number(r.Admitted), number(r.Denied), most, use}
}

// number writes a rate as people read it.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.1:
		return fmt.Sprintf("%.2g", v)
	case v < 100 && v != math.Trunc(v):
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// eighths of a cell, from empty to full.
var eighths = []rune(" ▏▎▍▌▋▊▉█")

// bar draws a share of a whole.
func bar(use *float64) string {
	if use == nil {
		return ""
	}
	left := int(math.Round(min(max(*use, 0), 1) * barWidth * 8))
	var b strings.Builder
	b.WriteRune('▕')
	for range barWidth {
		b.WriteRune(eighths[min(left, 8)])
		left = max(left-8, 0)
	}
	b.WriteRune('▏')
	return b.String()
}

// cut shortens a line to a number of columns.
func cut(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// Colours: of a limit that denies, and of one that is nearly used up.
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

func paint(s string, r *Row) string {
	switch {
	case r.Denied > 0:
		return red + s + plain
	case r.Use != nil && *r.Use >= 0.8:
		return yellow + s + plain
	}
	return s
}
