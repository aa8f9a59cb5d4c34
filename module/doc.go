// Package module is what the author of a module uses.
//
// A module is one package with one function Module, which returns Define(Spec{...}). Its constructor says by its types
// what the module provides and needs; its Config is what a row's `config` is decoded into, over its defaults. A module
// that acts at start or at stop returns a Runner. A Bundle is a patch together with the modules that it mounts, and a
// deployment is a list of bundles.
package module
