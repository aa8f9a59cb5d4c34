// Package agenttest holds what every agent and every prompt has to pass, and a model for tests of what calls one.
package agenttest
