// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redirect

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// tableName is the table that belongs to us alone.
const tableName = "headgate"

// Apply writes the rules, in place of those that an earlier run has written, in one transaction: there is no moment with
// half of them.
func Apply(n Network, pairs []Pair) error {
	local, err := localAddresses()
	if err != nil {
		return err
	}
	if err := Refuse(n, local); err != nil {
		return err
	}
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}
	conn.AddTable(table) // so that there is one to delete
	conn.DelTable(table)
	conn.AddTable(table)
	chain := conn.AddChain(&nftables.Chain{
		Name: "inbound", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest,
	})
	for _, p := range pairs {
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule(p)})
	}
	if err := conn.Flush(); err != nil {
		return explain(err)
	}
	return nil
}

// rule is: iifname != "lo" tcp dport APP redirect to :LISTENER.
func rule(p Pair) []expr.Any {
	loopback := make([]byte, unix.IFNAMSIZ)
	copy(loopback, "lo")
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: loopback},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(p.App)},
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(p.Listener)},
		&expr.Redir{RegisterProtoMin: 1},
	}
}

func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("nftables: %w: the container needs the capability NET_ADMIN, and user 0 to have it", err)
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.ENOENT):
		return fmt.Errorf("nftables: %w: the node's kernel lacks redirects of family inet (Linux 5.2 with nf_tables, nft_redir and nft_nat): use mode NamedPort on this node", err)
	}
	return fmt.Errorf("nftables: %w", err)
}

func localAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of the network: %w", err)
	}
	var out []netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out, nil
}
