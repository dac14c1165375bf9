// Package e2b is a client of the E2B protocol.
package e2b
