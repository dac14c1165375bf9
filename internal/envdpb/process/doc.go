// Package process is generated from process.proto: the messages of envd's process service, as E2B speaks it.
package process
