// Package key names capabilities. A capability is a Go interface that one row provides and others need; its name is
// what people read in a fault.
package key

import "reflect"

// Key is a capability: an interface type and the word for it.
type Key struct {
	name string
	typ  reflect.Type
}

// Of returns the key that calls T by name.
func Of[T any](name string) Key { return Key{name: name, typ: reflect.TypeFor[T]()} }

// Type returns the capability's interface type.
func (k Key) Type() reflect.Type { return k.typ }

// String returns `name (package.Type)`, as in `shell (shell.Executor)`.
func (k Key) String() string { return k.name + " (" + k.typ.String() + ")" }
