// Package envdpb holds the wire types of the E2B data plane: the services
// process.Process and filesystem.Filesystem with their generated Go and Connect
// code, in the folders process and filesystem. The .proto files were written
// from the published field tables and are the source; everything else here is
// generated. Field numbers and names are the protocol: never change them.
package envdpb

//go:generate protoc --proto_path=. --proto_path=include --go_out=. --go_opt=paths=source_relative --connect-go_out=. --connect-go_opt=paths=source_relative process/process.proto filesystem/filesystem.proto
