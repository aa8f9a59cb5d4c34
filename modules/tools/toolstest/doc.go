// Package toolstest is the suite that every tools.Registry passes.
package toolstest
