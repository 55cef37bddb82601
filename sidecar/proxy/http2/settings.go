// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"golang.org/x/net/http2"
)

// initialWindow is how much DATA an end takes before it says more, of a stream and of all together.
const initialWindow = 65535

// settings are what the two ends have told each other, as far as the sidecar is concerned.
type settings struct {
	first    bool   // the client has sent none
	own      int    // SETTINGS of the sidecar's that the client has not acknowledged
	asked    int    // SETTINGS of the client's that the application has not acknowledged
	unasked  int    // SETTINGS of the sidecar's that the application has not acknowledged
	initial  uint32 // of the client's streams
	listSize uint32 // of header lists that the client takes, 0 when any
	streams  int    // how many requests the application takes at once
}

func newSettings() settings { return settings{first: true, initial: initialWindow, streams: 1 << 30} }

// ownSettings are what the sidecar asks of clients before the application has said anything.
func (s *Server) ownSettings() []http2.Setting {
	return []http2.Setting{
		{ID: http2.SettingMaxConcurrentStreams, Val: uint32(s.Limits.Streams)},
		{ID: http2.SettingMaxHeaderListSize, Val: uint32(s.Limits.Head)},
	}
}

// clientSettings passes on what concerns the application of the client's settings. It acknowledges when there is none.
func (c *Conn) clientSettings(f *frame) error {
	if f.flags.Has(http2.FlagSettingsAck) {
		switch {
		case c.settings.own > 0:
			c.settings.own--
		case c.app != nil:
			c.server.toApp = appendSettingsAck(c.server.toApp)
		}
		return nil
	}
	passed := []http2.Setting{{ID: http2.SettingEnablePush}}
	pass := func(s http2.Setting) {
		for i := range passed {
			if passed[i].ID == s.ID { // the last one counts, and some applications take no other
				passed[i] = s
				return
			}
		}
		passed = append(passed, s)
	}
	err := eachSetting(f.payload(), func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingHeaderTableSize:
			c.toClient.SetMaxDynamicTableSizeLimit(s.Val)
			c.toClient.SetMaxDynamicTableSize(min(s.Val, tableSize))
		case http2.SettingInitialWindowSize:
			c.settings.initial = s.Val
			pass(s)
		case http2.SettingMaxHeaderListSize:
			c.settings.listSize = s.Val
			pass(s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.app == nil && c.call == nil {
		c.server.toClient = appendSettingsAck(c.server.toClient)
		return nil
	}
	c.settings.asked++
	c.server.toApp = appendSettings(c.server.toApp, passed...)
	return nil
}

// appSettings passes on what concerns the client of the application's settings.
func (c *Conn) appSettings(f *frame) error {
	if f.flags.Has(http2.FlagSettingsAck) {
		switch {
		case c.settings.unasked > 0:
			c.settings.unasked--
		case c.settings.asked > 0:
			c.settings.asked--
			c.server.toClient = appendSettingsAck(c.server.toClient)
		}
		return nil
	}
	var passed []http2.Setting
	err := eachSetting(f.payload(), func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingHeaderTableSize:
			c.toApp.SetMaxDynamicTableSizeLimit(s.Val)
			c.toApp.SetMaxDynamicTableSize(min(s.Val, tableSize))
		case http2.SettingMaxConcurrentStreams:
			s.Val = min(s.Val, uint32(c.server.Limits.Streams))
			c.settings.streams = int(s.Val)
			passed = append(passed, s)
		case http2.SettingMaxHeaderListSize:
			s.Val = min(s.Val, uint32(c.server.Limits.Head))
			passed = append(passed, s)
		case http2.SettingInitialWindowSize, http2.SettingEnableConnectProtocol:
			passed = append(passed, s)
		}
		return nil
	})
	c.server.toClient = appendSettings(c.server.toClient, passed...)
	return err
}

// introduce tells an application that was not there before what the client has said meanwhile.
func (c *Conn) introduce() {
	passed := []http2.Setting{{ID: http2.SettingEnablePush}, {ID: http2.SettingInitialWindowSize, Val: c.settings.initial}}
	if c.settings.listSize > 0 {
		passed = append(passed, http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: c.settings.listSize})
	}
	c.settings.unasked++
	c.server.toApp = appendSettings(c.server.toApp, passed...)
	if more := c.window - initialWindow; more > 0 {
		c.server.toApp = appendNumber(c.server.toApp, http2.FrameWindowUpdate, 0, uint32(more))
	}
	c.debt = max(0, initialWindow-c.window)
}
