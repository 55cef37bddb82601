// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"strings"
)

// paths holds the readings of one path. Applications differ in how they read a path, and a client may choose the
// spelling; a limit applies when any reading matches, so that none of them steps around it:
//
//   - sent: the bytes as they are, for applications that compare prefixes without normalising;
//   - strict: RFC 3986 normal form: unreserved characters decoded, dot segments and doubled slashes removed;
//   - loose: everything decoded (also %2F), backslashes read as slashes, parameters after ';' and all after '#' dropped,
//     then the same.
//
// The three are one string for nearly every path that is sent; only the others cost an allocation.
type paths struct {
	sent, strict, loose string
}

func readPath(sent string) paths {
	if sent == "" {
		sent = "/"
	}
	if plain(sent) {
		return paths{sent, sent, sent}
	}
	p := paths{sent: sent}
	p.strict = clean(decode(sent, unreserved))
	p.loose = p.strict
	if strings.ContainsAny(sent, special) {
		loose, _, _ := strings.Cut(sent, "#")
		loose = strings.ReplaceAll(decode(loose, anyByte), `\`, "/")
		p.loose = clean(dropParameters(loose))
	}
	return p
}

// special are the bytes that applications read in different ways.
const special = `%;#\`

// plain reports whether all readings of a path are the path itself. It errs towards false.
func plain(path string) bool {
	if path[0] != '/' {
		return false
	}
	previous := byte(0)
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '%' || c == ';' || c == '#' || c == '\\':
			return false
		case previous == '/' && (c == '/' || c == '.'):
			return false
		}
		previous = c
	}
	return true
}

// decode replaces the percent-encoded bytes that keep accepts. Malformed encodings stay as they are.
func decode(path string, keep func(byte) bool) string {
	if !strings.Contains(path, "%") {
		return path
	}
	out := make([]byte, 0, len(path))
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			high, ok1 := unhex(path[i+1])
			low, ok2 := unhex(path[i+2])
			if c := high<<4 | low; ok1 && ok2 {
				if keep(c) {
					out = append(out, c)
				} else {
					const digits = "0123456789ABCDEF"
					out = append(out, '%', digits[high], digits[low])
				}
				i += 2
				continue
			}
		}
		out = append(out, path[i])
	}
	return string(out)
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

func anyByte(byte) bool { return true }

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// dropParameters cuts each segment at its first semicolon, as servlet containers do.
func dropParameters(path string) string {
	if !strings.Contains(path, ";") {
		return path
	}
	out := make([]byte, 0, len(path))
	inParameter := false
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '/':
			inParameter = false
		case ';':
			inParameter = true
		}
		if !inParameter {
			out = append(out, path[i])
		}
	}
	return string(out)
}

// clean removes dot segments and empty segments; a trailing slash stays. The result begins with a slash.
func clean(path string) string {
	out := make([]byte, 0, len(path)+1)
	for rest := path; ; {
		segment, after, more := strings.Cut(rest, "/")
		switch segment {
		case "", ".":
		case "..":
			out = out[:max(0, bytes.LastIndexByte(out, '/'))]
		default:
			out = append(append(out, '/'), segment...)
		}
		if !more {
			if segment == "" || segment == "." || segment == ".." {
				out = append(out, '/')
			}
			return string(out)
		}
		rest = after
	}
}
