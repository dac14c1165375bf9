// Package filesystem is generated from filesystem.proto: the messages of envd's filesystem service, as E2B speaks it.
package filesystem
