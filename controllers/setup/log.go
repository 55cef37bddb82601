// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"io"

	"github.com/go-logr/logr"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// logger writes JSON with the keys that the sidecar's lines have too: time, level, msg and error.
func logger(out io.Writer, debug bool) logr.Logger {
	level := zapcore.InfoLevel
	if debug {
		level = zapcore.DebugLevel
	}
	return zap.New(zap.WriteTo(out), zap.UseDevMode(false), zap.Level(uberzap.NewAtomicLevelAt(level)), zap.StacktraceLevel(zapcore.DPanicLevel),
		zap.JSONEncoder(func(c *zapcore.EncoderConfig) {
			c.TimeKey, c.EncodeTime, c.EncodeLevel = "time", zapcore.RFC3339NanoTimeEncoder, zapcore.CapitalLevelEncoder
		}))
}
