// Package procspec is what every subprocess runtime does alike before it starts anything: it refuses a Spec that cannot
// work, finds the program, and makes the environment.
package procspec
