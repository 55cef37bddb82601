// Copyright The Headgate Authors.
// SPDX-License-Identifier: Apache-2.0

package quotav1_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	quotav1 "github.com/headgate/headgate/api/quota/v1"
)

// Each release leaves its contract here: go test ./api/quota/v1 -record v0.1
var record = flag.String("record", "", "name of a release: write the contract as it is now to testdata/<name>.binpb")

// released returns the contracts of earlier releases. Operators and sidecars of two neighbouring ones work together.
func released(t *testing.T) map[string]protoreflect.FileDescriptor {
	t.Helper()
	if *record != "" {
		set := &descriptorpb.FileDescriptorSet{}
		add(set, quotav1.File_api_quota_v1_quota_proto, map[string]bool{})
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("testdata", *record+".binpb"), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("testdata/*.binpb")
	if err != nil || len(files) == 0 {
		t.Fatalf("no release has left its contract: %v", err)
	}
	out := map[string]protoreflect.FileDescriptor{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		set := &descriptorpb.FileDescriptorSet{}
		if err := proto.Unmarshal(raw, set); err != nil {
			t.Fatal(err)
		}
		registry, err := protodesc.NewFiles(set)
		if err != nil {
			t.Fatal(err)
		}
		d, err := registry.FindFileByPath(quotav1.File_api_quota_v1_quota_proto.Path())
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".binpb")] = d
	}
	return out
}

// add adds a file after those that it imports.
func add(set *descriptorpb.FileDescriptorSet, f protoreflect.FileDescriptor, seen map[string]bool) {
	if seen[f.Path()] {
		return
	}
	seen[f.Path()] = true
	for i := range f.Imports().Len() {
		add(set, f.Imports().Get(i).FileDescriptor, seen)
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
}

func TestWhatAReleaseSaysKeepsItsMeaning(t *testing.T) {
	for name, old := range released(t) {
		t.Run(name, func(t *testing.T) {
			compareMessages(t, old.Messages(), quotav1.File_api_quota_v1_quota_proto.Messages())
			compareEnums(t, old.Enums(), quotav1.File_api_quota_v1_quota_proto.Enums())
			services := quotav1.File_api_quota_v1_quota_proto.Services()
			for i := range old.Services().Len() {
				before := old.Services().Get(i)
				now := services.ByName(before.Name())
				if now == nil {
					t.Errorf("service %s is gone", before.FullName())
					continue
				}
				for j := range before.Methods().Len() {
					m := before.Methods().Get(j)
					if n := now.Methods().ByName(m.Name()); n == nil || signature(n) != signature(m) {
						t.Errorf("method %s is not what it was: %s", m.FullName(), signature(m))
					}
				}
			}
		})
	}
}

func signature(m protoreflect.MethodDescriptor) string {
	return fmt.Sprint(m.Input().FullName(), m.IsStreamingClient(), m.Output().FullName(), m.IsStreamingServer())
}

func compareMessages(t *testing.T, old, now protoreflect.MessageDescriptors) {
	t.Helper()
	for i := range old.Len() {
		before := old.Get(i)
		after := now.ByName(before.Name())
		if after == nil {
			t.Errorf("message %s is gone", before.FullName())
			continue
		}
		for j := range before.Fields().Len() {
			f := before.Fields().Get(j)
			g := after.Fields().ByNumber(f.Number())
			switch {
			case g == nil && !after.ReservedRanges().Has(f.Number()):
				t.Errorf("field %s is gone: reserve its number %d, and keep it until no release needs it", f.FullName(), f.Number())
			case g != nil && form(g) != form(f):
				t.Errorf("field %s was %q and is %q: add another field", f.FullName(), form(f), form(g))
			}
		}
		for j := range after.Fields().Len() {
			if f := after.Fields().Get(j); before.ReservedRanges().Has(f.Number()) {
				t.Errorf("field %s has number %d, which meant something else once", f.FullName(), f.Number())
			}
		}
		compareMessages(t, before.Messages(), after.Messages())
		compareEnums(t, before.Enums(), after.Enums())
	}
}

// form is all of a field that its bytes depend on, and its name, which says what they mean.
func form(f protoreflect.FieldDescriptor) string {
	out := fmt.Sprint(f.Name(), f.Kind(), f.Cardinality(), f.HasPresence(), f.IsPacked(), f.IsMap())
	if f.Message() != nil {
		out += string(f.Message().FullName())
	}
	if f.Enum() != nil {
		out += string(f.Enum().FullName())
	}
	if f.ContainingOneof() != nil {
		out += string(f.ContainingOneof().FullName())
	}
	return out
}

func compareEnums(t *testing.T, old, now protoreflect.EnumDescriptors) {
	t.Helper()
	for i := range old.Len() {
		before := old.Get(i)
		after := now.ByName(before.Name())
		if after == nil {
			t.Errorf("enum %s is gone", before.FullName())
			continue
		}
		for j := range before.Values().Len() {
			v := before.Values().Get(j)
			if w := after.Values().ByNumber(v.Number()); w == nil || w.Name() != v.Name() {
				t.Errorf("%s = %d is not what it was", v.FullName(), v.Number())
			}
		}
	}
}

func TestNothingThatAReleaseSaysIsLost(t *testing.T) {
	for name, old := range released(t) {
		for i := range old.Messages().Len() {
			d := old.Messages().Get(i)
			now, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
			if err != nil {
				t.Fatal(err)
			}
			older := dynamicpb.NewMessage(d)
			fill(older, 4)
			raw, err := proto.Marshal(older)
			if err != nil {
				t.Fatal(err)
			}
			newer := now.New().Interface()
			if err := proto.Unmarshal(raw, newer); err != nil {
				t.Errorf("%s of %s cannot be read: %v", d.Name(), name, err)
				continue
			}
			// The older one reads back what it has said.
			back, err := proto.Marshal(newer)
			if err != nil {
				t.Fatal(err)
			}
			again := dynamicpb.NewMessage(d)
			if err := proto.Unmarshal(back, again); err != nil || !proto.Equal(older, again) {
				t.Errorf("%s of %s: said\n%v\ncame back as\n%v (%v)", d.Name(), name, older, again, err)
			}
		}
	}
}

func TestWhatALaterReleaseAddsIsPassedOver(t *testing.T) {
	messages := quotav1.File_api_quota_v1_quota_proto.Messages()
	for i := range messages.Len() {
		d := messages.Get(i)
		said := dynamicpb.NewMessage(d)
		fill(said, 4)
		raw, err := proto.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		more := protowire.AppendTag(raw, 1999, protowire.BytesType)
		more = protowire.AppendBytes(more, []byte("of a later release"))
		heard := dynamicpb.NewMessage(d)
		if err := proto.Unmarshal(more, heard); err != nil {
			t.Errorf("%s: %v", d.Name(), err)
		}
		heard.SetUnknown(nil)
		if !proto.Equal(said, heard) {
			t.Errorf("%s: said\n%v\nheard\n%v", d.Name(), said, heard)
		}
	}
}

// fill sets every field, to a depth.
func fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.Message() != nil && depth == 0 {
			continue
		}
		switch {
		case f.IsMap():
			v := m.NewField(f)
			if f.MapValue().Message() == nil {
				v.Map().Set(scalar(f.MapKey()).MapKey(), scalar(f.MapValue()))
			} else {
				item := v.Map().NewValue()
				fill(item.Message(), depth-1)
				v.Map().Set(scalar(f.MapKey()).MapKey(), item)
			}
			m.Set(f, v)
		case f.IsList():
			v := m.NewField(f)
			for range 2 {
				if f.Message() == nil {
					v.List().Append(scalar(f))
				} else {
					item := v.List().NewElement()
					fill(item.Message(), depth-1)
					v.List().Append(item)
				}
			}
			m.Set(f, v)
		case f.Message() != nil:
			v := m.NewField(f)
			fill(v.Message(), depth-1)
			m.Set(f, v)
		default:
			m.Set(f, scalar(f))
		}
	}
}

func scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	n := uint64(f.Number()) + 1
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(string(f.Name()))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(f.Name()))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(f.Enum().Values().Len() - 1).Number())
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	}
	return protoreflect.ValueOfUint64(n)
}
