package filter

import _ "embed"

//go:embed programs_amd64.json
var builtIn []byte
