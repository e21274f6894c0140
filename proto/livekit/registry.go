package livekit

import (
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Registry holds the files and types of this package, and only those. They are not in the global registry, where
// github.com/livekit/protocol has the same names: a program may link both.
//
// It has the look-ups of protoregistry.Files and Types, and their RangeFiles, RangeMessages and RangeEnums. So it serves as
// Resolver in the options of protojson and prototext, for messages of this package inside an Any, and as resolver of protodesc.
// A name that it does not hold is looked up in the global registry, so that google.protobuf.* is found too; ranging stays here.
// It is safe for concurrent use.
var Registry = new(registry)

// registry locks what protoregistry locks for its global registries alone. Generated code fills it before main starts.
type registry struct {
	mu    sync.RWMutex
	files protoregistry.Files
	types protoregistry.Types
}

// RegisterFile adds a file. It is an error if the path or one of its names is taken.
func (r *registry) RegisterFile(file protoreflect.FileDescriptor) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.files.RegisterFile(file)
}

// RegisterMessage adds a message type. It is an error if the name is taken.
func (r *registry) RegisterMessage(typ protoreflect.MessageType) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.types.RegisterMessage(typ)
}

// RegisterEnum adds an enum type. It is an error if the name is taken.
func (r *registry) RegisterEnum(typ protoreflect.EnumType) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.types.RegisterEnum(typ)
}

// RegisterExtension adds an extension type. It is an error if the name or number is taken. This schema has none.
func (r *registry) RegisterExtension(typ protoreflect.ExtensionType) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.types.RegisterExtension(typ)
}

// FindFileByPath finds a file, such as "lkrpc/room.proto"; protoregistry.NotFound if there is none.
func (r *registry) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	return find(r, path, r.files.FindFileByPath, protoregistry.GlobalFiles.FindFileByPath)
}

// FindDescriptorByName finds any declaration, such as "livekit.Room.name"; protoregistry.NotFound if there is none.
func (r *registry) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	return find(r, name, r.files.FindDescriptorByName, protoregistry.GlobalFiles.FindDescriptorByName)
}

// FindMessageByName finds a message type, such as "livekit.Room"; protoregistry.NotFound if there is none.
func (r *registry) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	return find(r, name, r.types.FindMessageByName, protoregistry.GlobalTypes.FindMessageByName)
}

// FindMessageByURL finds the message type of an Any by its type URL; protoregistry.NotFound if there is none.
func (r *registry) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return find(r, url, r.types.FindMessageByURL, protoregistry.GlobalTypes.FindMessageByURL)
}

// FindEnumByName finds an enum type, such as "livekit.TrackType"; protoregistry.NotFound if there is none.
func (r *registry) FindEnumByName(name protoreflect.FullName) (protoreflect.EnumType, error) {
	return find(r, name, r.types.FindEnumByName, protoregistry.GlobalTypes.FindEnumByName)
}

// FindExtensionByName finds an extension type; protoregistry.NotFound if there is none.
func (r *registry) FindExtensionByName(name protoreflect.FullName) (protoreflect.ExtensionType, error) {
	return find(r, name, r.types.FindExtensionByName, protoregistry.GlobalTypes.FindExtensionByName)
}

// FindExtensionByNumber finds the extension type of a message that has a field number; protoregistry.NotFound if there is none.
func (r *registry) FindExtensionByNumber(message protoreflect.FullName, field protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	byNumber := func(t *protoregistry.Types) func(protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
		return func(n protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
			return t.FindExtensionByNumber(message, n)
		}
	}
	return find(r, field, byNumber(&r.types), byNumber(protoregistry.GlobalTypes))
}

// find looks a key up here and, if there is nothing by that name, globally.
func find[K, V any](r *registry, key K, here, globally func(K) (V, error)) (V, error) {
	r.mu.RLock()
	found, err := here(key)
	r.mu.RUnlock()
	if err == protoregistry.NotFound {
		return globally(key)
	}
	return found, err
}

// RangeFiles calls f for each file of this package, in no order, until it returns false.
func (r *registry) RangeFiles(f func(protoreflect.FileDescriptor) bool) {
	ranged(r, r.files.RangeFiles, f)
}

// RangeMessages calls f for each message type of this package, in no order, until it returns false.
func (r *registry) RangeMessages(f func(protoreflect.MessageType) bool) {
	ranged(r, r.types.RangeMessages, f)
}

// RangeEnums calls f for each enum type of this package, in no order, until it returns false.
func (r *registry) RangeEnums(f func(protoreflect.EnumType) bool) {
	ranged(r, r.types.RangeEnums, f)
}

// ranged calls f without holding the lock, so that f may look things up.
func ranged[V any](r *registry, all func(func(V) bool), f func(V) bool) {
	var list []V
	r.mu.RLock()
	all(func(v V) bool { list = append(list, v); return true })
	r.mu.RUnlock()
	for _, v := range list {
		if !f(v) {
			return
		}
	}
}
