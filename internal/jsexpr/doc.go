// Package jsexpr evaluates the `!!js` expressions of patch files. It is the one package that imports a JavaScript
// engine.
//
// An expression sees the language's own built-ins and what Globals describes, nothing else. It is bounded in time, in
// stack and in the size of what it gives. Each one runs in a machine of its own, so that none sees what another left
// behind.
package jsexpr
