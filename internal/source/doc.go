// Package source reads YAML text into nodes that know their places. It is the one package that imports a YAML library,
// and it takes from it the syntax alone: scalars are resolved here, by the JSON schema of YAML 1.2, so that `off`, `no`
// and `12:30` are text, and `!!js` scalars stay expressions.
//
// What is wrong with one value makes that node a fault and leaves the others readable; what is wrong with the text as a
// whole is the error of Parse.
package source
